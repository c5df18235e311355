//! Sorting, with one kind of key: each kind is a sort of its own in the binary, of six kilobytes.

/// Sorts by two numbers, the smaller first; what has the same stays in the order it was.
pub fn sort_by_numbers<T>(items: &mut [T], numbers: impl FnMut(&T) -> (usize, usize)) {
    items.sort_by_cached_key(numbers);
}
