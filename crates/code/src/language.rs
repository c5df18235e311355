//! Which language a file is in.
