//! The hash that an agent sees and sends back as `expected_hash`. It detects changes, and is no defence against
//! forgery.

use std::{fmt, str::FromStr};

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// XXH3-64 of a file's bytes, written as 16 hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Hash(u64);

impl Hash {
    pub fn of(bytes: &[u8]) -> Self {
        Self(xxh3_64(bytes))
    }

    /// Returns the hash of bytes that were digested piece by piece.
    pub(crate) fn of_digest(taken: &Xxh3) -> Self {
        Self(taken.digest())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("a hash is 16 hex digits")]
pub struct HashError;

impl FromStr for Hash {
    type Err = HashError;

    fn from_str(digits: &str) -> Result<Self, HashError> {
        // `from_str_radix` would also accept a leading plus sign.
        if digits.len() != 16 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(HashError);
        }
        u64::from_str_radix(digits, 16).map(Self).map_err(|_| HashError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_hashes() {
        // The published XXH3-64 test vector for no bytes.
        assert_eq!(Hash::of(b"").to_string(), "2d06800538d394c2");
        assert_ne!(Hash::of(b"a"), Hash::of(b"b"));
    }

    #[test]
    fn only_sixteen_hex_digits_are_a_hash() {
        for bad in [
            "",
            "1",
            "+123456789abcdef",
            "2d06800538d394c",
            "2d06800538d394c20",
            "2d06800538d394cg",
        ] {
            assert_eq!(bad.parse::<Hash>(), Err(HashError), "{bad}");
        }
        assert_eq!("2D06800538D394C2".parse(), Ok(Hash::of(b"")));
    }

    proptest! {
        #[test]
        fn what_is_printed_parses_back(bytes: Vec<u8>) {
            let hash = Hash::of(&bytes);
            prop_assert_eq!(hash.to_string().parse(), Ok(hash));
        }
    }
}
