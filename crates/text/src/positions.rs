//! Finds every occurrence of a sequence in another, overlapping ones too, in one pass whatever they look like
//! (Knuth-Morris-Pratt).

use std::ops::Deref;

/// Returns every offset at which `needle` begins in `haystack`; none if `needle` is empty.
pub(crate) fn positions<T: Eq>(
    haystack: impl IntoIterator<Item = T>,
    needle: impl Deref<Target = [T]>,
) -> impl Iterator<Item = usize> {
    let borders = borders(&needle);
    let mut fits = 0;
    haystack.into_iter().enumerate().filter_map(move |(at, item)| {
        while fits > 0 && needle.get(fits) != Some(&item) {
            fits = borders[fits - 1];
        }
        fits += usize::from(needle.get(fits) == Some(&item));
        (fits == needle.len() && fits > 0).then(|| at + 1 - fits)
    })
}

/// Returns for each prefix of `needle` the length of its border: the longest shorter prefix that it also ends with.
fn borders<T: Eq>(needle: &[T]) -> Vec<usize> {
    let mut borders = vec![0; needle.len()];
    let mut fits = 0;
    for at in 1..needle.len() {
        while fits > 0 && needle[fits] != needle[at] {
            fits = borders[fits - 1];
        }
        fits += usize::from(needle[fits] == needle[at]);
        borders[at] = fits;
    }
    borders
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn places_that_overlap_are_found() {
        let check = |haystack: &str, needle: &str, expected: &[usize]| {
            let found: Vec<_> = positions(haystack.bytes(), needle.as_bytes()).collect();
            assert_eq!(found, expected, "{needle:?} in {haystack:?}");
        };
        check("aaa", "aa", &[0, 1]);
        check("}\n}\n}", "}\n}", &[0, 2]);
        check("abcabcabd", "abcabd", &[3]);
        check("", "a", &[]);
        check("a", "", &[]);
    }

    proptest! {
        #[test]
        fn as_looking_everywhere_would(haystack in "[ab]{0,30}", needle in "[ab]{1,5}") {
            let found: Vec<_> = positions(haystack.bytes(), needle.as_bytes()).collect();
            let everywhere: Vec<_> =
                (0..haystack.len()).filter(|at| haystack[*at..].starts_with(&needle)).collect();
            prop_assert_eq!(found, everywhere);
        }
    }
}
