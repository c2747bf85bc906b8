//! TLS 1.3 channel in which each side proves possession of an Ed25519 key (raw public keys, RFC 7250).
//!
//! - Accepts any peer key. The caller must compare [`Channel::peer`] with the paired key before it trusts the peer.
//! - Both sides prove possession of their keys in every connection, because TLS sessions are never resumed.

mod verifier;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use tokio_rustls::rustls::crypto::ring as provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName};
use tokio_rustls::rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::version::TLS13;
use tokio_rustls::rustls::{self, ClientConfig, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector, TlsStream};
use verifier::KeyPossessionVerifier;
use zeroize::Zeroizing;

/// Length of a seed and of a public key, in bytes.
const LENGTH: usize = 32;

/// DER before the seed in a PKCS #8 document (RFC 8410, section 7).
const PKCS8: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// DER before the key in a `SubjectPublicKeyInfo` (RFC 8410, section 4).
const SPKI: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// Label of the exported secret that a pairing code is bound to.
const EXPORT_LABEL: &[u8] = b"EXPORTER-ironcurtain-pairing";

/// Failure to open a channel.
#[derive(Debug, thiserror::Error)]
pub enum ChannelError {
    /// The key pair cannot be used.
    #[error("the channel key is invalid")]
    Key,
    /// The configuration or the peer's key is not usable.
    #[error(transparent)]
    Tls(#[from] rustls::Error),
    /// The connection failed, or the peer did not prove possession of its key.
    #[error("the handshake failed: {0}")]
    Io(#[from] io::Error),
}

/// Key pair of one side of a channel.
#[derive(Clone)]
pub struct ChannelKey {
    certified: Arc<CertifiedKey>,
    public: PeerKey,
}

/// Public key of a peer. Formatted as base64url.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PeerKey([u8; LENGTH]);

/// Plaintext stream of a channel.
pub type ChannelStream<S> = TlsStream<S>;

/// Encrypted connection to a peer that proved possession of [`Channel::peer`].
#[derive(Debug)]
pub struct Channel<S> {
    /// Plaintext stream.
    pub stream: ChannelStream<S>,
    /// Public key of the peer, verified in the handshake.
    pub peer: PeerKey,
    /// Secret derived from this connection.
    pub binding: ChannelBinding,
}

/// Secret derived from a connection. Equal on both sides only if there is no man in the middle.
#[derive(Clone, Copy)]
pub struct ChannelBinding([u8; LENGTH]);

impl ChannelKey {
    /// Derives the key pair from a 32-byte seed.
    ///
    /// # Errors
    /// Returns [`ChannelError::Key`] if the seed is invalid.
    pub fn from_seed(seed: &[u8]) -> Result<Self, ChannelError> {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| ChannelError::Key)?;
        let public = pair.public_key().as_ref().try_into().map(PeerKey).map_err(|_| ChannelError::Key)?;
        let der = Zeroizing::new([PKCS8.as_slice(), seed].concat());
        let signing = provider::sign::any_eddsa_type(&PrivatePkcs8KeyDer::from(der.as_slice()))?;
        let certified = CertifiedKey::new(vec![CertificateDer::from(public.der())], signing);
        Ok(Self { certified: Arc::new(certified), public })
    }

    /// Returns the public key.
    #[must_use]
    pub fn public(&self) -> PeerKey {
        self.public
    }

    /// Opens the desktop's side of a channel.
    ///
    /// # Errors
    /// Returns [`ChannelError`] if the connection fails or the peer does not prove possession of a key.
    pub async fn connect<S>(&self, stream: S) -> Result<Channel<S>, ChannelError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(KeyPossessionVerifier::new()))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                self.certified.clone(),
            )));
        config.resumption = Resumption::disabled();
        let name = ServerName::try_from("ironcurtain").map_err(|_| ChannelError::Key)?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let binding = stream.get_ref().1.export_keying_material([0; LENGTH], EXPORT_LABEL, None)?;
        Channel::new(stream.into(), binding)
    }

    /// Opens the remote machine's side of a channel.
    ///
    /// # Errors
    /// Returns [`ChannelError`] if the connection fails or the peer does not prove possession of a key.
    pub async fn accept<S>(&self, stream: S) -> Result<Channel<S>, ChannelError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut config = ServerConfig::builder_with_provider(Arc::new(provider::default_provider()))
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(Arc::new(KeyPossessionVerifier::new()))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.certified.clone())));
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        let stream = TlsAcceptor::from(Arc::new(config)).accept(stream).await?;
        let binding = stream.get_ref().1.export_keying_material([0; LENGTH], EXPORT_LABEL, None)?;
        Channel::new(stream.into(), binding)
    }
}

/// Omits the secret.
impl fmt::Debug for ChannelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChannelKey({})", self.public)
    }
}

impl<S> Channel<S> {
    fn new(stream: TlsStream<S>, binding: [u8; LENGTH]) -> Result<Self, ChannelError> {
        let keys = stream.get_ref().1.peer_certificates();
        let peer = keys.and_then(|keys| keys.first()).and_then(PeerKey::from_der);
        let peer = peer.ok_or(rustls::Error::NoCertificatesPresented)?;
        Ok(Self { stream, peer, binding: ChannelBinding(binding) })
    }
}

impl ChannelBinding {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// Omits the secret.
impl fmt::Debug for ChannelBinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChannelBinding")
    }
}

impl PeerKey {
    /// Returns the key as a DER `SubjectPublicKeyInfo`.
    fn der(self) -> Vec<u8> {
        [SPKI.as_slice(), &self.0].concat()
    }

