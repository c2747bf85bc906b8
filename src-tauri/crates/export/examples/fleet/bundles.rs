//! Simulated bundle server and its bundles.

use super::site::{Answered, Site};
use base64::Engine;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_bundle::{BundleSource, SigningKey, VerifyingKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Number of rules in a bundle.
pub const RULES: usize = 200;

/// Organization that signs bundles.
pub struct Organization(SigningKey);

/// Bundle server with its current bundle and that bundle's sequence number.
pub struct BundleServer {
    pub site: Arc<Site>,
    current: watch::Sender<(u64, Bytes)>,
}

impl Organization {
    pub fn new() -> Self {
        let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        let key = base64::prelude::BASE64_STANDARD.encode(key.expect("a key"));
        let label = "PRIVATE KEY-----";
        let pem = format!("-----BEGIN {label}\n{key}\n-----END {label}\n");
        Self(SigningKey::from_pem(&pem).expect("a key"))
    }

    pub fn public_key(&self) -> VerifyingKey {
        self.0.verifying_key().expect("a key")
    }

    pub fn bundle(&self, sequence: u64) -> Bytes {
        let rule = |n: usize| {
            serde_json::json!({
                "name": format!("no-customer-data-{n}"),
                "if": { "paths": { "roles": ["read-path", "write-path"], "within": format!("~/customers/{n}") } },
                "then": "deny",
                "reason": "Agents must not use customer data.",
            })
        };
        let policy = serde_json::json!({
            "schemaVersion": 1,
            "rules": (0..RULES).map(rule).collect::<Vec<_>>(),
        });
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::write(dir.path().join("compiled-policy.json"), policy.to_string()).expect("a file");
        let source = BundleSource::read(dir.path()).expect("rules");
        source.build(&self.0, format!("r{sequence}"), sequence, now_ms() / 1000).expect("a bundle").into()
    }
}

impl BundleServer {
    /// Starts a server that serves `bundle` with the sequence number 1.
    pub fn start(bundle: Bytes, supports_long_polling: bool) -> Self {
        let current = watch::Sender::new((1, bundle));
        let of_site = current.clone();
        let site = Site::new(move |request| answer(request, of_site.subscribe(), supports_long_polling));
        Self { site, current }
    }

    pub fn publish(&self, sequence: u64, bundle: Bytes) {
        self.current.send_replace((sequence, bundle));
    }
}

fn answer(
    request: Request<Incoming>,
    mut current: watch::Receiver<(u64, Bytes)>,
    supports_long_polling: bool,
) -> Answered {
    let text = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let known = text("if-none-match").map(str::to_owned);
    let wait = text("prefer").and_then(|prefer| prefer.split_once("wait=")?.1.parse().ok());
    let wait = wait.filter(|_| supports_long_polling).map(Duration::from_secs);
    Box::pin(async move {
        let is_new = |(sequence, _): &(u64, Bytes)| known.as_ref() != Some(&format!("\"{sequence}\""));
        if let Some(wait) = wait {
            // A timeout means that the bundle is unchanged.
            let _ = tokio::time::timeout(wait, current.wait_for(is_new)).await;
        }
        let bundle = current.borrow().clone();
        let (status, body) = match is_new(&bundle) {
            true => (StatusCode::OK, bundle.1),
            false => (StatusCode::NOT_MODIFIED, Bytes::new()),
        };
        let mut response = Response::new(Full::new(body));
        *response.status_mut() = status;
        let kind = match supports_long_polling {
            true => "application/vnd.openpolicyagent.bundles",
            false => "application/gzip",
        };
        let etag = HeaderValue::try_from(format!("\"{}\"", bundle.0)).ok()?;
        response.headers_mut().insert(header::ETAG, etag);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        Some(response)
    })
}
