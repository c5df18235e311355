//! Names of temporary files: `.fe-<pid>-<16 hex digits>.tmp`. Only names of exactly this form are refused to callers
//! and swept; no other file is ever treated as ours.

use std::{
    ffi::OsStr,
    hash::{BuildHasher, RandomState},
    process,
};

/// Returns a name that no file has, except by a chance of one in 2^64.
pub(crate) fn fresh() -> String {
    format!(".fe-{}-{:016x}.tmp", process::id(), random())
}

/// Returns 64 bits that cannot be predicted, from the keys that the standard library draws for its hash maps.
pub(crate) fn random() -> u64 {
    RandomState::new().hash_one(())
}

pub(crate) fn is_ours(name: &OsStr) -> bool {
    parse(name.as_encoded_bytes()).is_some()
}

fn parse(name: &[u8]) -> Option<()> {
    let middle = name.strip_prefix(b".fe-")?.strip_suffix(b".tmp")?;
    let (pid, random) = middle.split_at_checked(middle.len().checked_sub(17)?)?;
    let random = random.strip_prefix(b"-")?;
    let pid_fits = (1..=10).contains(&pid.len()) && pid.iter().all(u8::is_ascii_digit);
    let random_fits = random.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    (pid_fits && random_fits).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_names_are_ours_and_differ() {
        let (one, two) = (fresh(), fresh());
        assert!(is_ours(one.as_ref()) && is_ours(two.as_ref()));
        assert_ne!(one, two);
    }

    #[test]
    fn only_the_exact_form_is_ours() {
        assert!(is_ours(".fe-1-0123456789abcdef.tmp".as_ref()));
        for other in [
            ".fe-.tmp",
            ".fe--0123456789abcdef.tmp",
            ".fe-1-0123456789ABCDEF.tmp",
            ".fe-1-0123456789abcde.tmp",
            ".fe-1-0123456789abcdef0.tmp",
            ".fe-12345678901-0123456789abcdef.tmp",
            ".fe-1x-0123456789abcdef.tmp",
            ".fe-1-0123456789abcdef.tmp2",
            "x.fe-1-0123456789abcdef.tmp",
            "",
        ] {
            assert!(!is_ours(other.as_ref()), "{other}");
        }
    }
}
