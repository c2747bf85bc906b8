//! Codes that the user types during pairing: the desktop's on the remote machine, and the remote machine's on the
//! desktop.
//!
//! - The desktop commits to its nonce before it learns the remote machine's nonce, so neither side nor anything between
//!   them can search for nonces that produce the same code on two connections. A guess succeeds once in a million.

use crate::channel::{ChannelBinding, PeerKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::digest::{Context, SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};

/// Number of different codes.
const CODES: u64 = 1_000_000;

/// Random number that one side adds to the code, as base64url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nonce(String);

/// SHA-256 of the desktop's nonce, as base64url.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Commitment(String);

/// Six-digit codes of a connection. The user types each one on the other machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairingCodes {
    /// Code that the desktop shows, such as "204517".
    pub desktop: String,
    /// Code that the remote machine shows after its user has typed the desktop's code.
    pub remote: String,
}

/// Failure to pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// The operating system provided no random bytes.
    #[error("failed to create a nonce: the system provides no random numbers")]
    Random,
    /// The desktop's nonce is not the one that it committed to.
    #[error("the desktop changed its nonce")]
    Changed,
}

impl Nonce {
    /// Creates a random nonce of 32 bytes.
    ///
    /// # Errors
    /// Returns [`PairingError::Random`] if the operating system provides no random bytes.
    pub fn generate() -> Result<Self, PairingError> {
        let mut bytes = [0; 32];
        SystemRandom::new().fill(&mut bytes).map_err(|_| PairingError::Random)?;
        Ok(Self(URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// Returns the commitment to this nonce.
    #[must_use]
    pub fn commitment(&self) -> Commitment {
        Commitment(URL_SAFE_NO_PAD.encode(digest(&SHA256, self.0.as_bytes())))
    }
}

impl Commitment {
    /// Checks a revealed nonce.
    ///
    /// # Errors
    /// Returns [`PairingError::Changed`] if the nonce does not match the commitment.
    pub fn check(&self, nonce: &Nonce) -> Result<(), PairingError> {
        if nonce.commitment() == *self { Ok(()) } else { Err(PairingError::Changed) }
    }
}

/// Returns the codes of a connection. In `keys` and `nonces`, the desktop's value comes first.
#[must_use]
pub fn pairing_codes(
    binding: ChannelBinding,
    keys: (PeerKey, PeerKey),
    nonces: (&Nonce, &Nonce),
) -> PairingCodes {
    let mut all = Context::new(&SHA256);
    let parts = [
        b"ironcurtain pairing code".as_slice(),
        binding.bytes(),
        keys.0.bytes(),
        keys.1.bytes(),
        nonces.0.0.as_bytes(),
        nonces.1.0.as_bytes(),
    ];
    for part in parts {
        all.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_le_bytes());
        all.update(part);
    }
    let hash = all.finish();
    let code = |from| {
        let bytes = hash.as_ref().iter().skip(from).take(8);
        format!("{:06}", bytes.fold(0_u64, |number, byte| (number << 8) | u64::from(*byte)) % CODES)
    };
    PairingCodes { desktop: code(0), remote: code(8) }
}

/// Returns `true` if `typed` matches `code`. Whitespace in `typed` is ignored.
#[must_use]
pub fn matches_code(code: &str, typed: &str) -> bool {
    typed.chars().filter(|c| !c.is_whitespace()).eq(code.chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_cannot_be_changed_after_the_commitment() {
        let [first, second] = [Nonce::generate().unwrap(), Nonce::generate().unwrap()];
        assert_eq!(first.commitment().check(&first), Ok(()));
        assert_eq!(first.commitment().check(&second), Err(PairingError::Changed));
    }

    #[test]
    fn a_typed_code_may_contain_spaces_but_no_other_digits() {
        assert!(["204517", " 204 517\n"].into_iter().all(|typed| matches_code("204517", typed)));
        let others = ["", "20451", "204518", "2045170", "0204517"];
        assert!(!others.into_iter().any(|typed| matches_code("204517", typed)));
    }
}
