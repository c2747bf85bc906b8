//! ES256 keys: ECDSA on the P-256 curve with SHA-256.

use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair, UnparsedPublicKey,
};
use std::fmt;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer};

/// DER prefix of every P-256 public key. The uncompressed point follows the prefix.
const P256_HEADER: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];

/// Length of an uncompressed P-256 point, in bytes.
const POINT_LEN: usize = 65;

/// Error returned if a key is unusable or signing fails.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The public key is not a PEM-encoded P-256 key.
    #[error(
        "expected a public key on the curve P-256 in PEM form; create one with `openssl pkey -in KEY -pubout`"
    )]
    Public,
    /// The private key is not a PEM-encoded PKCS #8 key on P-256.
    #[error(
        "expected a private key on the curve P-256 in PEM form; create one with `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
    )]
    Private,
    /// Signing failed because no random bytes were available.
    #[error("failed to sign: the system provides no random numbers")]
    Random,
}

/// Public key that verifies bundles.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyingKey([u8; POINT_LEN]);

impl VerifyingKey {
    /// Parses a PEM-encoded public key.
    ///
    /// # Errors
    /// Returns [`KeyError::Public`] if `text` is not a P-256 key.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(text.as_bytes()).map_err(|_| KeyError::Public)?;
        let point = der.as_ref().strip_prefix(&P256_HEADER).ok_or(KeyError::Public)?;
        let point = <[u8; POINT_LEN]>::try_from(point).map_err(|_| KeyError::Public)?;
        if point.first() == Some(&4) { Ok(Self(point)) } else { Err(KeyError::Public) }
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &self.0).verify(message, signature).is_ok()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VerifyingKey")
    }
}

/// Private key that signs bundles.
pub struct SigningKey(EcdsaKeyPair);

impl SigningKey {
    /// Parses a PEM-encoded PKCS #8 private key.
    ///
    /// # Errors
    /// Returns [`KeyError::Private`] if `text` is not a P-256 key.
    pub fn from_pem(text: &str) -> Result<Self, KeyError> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(text.as_bytes()).map_err(|_| KeyError::Private)?;
        let random = SystemRandom::new();
        let pair =
            EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der(), &random);
        pair.map(Self).map_err(|_| KeyError::Private)
    }

    /// Returns the public key.
    ///
    /// # Errors
    /// Returns [`KeyError::Public`] if the key is not an uncompressed point.
    pub fn verifying_key(&self) -> Result<VerifyingKey, KeyError> {
        let point = <[u8; POINT_LEN]>::try_from(self.0.public_key().as_ref());
        point.map(VerifyingKey).map_err(|_| KeyError::Public)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, KeyError> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        signature.map(|signature| signature.as_ref().to_vec()).map_err(|_| KeyError::Random)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey")
    }
}
