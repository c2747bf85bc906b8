//! Bundle addresses: a URL, or a tag or digest in an OCI registry.
//!
//! - Allows plain HTTP only for loopback addresses.

use crate::sha256::Sha256Digest;
use std::fmt;
use url::{Host, Position, Url};

/// Maximum length of a tag, in characters.
const MAX_TAG_LEN: usize = 128;

/// Address of a bundle: an `https` URL, or `oci://HOST/REPOSITORY:TAG`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleLocation(pub(crate) Source);

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    File(Url),
    Registry(OciImage),
}

/// Error returned for an invalid or insecure bundle address.
#[derive(Debug, thiserror::Error)]
pub enum LocationError {
    /// The URL is invalid or insecure.
    #[error(
        "expected an `https` or `oci` address of a bundle; plain `http` is allowed only for this computer"
    )]
    Url,
    /// The address in an OCI registry is invalid.
    #[error("expected `oci://HOST/REPOSITORY:TAG` or `oci://HOST/REPOSITORY@sha256:DIGEST`")]
    Oci,
}

/// Image in an OCI registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OciImage {
    /// URL of the registry, with an empty path.
    pub(crate) registry: Url,
    repository: String,
    reference: Reference,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Reference {
    Tag(String),
    Digest(Sha256Digest),
}

impl BundleLocation {
    /// Parses an address.
    ///
    /// # Errors
    /// Returns [`LocationError`] unless the address is an `https` URL, an `http` URL with a loopback host, or a tag or
    /// digest in an OCI registry.
    pub fn parse(address: &str) -> Result<Self, LocationError> {
        if let Some(image) = address.strip_prefix("oci://") {
            return OciImage::parse(image)
                .map(|image| Self(Source::Registry(image)))
                .ok_or(LocationError::Oci);
        }
        let url = Url::parse(address).map_err(|_| LocationError::Url)?;
        if is_secure(&url) { Ok(Self(Source::File(url))) } else { Err(LocationError::Url) }
    }
}

/// Omits the query, which may contain an API key.
impl fmt::Display for BundleLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Source::File(url) => f.write_str(&url[..Position::AfterPath]),
            Source::Registry(image) => image.fmt(f),
        }
    }
}

impl OciImage {
    /// Parses an address without `oci://`. A registry on this computer is contacted over plain HTTP.
    fn parse(address: &str) -> Option<Self> {
        let (host, path) = address.split_once('/')?;
        let mut registry = Url::parse(&format!("https://{host}")).ok()?;
        if is_loopback(&registry) {
            // The URL is parsed again, because the default port depends on the scheme.
            registry = Url::parse(&format!("http://{host}")).ok()?;
        }
        let is_host = registry[Position::AfterPort..] == *"/"
            && registry[Position::BeforeUsername..Position::BeforeHost].is_empty();
        let (repository, reference) = match path.split_once('@') {
            Some((repository, digest)) => (repository, Reference::Digest(Sha256Digest::parse(digest)?)),
            None => {
                let (repository, tag) = path.split_once(':')?;
                (repository, Reference::Tag(Some(tag).filter(|tag| is_tag(tag))?.to_owned()))
            }
        };
        let is_valid = is_host && repository.split('/').all(is_component);
        is_valid.then(|| Self { registry, repository: repository.to_owned(), reference })
    }

    /// Returns the URL of the image's manifest.
    pub(crate) fn manifest_url(&self) -> Url {
        self.url("manifests", self.reference.as_str())
    }

    /// Returns the URL of a blob.
    pub(crate) fn blob_url(&self, digest: &Sha256Digest) -> Url {
        self.url("blobs", digest.as_str())
    }

    fn url(&self, kind: &str, name: &str) -> Url {
        let mut url = self.registry.clone();
        url.set_path(&format!("/v2/{}/{kind}/{name}", self.repository));
        url
    }

    /// Returns the digest of the manifest, if the address contains it.
    pub(crate) fn digest(&self) -> Option<&Sha256Digest> {
        match &self.reference {
            Reference::Tag(_) => None,
            Reference::Digest(digest) => Some(digest),
        }
    }
}

impl fmt::Display for OciImage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let separator = if self.digest().is_some() { '@' } else { ':' };
        write!(f, "oci://{}/{}{separator}{}", host(&self.registry), self.repository, self.reference.as_str())
    }
}

