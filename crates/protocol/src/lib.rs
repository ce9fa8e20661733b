//! MySQL packets as bytes in, bytes out. No I/O.
