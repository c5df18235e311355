//! Sorting with a single type of key: each type of key would add a sort of its own to the binary, of six kilobytes.

/// Sorts by two numbers, the smaller first; items with equal numbers keep their order.
pub fn sort_by_numbers<T>(items: &mut [T], numbers: impl FnMut(&T) -> (usize, usize)) {
    items.sort_by_cached_key(numbers);
}
