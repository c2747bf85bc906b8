//! Downloads bundles from OCI registries. As in OPA, a bundle is the only layer of its type in an image.
//!
//! - Requests the manifest each time. Its digest determines whether the bundle has changed, so an unchanged tag
//!   requires no other request.
//! - Refuses bundles that do not have the size and SHA-256 digest that the manifest states.
//! - Follows redirects only for the bundle, and without the token.
//! - Sends passwords only to the registry and to the token service that the registry names.

mod challenge;
mod manifest;

use crate::download_error::{
    BundleHost, DownloadError, MANIFEST_TYPE, MAX_MANIFEST_LEN, MAX_REDIRECTS, OciError,
};
use crate::http::{self, BundleResponse};
use crate::location::{OciImage, host, is_secure};
use crate::sha256::Sha256Digest;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use challenge::{Challenge, TokenRequest};
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use ironcurtain_tls::StreamDialer;
use manifest::Layer;
use serde::Deserialize;
use std::time::Duration;
use url::Url;
use zeroize::Zeroizing;

/// Maximum size of a token service's response, in bytes.
const MAX_TOKEN_LEN: usize = 64 * 1024;

/// Downloads an image's bundle and returns it with the manifest's digest. Returns `None` if the digest equals `known_digest`.
pub(crate) async fn pull(
    dialer: &StreamDialer,
    image: &OciImage,
    token: Option<&str>,
    known_digest: Option<&str>,
) -> Result<Option<(Bytes, Sha256Digest)>, DownloadError> {
    let error = |problem| DownloadError::Oci(image.to_string(), problem);
    let mut registry = RegistryClient { dialer, image, error: &error, authorization: None };
    let manifest = registry.manifest(token.map(str::trim)).await?;
    let digest = Sha256Digest::compute(&manifest);
    if image.digest().is_some_and(|expected| *expected != digest) {
        return Err(error(OciError::ManifestDigest));
    }
    if known_digest == Some(digest.as_str()) {
        return Ok(None);
    }
    let layer = Layer::from_manifest(&manifest).map_err(error)?;
    let bytes = registry.blob(&layer).await?;
    Ok(Some((bytes, digest)))
}

struct RegistryClient<'a, F> {
    dialer: &'a StreamDialer,
    image: &'a OciImage,
    /// Creates an error that names the image.
    error: &'a F,
    authorization: Option<HeaderValue>,
}

