//! Decodes bytes to text, or returns the reason why they are not text.
//!
//! Nothing is ever decoded lossily or normalised: the bytes of a [`Text`] are the bytes of the file.

use std::fmt;
use std::sync::Arc;

use memchr::memchr;

const BOM: &str = "\u{feff}";

/// The reason why bytes are not text. Bytes with both defects are `InvalidUtf8`.
#[derive(Debug, thiserror::Error, PartialEq, Eq, Clone, Copy)]
pub enum NotText {
    /// `at`: offset of the first byte that is not part of a valid sequence.
    #[error("invalid UTF-8 at byte {at}")]
    InvalidUtf8 { at: usize },
    /// `at`: offset of the first NUL.
    #[error("NUL at byte {at}")]
    Nul { at: usize },
}

/// Decoded contents: valid UTF-8 without NUL. A leading byte order mark is kept separate: hidden from readers and
/// edits, and written back with the text.
///
/// Cheap to clone; shares the bytes it was decoded from.
#[derive(Clone)]
pub struct Text {
    bytes: Arc<Vec<u8>>,
    /// Length of the byte order mark: 0 or 3.
    bom: usize,
}

impl Text {
    pub fn decode(bytes: Arc<Vec<u8>>) -> Result<Self, NotText> {
        let text = simdutf8::compat::from_utf8(&bytes)
            .map_err(|error| NotText::InvalidUtf8 { at: error.valid_up_to() })?;
        if let Some(at) = memchr(0, text.as_bytes()) {
            return Err(NotText::Nul { at });
        }
        let bom = if text.starts_with(BOM) { BOM.len() } else { 0 };
        Ok(Self { bytes, bom })
    }

    /// Makes a part of a text. It has no byte order mark, whatever it begins with.
    pub fn part(text: String) -> Result<Self, NotText> {
        match memchr(0, text.as_bytes()) {
            Some(at) => Err(NotText::Nul { at }),
            None => Ok(Self { bytes: Arc::new(text.into_bytes()), bom: 0 }),
        }
    }

    pub fn empty() -> Self {
        Self { bytes: Arc::default(), bom: 0 }
    }

    /// The text that readers see and edits address: without the byte order mark.
    pub fn as_str(&self) -> &str {
        &self.whole()[self.bom..]
    }

    /// The text that is on disk: with the byte order mark.
    #[expect(
        unsafe_code,
        reason = "checking 10 MB again at every look would cost more than the edit"
    )]
    pub fn whole(&self) -> &str {
        // SAFETY: `decode` checked these bytes (those of `part` were a string, `empty` has none), and nothing can
        // change them: the field is private, and an `Arc` that is shared gives no mutable access to the vector.
        unsafe { std::str::from_utf8_unchecked(&self.bytes) }
    }

    pub fn has_bom(&self) -> bool {
        self.bom > 0
    }
}

/// Shows the size only: contents do not belong in logs.
impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Text").field("bytes", &self.bytes.len()).field("bom", &self.bom).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(bytes: &[u8]) -> Result<Text, NotText> {
        Text::decode(Arc::new(bytes.to_vec()))
    }

    #[test]
    fn a_bom_is_kept_aside() {
        for (bytes, seen, bom) in [
            ("", "", false),
            ("a\u{feff}", "a\u{feff}", false),
            ("\u{feff}", "", true),
            ("\u{feff}añ\r\n", "añ\r\n", true),
            ("\u{feff}\u{feff}a", "\u{feff}a", true),
        ] {
            let text = decode(bytes.as_bytes()).unwrap();
            assert_eq!((text.as_str(), text.whole(), text.has_bom()), (seen, bytes, bom));
        }
        assert_eq!(Text::empty().whole(), "");
    }

    #[test]
    fn a_part_has_no_bom() {
        let part = |text: &str| Text::part(text.into());
        let text = part("\u{feff}añ").unwrap();
        assert_eq!((text.as_str(), text.has_bom()), ("\u{feff}añ", false));
        assert_eq!(part("a\0").unwrap_err(), NotText::Nul { at: 1 });
    }

    #[test]
    fn what_is_not_text_says_where() {
        for (bytes, reason) in [
            (&b"ab\0\0"[..], NotText::Nul { at: 2 }),
            (b"ab\xff", NotText::InvalidUtf8 { at: 2 }),
            (b"\0ab\xff", NotText::InvalidUtf8 { at: 3 }),
            (b"a\xe2\x82", NotText::InvalidUtf8 { at: 1 }),
            (b"\xff\xfea\0", NotText::InvalidUtf8 { at: 0 }),
        ] {
            assert_eq!(decode(bytes).unwrap_err(), reason, "{bytes:?}");
        }
    }

    #[test]
    fn debug_shows_no_contents() {
        let text = decode(b"secret").unwrap();
        assert_eq!(format!("{text:?}"), "Text { bytes: 6, bom: 0 }");
    }

    proptest! {
        #[test]
        fn any_bytes_come_back_or_are_refused(bytes in prop_oneof![
            any::<Vec<u8>>(),
            "\u{feff}?[a\u{feff}é\n\0]{0,9}".prop_map(String::into_bytes),
        ]) {
            match decode(&bytes) {
                Ok(text) => {
                    prop_assert_eq!(text.whole().as_bytes(), &bytes);
                    prop_assert!(text.whole().ends_with(text.as_str()));
                }
                Err(NotText::InvalidUtf8 { at }) => {
                    prop_assert_eq!(std::str::from_utf8(&bytes).unwrap_err().valid_up_to(), at);
                }
                Err(NotText::Nul { at }) => {
                    prop_assert!(std::str::from_utf8(&bytes).is_ok());
                    prop_assert_eq!(bytes.iter().position(|byte| *byte == 0), Some(at));
                }
            }
        }
    }
}
