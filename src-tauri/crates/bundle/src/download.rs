//! Downloads bundles over HTTP using OPA's bundle protocol, or from an OCI registry.
//!
//! - Sends `If-None-Match` to avoid downloading an unchanged bundle, and `Prefer: modes=snapshot;wait=N` to let the
//!   server delay its response until a new bundle is available (long polling).
//! - Does not follow redirects from web servers, because the token is only meant for the configured server.
//! - Does not trust the server: sizes and times are limited, and no text from the server is displayed.

use crate::archive::MAX_BUNDLE_LEN;
use crate::download_error::{BundleHost, DownloadError};
use crate::http;
use crate::location::{BundleLocation, Source};
use crate::oci;
use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use ironcurtain_tls::StreamDialer;
use std::fmt;
use std::time::Duration;
use url::Url;
use zeroize::Zeroizing;

/// Result of a download.
#[derive(Debug, PartialEq, Eq)]
pub enum Downloaded {
    /// The bundle has not changed.
    Unchanged,
    /// The server sent a bundle.
    New {
        /// The bundle, not yet verified.
        bytes: Bytes,
        /// `ETag` header of the response, or the manifest's digest in an OCI registry.
        etag: Option<String>,
        /// `true` if the server supports long polling.
        supports_long_polling: bool,
    },
}

/// Client for one bundle.
pub struct BundleClient {
    location: BundleLocation,
    token: Option<Zeroizing<String>>,
    dialer: StreamDialer,
}

impl BundleClient {
    /// Creates a client that sends `token`, if any, as a bearer token. For an OCI registry, `token` can also be
    /// `USER:PASSWORD`.
    #[must_use]
    pub fn new(location: BundleLocation, token: Option<Zeroizing<String>>) -> Self {
        Self { location, token, dialer: StreamDialer::default() }
    }

    /// Returns this client with a different dialer.
    #[must_use]
    pub fn with_dialer(self, dialer: StreamDialer) -> Self {
        Self { dialer, ..self }
    }

    /// Downloads the bundle unless its `ETag` equals `etag`. If `wait` is set, a web server may delay its response for
    /// up to that time until the bundle changes.
    ///
    /// # Errors
    /// Returns [`DownloadError`] if the connection fails or the server does not send a bundle.
    pub async fn download(
        &self,
        etag: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Downloaded, DownloadError> {
        match &self.location.0 {
            Source::File(url) => self.download_file(url, etag, wait).await,
            Source::Registry(image) => {
                let token = self.token.as_ref().map(|token| token.as_str());
                let Some((bytes, digest)) = oci::pull(&self.dialer, image, token, etag).await? else {
                    return Ok(Downloaded::Unchanged);
                };
                let etag = Some(digest.as_str().to_owned());
                Ok(Downloaded::New { bytes, etag, supports_long_polling: false })
            }
        }
    }

    async fn download_file(
        &self,
        url: &Url,
        etag: Option<&str>,
        wait: Option<Duration>,
    ) -> Result<Downloaded, DownloadError> {
        let headers = self.headers(etag, wait)?;
        let response =
            http::get(&self.dialer, url, BundleHost::Server, headers, wait.unwrap_or_default()).await?;
        // If the request had no `ETag`, `304 Not Modified` is an error.
        if response.status() == StatusCode::NOT_MODIFIED && etag.is_some() {
            return Ok(Downloaded::Unchanged);
        }
        let response = response.ok()?;
        let etag = response.header(header::ETAG).map(str::to_owned);
        let kind = response.header(header::CONTENT_TYPE).unwrap_or_default();
        let supports_long_polling = kind == "application/vnd.openpolicyagent.bundles";
        let bytes = response.body(MAX_BUNDLE_LEN).await?.ok_or(DownloadError::TooLarge)?;
        Ok(Downloaded::New { bytes, etag, supports_long_polling })
    }

    fn headers(&self, etag: Option<&str>, wait: Option<Duration>) -> Result<HeaderMap, DownloadError> {
        let mut headers = HeaderMap::new();
        if let Some(token) = &self.token {
            headers.insert(header::AUTHORIZATION, http::authorization("Bearer", token)?);
        }
        if let Some(etag) = etag.and_then(|etag| HeaderValue::from_str(etag).ok()) {
            headers.insert(header::IF_NONE_MATCH, etag);
        }
        let prefer = match wait {
            Some(wait) => format!("modes=snapshot;wait={}", wait.as_secs()),
            None => "modes=snapshot".to_owned(),
        };
        headers.extend(HeaderValue::from_str(&prefer).ok().map(|value| (PREFER, value)));
        Ok(headers)
    }
}

/// Omits the token.
impl fmt::Debug for BundleClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BundleClient").field("location", &self.location).finish_non_exhaustive()
    }
}

const PREFER: HeaderName = HeaderName::from_static("prefer");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_headers_of_the_protocol() {
        let url = Url::parse("https://a.example:8443/b?x=1").unwrap();
        let location = BundleLocation(Source::File(url.clone()));
        let client = BundleClient::new(location, Some(Zeroizing::new("t0ken\n".to_owned())));
        let headers = client.headers(Some("\"e\""), Some(Duration::from_secs(30))).unwrap();
        let request = http::request(&url, headers).unwrap();
        let text = |name: &str| request.headers()[name].to_str().unwrap();
        assert_eq!(request.uri(), "/b?x=1");
        assert_eq!([text("host"), text("authorization")], ["a.example:8443", "Bearer t0ken"]);
        assert_eq!([text("if-none-match"), text("prefer")], ["\"e\"", "modes=snapshot;wait=30"]);
        assert!(!format!("{client:?} {request:?}").contains("t0ken"));
    }
}
