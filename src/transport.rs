//! How bytes move and why a connection ended; what the bytes mean is the profile's business.

pub mod ws;

/// A whole message, text or binary, as it came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The payload; text was already found to be UTF-8.
    pub bytes: &'a [u8],
}

/// Limits on what a server may send (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The largest message, fragments put together.
    pub message: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { message: 1 << 20 }
    }
}