impl<F: Fn(OciError) -> DownloadError> RegistryClient<'_, F> {
    async fn manifest(&mut self, token: Option<&str>) -> Result<Bytes, DownloadError> {
        let url = self.image.manifest_url();
        // A password is sent only if the registry requires it.
        let password = token.filter(|token| token.contains(':'));
        let bearer = token.filter(|token| !token.contains(':'));
        self.authorization = bearer.map(|token| http::authorization("Bearer", token)).transpose()?;
        let mut response = self.get(&url, MANIFEST_TYPE).await?;
        if response.status() == StatusCode::UNAUTHORIZED && bearer.is_none() {
            self.authorization = Some(self.authorize(response, password).await?);
            response = self.get(&url, MANIFEST_TYPE).await?;
        }
        let response = response.ok()?;
        let kind = response.header(header::CONTENT_TYPE).unwrap_or_default();
        if kind.split(';').next().unwrap_or_default().trim() != MANIFEST_TYPE {
            return Err((self.error)(OciError::ManifestType));
        }
        let body = response.body(MAX_MANIFEST_LEN).await?;
        body.ok_or_else(|| (self.error)(OciError::ManifestSize))
    }

    /// Returns the credentials that the registry requires.
    async fn authorize(
        &self,
        response: BundleResponse,
        password: Option<&str>,
    ) -> Result<HeaderValue, DownloadError> {
        let encode = |password| Zeroizing::new(STANDARD.encode(password));
        let basic = password.map(|password| http::authorization("Basic", &encode(password))).transpose()?;
        let challenge = Challenge::find(response.header_values(header::WWW_AUTHENTICATE));
        match challenge.ok_or_else(|| (self.error)(OciError::Challenge))? {
            Challenge::Basic => {
                let status = response.status().as_u16();
                basic.ok_or_else(|| DownloadError::Unauthorized(self.host(), status))
            }
            Challenge::Bearer(request) => self.request_token(&request, basic).await,
        }
    }

    async fn request_token(
        &self,
        request: &TokenRequest,
        basic: Option<HeaderValue>,
    ) -> Result<HeaderValue, DownloadError> {
        let url = request.url().filter(|url| self.is_allowed(url));
        let url = url.ok_or_else(|| (self.error)(OciError::TokenService))?;
        let service = BundleHost::TokenService(host(&url).to_owned());
        let response =
            http::get(self.dialer, &url, service, headers("application/json", basic), Duration::ZERO).await?;
        let body = response.ok()?.body(MAX_TOKEN_LEN).await?.unwrap_or_default();
        let issued: Option<IssuedToken> = serde_json::from_slice(&body).ok();
        let token = issued.and_then(|issued| issued.token.or(issued.access_token));
        let token = token.ok_or_else(|| (self.error)(OciError::NoToken))?;
        http::authorization("Bearer", &Zeroizing::new(token))
    }

    async fn blob(&self, layer: &Layer) -> Result<Bytes, DownloadError> {
        let mut url = self.image.blob_url(&layer.digest);
        let mut response = self.get(&url, "*/*").await?;
        for _ in 0..MAX_REDIRECTS {
            if !response.status().is_redirection() {
                break;
            }
            let target = response.header(header::LOCATION).and_then(|target| url.join(target).ok());
            let target = target.filter(|target| self.is_allowed(target));
            url = target.ok_or_else(|| (self.error)(OciError::RedirectTarget))?;
            let storage = BundleHost::Storage(host(&url).to_owned());
            response = http::get(self.dialer, &url, storage, headers("*/*", None), Duration::ZERO).await?;
        }
        if response.status().is_redirection() {
            return Err((self.error)(OciError::Redirects));
        }
        let body = response.ok()?.body(layer.size).await?;
        let matches_descriptor =
            |bytes: &Bytes| bytes.len() == layer.size && Sha256Digest::compute(bytes) == layer.digest;
        body.filter(matches_descriptor).ok_or_else(|| (self.error)(OciError::Content))
    }

    async fn get(&self, url: &Url, accept: &'static str) -> Result<BundleResponse, DownloadError> {
        let headers = headers(accept, self.authorization.clone());
        http::get(self.dialer, url, self.host(), headers, Duration::ZERO).await
    }

    fn host(&self) -> BundleHost {
        BundleHost::Registry(host(&self.image.registry).to_owned())
    }

    /// Returns `true` if the registry may send this client to the address. Addresses without `https` must be on this
    /// computer, and only a registry on this computer may name them.
    fn is_allowed(&self, url: &Url) -> bool {
        is_secure(url) && (url.scheme() == "https" || self.image.registry.scheme() == "http")
    }
}

/// Token service response. Token services use one of these two fields.
#[derive(Deserialize)]
struct IssuedToken {
    token: Option<String>,
    access_token: Option<String>,
}

fn headers(accept: &'static str, authorization: Option<HeaderValue>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
    headers.extend(authorization.map(|value| (header::AUTHORIZATION, value)));
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::location::{BundleLocation, Source};

    #[test]
    fn only_a_registry_on_this_computer_may_name_addresses_without_https() {
        let allows = |registry: &str, url: &str| {
            let Source::Registry(image) = BundleLocation::parse(registry).unwrap().0 else { unreachable!() };
            let error = |problem| DownloadError::Oci(image.to_string(), problem);
            let dialer = StreamDialer::default();
            let registry =
                RegistryClient { dialer: &dialer, image: &image, error: &error, authorization: None };
            registry.is_allowed(&Url::parse(url).unwrap())
        };
        let (far, near) = ("oci://r.example/rules:1", "oci://localhost:5000/rules:1");
        for (url, from_far, from_near) in [
            ("https://storage.example/x", true, true),
            ("http://127.0.0.1:8080/x", false, true),
            ("http://storage.example/x", false, false),
            ("file:///etc/passwd", false, false),
            ("data:,x", false, false),
        ] {
            assert_eq!((allows(far, url), allows(near, url)), (from_far, from_near), "{url}");
        }
    }
}