    fn from_der(der: &CertificateDer<'_>) -> Option<Self> {
        der.as_ref().strip_prefix(SPKI.as_slice())?.try_into().ok().map(Self)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for PeerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl TryFrom<String> for PeerKey {
    type Error = ChannelError;

    fn try_from(text: String) -> Result<Self, ChannelError> {
        let bytes = URL_SAFE_NO_PAD.decode(text.trim()).map_err(|_| ChannelError::Key)?;
        bytes.as_slice().try_into().map(Self).map_err(|_| ChannelError::Key)
    }
}

impl From<PeerKey> for String {
    fn from(key: PeerKey) -> Self {
        key.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Nonce, pairing_codes};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};

    fn key(seed: u8) -> ChannelKey {
        ChannelKey::from_seed(&[seed; LENGTH]).unwrap()
    }

    async fn joined(desktop: &ChannelKey, remote: &ChannelKey) -> [Channel<DuplexStream>; 2] {
        let (ours, theirs) = duplex(64 * 1024);
        let (desktop, remote) = tokio::join!(desktop.connect(ours), remote.accept(theirs));
        [desktop.unwrap(), remote.unwrap()]
    }

    #[tokio::test]
    async fn both_sides_learn_the_key_that_the_other_one_proved() {
        let (desktop, remote) = (key(1), key(2));
        let [mut ours, mut theirs] = joined(&desktop, &remote).await;
        assert_eq!((ours.peer, theirs.peer), (remote.public(), desktop.public()));
        ours.stream.write_all(b"hello").await.unwrap();
        ours.stream.flush().await.unwrap();
        let mut read = [0; 5];
        theirs.stream.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"hello");
        let text = String::from(remote.public());
        assert_eq!(PeerKey::try_from(text).unwrap(), remote.public());
        assert!(PeerKey::try_from("short".to_owned()).is_err());
    }

    #[tokio::test]
    async fn a_peer_cannot_claim_a_key_that_it_does_not_have() {
        // The thief has the desktop's public key, which is not secret, but signs with its own private key.
        let (desktop, thief) = (key(1), key(3));
        let stolen = vec![CertificateDer::from(desktop.public().der())];
        let certified = CertifiedKey::new(stolen, thief.certified.key.clone());
        let claims = ChannelKey { certified: Arc::new(certified), public: desktop.public() };
        let (ours, theirs) = duplex(64 * 1024);
        let remote = key(2);
        let (_, accepted) = tokio::join!(claims.connect(ours), remote.accept(theirs));
        assert!(accepted.unwrap_err().to_string().contains("BadSignature"));
        let (ours, theirs) = duplex(64 * 1024);
        let (connected, _) = tokio::join!(remote.connect(ours), claims.accept(theirs));
        assert!(connected.unwrap_err().to_string().contains("BadSignature"));
        assert_eq!(joined(&desktop, &remote).await[1].peer, desktop.public());
    }

    #[tokio::test]
    async fn a_relay_of_the_ciphertext_reads_nothing_and_changes_nothing() {
        let (ours, mut outside) = duplex(64 * 1024);
        let (mut inside, theirs) = duplex(64 * 1024);
        let seen = tokio::spawn(async move {
            let (mut all, mut buffer) = (Vec::new(), vec![0; 64 * 1024]);
            let mut back = vec![0; 64 * 1024];
            loop {
                tokio::select! {
                    n = outside.read(&mut buffer) => match n {
                        Ok(n) if n > 0 => {
                            let mut sent = buffer[..n].to_vec();
                            all.extend_from_slice(&sent);
                            if all.len() > 4096 { sent[n - 1] ^= 1; }
                            // The receiver closes the channel when it receives the modified byte.
                            if inside.write_all(&sent).await.is_err() {
                                return all;
                            }
                        }
                        _ => return all,
                    },
                    n = inside.read(&mut back) => match n {
                        Ok(n) if n > 0 && outside.write_all(&back[..n]).await.is_ok() => {}
                        _ => return all,
                    },
                }
            }
        });
        let (desktop, remote) = (key(1), key(2));
        let (ours, theirs) = tokio::join!(desktop.connect(ours), remote.accept(theirs));
        let (mut ours, mut theirs) = (ours.unwrap(), theirs.unwrap());
        ours.stream.write_all(b"secret answer").await.unwrap();
        ours.stream.flush().await.unwrap();
        let mut read = [0; 13];
        theirs.stream.read_exact(&mut read).await.unwrap();
        assert_eq!(&read, b"secret answer");
        ours.stream.write_all(&[b'x'; 8192]).await.unwrap();
        ours.stream.flush().await.unwrap();
        let changed = theirs.stream.read_exact(&mut [0; 8192]).await.unwrap_err();
        assert!(changed.to_string().contains("decrypt"), "{changed}");
        drop((ours, theirs));
        let seen = seen.await.unwrap();
        assert!(!seen.windows(6).any(|part| part == b"secret"));
    }

    #[tokio::test]
    async fn a_pairing_code_differs_if_something_is_between_the_two_sides() {
        let (desktop, remote, between) = (key(1), key(2), key(3));
        let [first, second] = [Nonce::generate().unwrap(), Nonce::generate().unwrap()];
        let [ours, theirs] = joined(&desktop, &remote).await;
        let code =
            |channel: &Channel<DuplexStream>, keys| pairing_codes(channel.binding, keys, (&first, &second));
        let keys = (desktop.public(), remote.public());
        assert_eq!(code(&ours, keys), code(&theirs, keys));
        let [ours, _] = joined(&desktop, &between).await;
        let [_, theirs] = joined(&between, &remote).await;
        let ours = code(&ours, (desktop.public(), ours.peer));
        let theirs = code(&theirs, (theirs.peer, remote.public()));
        assert!(ours.desktop != theirs.desktop && ours.remote != theirs.remote);
        assert!(ours.desktop != ours.remote && ours.desktop.len() == 6 && ours.remote.len() == 6);
    }
}
