//! Proof that a session is one with the owner of a host key: the host has signed it.

use crate::wire::{Malformed, Reader};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA512, RsaPublicKeyComponents, UnparsedPublicKey,
};

/// Claim that a session is one with a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionBinding {
    /// Public key of the host.
    pub host_key: Vec<u8>,
    /// The session.
    pub session: Vec<u8>,
    /// The host's signature of the session.
    signature: Vec<u8>,
    /// True if the agent is forwarded to the host.
    pub is_forwarding: bool,
}

impl SessionBinding {
    pub(crate) fn read(mut reader: Reader<'_>) -> Result<Self, Malformed> {
        let binding = Self {
            host_key: reader.string()?.to_vec(),
            session: reader.string()?.to_vec(),
            signature: reader.string()?.to_vec(),
            is_forwarding: reader.bool()?,
        };
        reader.end()?;
        Ok(binding)
    }

    /// Returns true if the host has signed the session. False for an algorithm that is not supported.
    #[must_use]
    pub fn is_proved(&self) -> bool {
        self.verify().is_ok()
    }

    fn verify(&self) -> Result<(), Malformed> {
        let mut key = Reader::new(&self.host_key);
        let mut signature = Reader::new(&self.signature);
        let (kind, algorithm, value) = (key.string()?, signature.string()?, signature.string()?);
        signature.end()?;
        let verified = match (kind, algorithm) {
            (b"ssh-ed25519", b"ssh-ed25519") => {
                let public = UnparsedPublicKey::new(&ED25519, last(key)?);
                public.verify(&self.session, value)
            }
            (b"ecdsa-sha2-nistp256", b"ecdsa-sha2-nistp256") => {
                let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point(key)?);
                public.verify(&self.session, &fixed::<32>(value)?)
            }
            (b"ecdsa-sha2-nistp384", b"ecdsa-sha2-nistp384") => {
                let public = UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, point(key)?);
                public.verify(&self.session, &fixed::<48>(value)?)
            }
            (b"ssh-rsa", b"rsa-sha2-256" | b"rsa-sha2-512") => {
                let parameters = if algorithm == b"rsa-sha2-256" {
                    &RSA_PKCS1_2048_8192_SHA256
                } else {
                    &RSA_PKCS1_2048_8192_SHA512
                };
                let (e, n) = (key.positive()?, key.positive()?);
                key.end()?;
                RsaPublicKeyComponents { n, e }.verify(parameters, &self.session, value)
            }
            _ => return Err(Malformed),
        };
        verified.map_err(|_| Malformed)
    }
}

/// Reads the last string of a key.
fn last(mut key: Reader<'_>) -> Result<&[u8], Malformed> {
    let value = key.string()?;
    key.end()?;
    Ok(value)
}

/// Reads the point of an elliptic curve, after the curve's name.
fn point(mut key: Reader<'_>) -> Result<&[u8], Malformed> {
    key.string()?;
    last(key)
}

/// Returns a signature with both numbers in full length.
fn fixed<const LENGTH: usize>(signature: &[u8]) -> Result<Vec<u8>, Malformed> {
    let mut reader = Reader::new(signature);
    let mut fixed = Vec::with_capacity(2 * LENGTH);
    for number in [reader.positive()?, reader.positive()?] {
        let missing = LENGTH.checked_sub(number.len()).ok_or(Malformed)?;
        fixed.extend(std::iter::repeat_n(0, missing));
        fixed.extend(number);
    }
    reader.end()?;
    Ok(fixed)
}
