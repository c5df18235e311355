//! What a text's words are, for a question to be compared with.
