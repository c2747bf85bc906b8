//! Signed policy bundles that are compatible with Open Policy Agent (OPA).
//!
//! - A bundle is a gzip-compressed tar archive with `.manifest`, `.signatures.json` and `data.json` files. Any OPA
//!   bundle server, web server or CDN can serve it, and `opa build` can create it.
//! - Nothing in a bundle is used before its signature is verified and every file matches its signed hash.
//! - This crate does not interpret rules: the documents in a bundle are plain JSON values.

mod archive;
mod build;
mod bundle;
mod download;
mod download_error;
mod error;
mod hash;
mod http;
mod key;
mod location;
mod oci;
mod poller;
mod sha256;
mod signature;
mod store;

pub use archive::{ArchiveError, MAX_BUNDLE_LEN};
pub use build::{BundleBuildError, BundleSource};
pub use bundle::PolicyBundle;
pub use download::{BundleClient, Downloaded};
pub use download_error::{BundleHost, DownloadError, OciError};
pub use error::PolicyBundleError;
pub use key::{KeyError, SigningKey, VerifyingKey};
pub use location::{BundleLocation, LocationError};
pub use poller::{PollInterval, Poller};
pub use store::{BundleStore, BundleStoreError};
