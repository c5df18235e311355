//! Lines that match.
