//! Which files a question is about.
