//! Text written by a language model, if one is configured.
