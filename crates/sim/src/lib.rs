//! Simulated disk, crash schedules, model checks.
