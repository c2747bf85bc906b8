//! Download errors, and the limits that they mention.

use crate::archive::MAX_BUNDLE_LEN;
use ironcurtain_tls::DialError;
use std::fmt;
use std::time::Duration;

/// Media type of an image manifest.
pub(crate) const MANIFEST_TYPE: &str = "application/vnd.oci.image.manifest.v1+json";

/// Media type of a bundle, according to OPA.
pub(crate) const LAYER_TYPE: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// Maximum size of a manifest, in bytes.
pub(crate) const MAX_MANIFEST_LEN: usize = 1024 * 1024;

/// Maximum number of redirects that are followed for a bundle.
pub(crate) const MAX_REDIRECTS: usize = 2;

/// Error returned when a download fails.
#[derive(Debug, thiserror::Error)]
pub enum DownloadError {
    /// The address cannot be sent in a request.
    #[error("the address of the bundle on {0} contains invalid characters")]
    Address(BundleHost),
    /// Connecting to the server failed.
    #[error("failed to connect to {0}: {1}")]
    Connect(BundleHost, DialError),
    /// A step of the download timed out.
    #[error("{0} did not answer within {seconds} s", seconds = .1.as_secs())]
    Timeout(BundleHost, Duration),
    /// The connection failed, or the response is not valid HTTP.
    #[error("the connection to {0} failed: {1}")]
    Http(BundleHost, hyper::Error),
    /// The bundle is too large.
    #[error("the bundle is larger than {} MiB", MAX_BUNDLE_LEN / 1024 / 1024)]
    TooLarge,
    /// The server responded with a redirect.
    #[error("{0} answered with a redirect ({1}), which is not followed")]
    Redirect(BundleHost, u16),
    /// The server requires credentials, or refused the token.
    #[error("{0} refused the token ({1})")]
    Unauthorized(BundleHost, u16),
    /// The server responded with an unexpected status code.
    #[error("{0} answered with the status {1}")]
    Status(BundleHost, u16),
    /// The token contains characters that are not allowed in a header.
    #[error("the token for the bundle server contains invalid characters")]
    Token,
    /// The registry did not provide a valid bundle.
    #[error("failed to download `{0}`: {1}")]
    Oci(String, OciError),
}

/// Error returned when a registry does not provide a valid bundle.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    /// The response is not an image manifest.
    #[error("the registry did not send a manifest of the type `{}`", MANIFEST_TYPE)]
    ManifestType,
    /// The manifest is too large.
    #[error("the manifest is larger than {} MiB", MAX_MANIFEST_LEN / 1024 / 1024)]
    ManifestSize,
    /// The manifest does not have the configured digest.
    #[error("the manifest does not have the digest in the address")]
    ManifestDigest,
    /// The manifest is malformed.
    #[error("the manifest is malformed at line {line}, column {column}")]
    Manifest {
        /// Line of the error.
        line: usize,
        /// Column of the error.
        column: usize,
    },
    /// The manifest does not contain exactly one bundle layer.
    #[error("the manifest has {0} layers of the type `{kind}`; expected exactly one", kind = LAYER_TYPE)]
    Layers(usize),
    /// The layer's digest uses a different algorithm or is malformed.
    #[error("the digest of the bundle's layer is not a SHA-256 digest")]
    LayerDigest,
    /// The bundle is too large.
    #[error("the bundle is larger than {} MiB", MAX_BUNDLE_LEN / 1024 / 1024)]
    LayerSize,
    /// The bundle does not match the manifest.
    #[error("the bundle does not have the size and digest that the manifest states")]
    Content,
    /// The registry requires a login that is not supported.
    #[error("the registry requires a login that is not supported; expected `Basic` or `Bearer`")]
    Challenge,
    /// The registry named an insecure token service.
    #[error("the registry named a token service without `https`")]
    TokenService,
    /// The token service did not send a token.
    #[error("the token service did not send a token")]
    NoToken,
    /// The registry redirected to an invalid or insecure address.
    #[error("the registry redirected the download to an address without `https`")]
    RedirectTarget,
    /// There are too many redirects.
    #[error("the registry redirected the download more than {} times", MAX_REDIRECTS)]
    Redirects,
}

/// Server that takes part in a download.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BundleHost {
    /// The configured web server.
    Server,
    /// The configured OCI registry.
    Registry(String),
    /// Token service that the registry named.
    TokenService(String),
    /// Host to which the registry redirected the download.
    Storage(String),
}

impl fmt::Display for BundleHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server => f.write_str("the bundle server"),
            Self::Registry(host) => write!(f, "the registry `{host}`"),
            Self::TokenService(host) => write!(f, "the token service `{host}`"),
            Self::Storage(host) => write!(f, "the storage host `{host}`"),
        }
    }
}
