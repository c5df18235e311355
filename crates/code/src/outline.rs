//! The named parts of a source file.
