//! Placeholder until the module arrives.
pub const HINT_BYTES: usize = 2048;
pub fn explain(_text: &str, _needle: &str) -> String {
    "nothing in the file resembles it".into()
}
