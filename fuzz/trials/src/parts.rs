//! How bytes become the texts and numbers of a case.
//!
//! Texts stand in the bytes as they are, up to a byte that no text has. So what the fuzzer copies, cuts and inserts are
//! texts again, and whoever opens a case can read it.

/// Ends a text: no UTF-8 has it.
const END: u8 = 0xff;

/// Bytes, taken from the front. When they have run out there are only zeros and empty texts.
pub struct Parts<'a>(&'a [u8]);

impl<'a> Parts<'a> {
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub fn are_over(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Less than `below`, which is not 0.
    pub fn number(&mut self, below: usize) -> usize {
        usize::from(u16::from_be_bytes([self.byte(), self.byte()])) % below
    }

    /// Valid UTF-8 without NUL.
    pub fn text(&mut self) -> String {
        let end = self.0.iter().position(|byte| *byte == END).unwrap_or(self.0.len());
        let (text, rest) = self.0.split_at(end);
        self.0 = rest.get(1..).unwrap_or_default();
        String::from_utf8_lossy(text).replace('\0', "")
    }
}