impl Reference {
    fn as_str(&self) -> &str {
        match self {
            Self::Tag(tag) => tag,
            Self::Digest(digest) => digest.as_str(),
        }
    }
}

/// Returns a URL's host and port.
pub(crate) fn host(url: &Url) -> &str {
    &url[Position::BeforeHost..Position::AfterPort]
}

/// Returns `true` if the URL uses `https`, or `http` with a loopback host.
pub(crate) fn is_secure(url: &Url) -> bool {
    match url.scheme() {
        "https" => url.has_host(),
        "http" => is_loopback(url),
        _ => false,
    }
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns `true` for a valid component of a repository name. A component starts and ends with a lowercase letter or a
/// digit.
fn is_component(name: &str) -> bool {
    let is_alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.starts_with(is_alphanumeric)
        && name.ends_with(is_alphanumeric)
        && name.chars().all(|c| is_alphanumeric(c) || matches!(c, '.' | '_' | '-'))
}

fn is_tag(tag: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    tag.len() <= MAX_TAG_LEN
        && tag.starts_with(is_word)
        && tag.chars().all(|c| is_word(c) || matches!(c, '.' | '-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";

    #[test]
    fn plain_http_is_only_for_this_computer() {
        for good in [
            "https://bundles.example.com/b.tar.gz",
            "http://127.0.0.1:80/b",
            "http://[::1]/b",
            "http://localhost/b",
        ] {
            assert!(BundleLocation::parse(good).is_ok(), "{good}");
        }
        for bad in ["http://bundles.example.com/b", "http://localhost.example.com/b", "file:///b", "b"] {
            assert!(BundleLocation::parse(bad).is_err(), "{bad}");
        }
        let location = BundleLocation::parse("https://a.example/b?key=secret").unwrap();
        assert_eq!(location.to_string(), "https://a.example/b");
    }

    fn image(address: &str) -> OciImage {
        match BundleLocation::parse(address).unwrap().0 {
            Source::Registry(image) => image,
            Source::File(url) => panic!("{url}"),
        }
    }

    #[test]
    fn registries_use_https_except_on_this_computer() {
        for (address, expected) in [
            ("oci://r.example/team/rules:v1.2", "https://r.example/v2/team/rules/manifests/v1.2"),
            ("oci://r.example:5000/rules:latest", "https://r.example:5000/v2/rules/manifests/latest"),
            ("oci://r.example:80/rules:1", "https://r.example:80/v2/rules/manifests/1"),
            ("oci://localhost.example/rules:1", "https://localhost.example/v2/rules/manifests/1"),
            ("oci://localhost:5000/rules:1", "http://localhost:5000/v2/rules/manifests/1"),
            ("oci://[::1]:443/rules:1", "http://[::1]:443/v2/rules/manifests/1"),
            ("oci://127.0.0.1/a/b-c/d:_1", "http://127.0.0.1/v2/a/b-c/d/manifests/_1"),
        ] {
            assert_eq!(image(address).manifest_url().as_str(), expected);
            assert_eq!(image(address).to_string(), address);
        }
        let pinned = format!("oci://r.example/rules@{DIGEST}");
        assert_eq!(image(&pinned).to_string(), pinned);
        assert_eq!(image(&pinned).digest().unwrap().as_str(), DIGEST);
    }

    #[test]
    fn addresses_that_are_not_images_are_refused() {
        let long = format!("oci://r.example/rules:{}", "a".repeat(129));
        let upper = format!("oci://r.example/rules@{}", DIGEST.to_uppercase());
        for bad in [
            "oci://r.example",
            "oci://r.example/",
            "oci://r.example/rules",
            "oci://r.example/rules:",
            "oci://r.example/rules:a/b",
            "oci://r.example/rules:1?x=1",
            "oci://r.example/../rules:1",
            "oci://r.example/a//b:1",
            "oci://r.example/Rules:1",
            "oci://r.example/rules@sha256:abc",
            "oci://r.example/rules@sha512:abc",
            "oci://user:secret@r.example/rules:1",
            "oci://r.example?x/rules:1",
            "oci://r.example#x/rules:1",
            "oci://r.example\\x/rules:1",
            "oci:///rules:1",
            "OCI://r.example/rules:1",
            &long,
            &upper,
        ] {
            let refused = BundleLocation::parse(bad).unwrap_err().to_string();
            assert!(!refused.contains("secret") && refused.contains("oci"), "{bad}: {refused}");
        }
    }
}
