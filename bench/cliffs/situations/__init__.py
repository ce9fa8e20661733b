"""The situations of bench/cliffs: what is set up, what is measured, and the unit of work."""
from . import clients, locks, statements, values, versions  # noqa: F401
