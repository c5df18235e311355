//! Where a file does not parse.
