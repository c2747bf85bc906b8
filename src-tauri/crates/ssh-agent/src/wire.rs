//! Decodes values of the ssh protocol (RFC 4251, section 5).

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::digest::{SHA256, digest};

/// The message does not have the expected format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the message is malformed")]
pub struct Malformed;

/// Reader for the bytes of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn read_byte(&mut self) -> Result<u8, Malformed> {
        self.take(1)?.first().copied().ok_or(Malformed)
    }

    pub(crate) fn read_bool(&mut self) -> Result<bool, Malformed> {
        Ok(self.read_byte()? != 0)
    }

    pub(crate) fn read_u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?.try_into().map_err(|_| Malformed)?;
        Ok(u32::from_be_bytes(bytes))
    }

    pub(crate) fn read_string(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.read_u32()?).map_err(|_| Malformed)?;
        self.take(length)
    }

    pub(crate) fn read_utf8(&mut self) -> Result<&'a str, Malformed> {
        std::str::from_utf8(self.read_string()?).map_err(|_| Malformed)
    }

    /// Returns an error if unread bytes remain.
    pub(crate) fn expect_end(self) -> Result<(), Malformed> {
        if self.0.is_empty() { Ok(()) } else { Err(Malformed) }
    }
}

/// Returns the fingerprint of a public key, as `ssh-keygen -l` prints it.
#[must_use]
pub fn fingerprint(key: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, key)))
}
