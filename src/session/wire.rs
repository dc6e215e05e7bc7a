//! Length-prefixed bytes, big-endian: the inner form of what is sealed.
//!
//! What is read here was sealed by us, so a fault means a version that is not known; it is reported as absence, never
//! as a panic.

/// Writes fields one after the other.
#[derive(Debug, Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn with_capacity(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes))
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_be_bytes());
    }

    pub(super) fn raw(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    /// A text of up to 65,535 bytes. No caller has a longer one; it would be left out, not cut.
    pub(super) fn text(&mut self, text: &str) {
        let length = u16::try_from(text.len()).unwrap_or(0);
        self.0.extend_from_slice(&length.to_be_bytes());
        if length > 0 {
            self.0.extend_from_slice(text.as_bytes());
        }
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.0
    }
}

/// Reads fields one after the other.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(super) fn number(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// A text, not checked to be one.
    pub(super) fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = usize::from(u16::from_be_bytes(self.array()?));
        let (text, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(text)
    }

    /// Whether nothing is left.
    pub(super) const fn is_done(self) -> bool {
        self.0.is_empty()
    }
}
