//! Signs and verifies `.signatures.json`: a JSON Web Signature over the hashes of all other files in a bundle.

use crate::archive::{Files, normalize_name};
use crate::error::PolicyBundleError;
use crate::hash::HashAlgorithm;
use crate::key::{KeyError, SigningKey, VerifyingKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the signature file.
pub(crate) const SIGNATURES: &str = ".signatures.json";

/// Maximum time in seconds by which a signing time may be ahead of this machine's clock: one day.
pub(crate) const MAX_CLOCK_SKEW: u64 = 24 * 60 * 60;

#[derive(Serialize, Deserialize)]
struct StoredSignatures {
    signatures: Vec<String>,
}

#[derive(Serialize, Deserialize)]
struct Header {
    alg: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    typ: Option<String>,
    /// Extensions that a verifier must understand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    crit: Option<serde_json::Value>,
}

#[derive(Serialize, Deserialize)]
struct Payload {
    files: Vec<SignedFile>,
    /// Signing time, in seconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iat: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct SignedFile {
    name: String,
    hash: String,
    algorithm: HashAlgorithm,
}

/// Returns the content of `.signatures.json` for the given files. `now` is the current time in seconds since the
/// Unix epoch.
pub(crate) fn sign(files: &Files, key: &SigningKey, now: u64) -> Result<Vec<u8>, KeyError> {
    let signed = files.iter().filter_map(|(name, bytes)| {
        let hash = HashAlgorithm::Sha256.hash(name, bytes).ok()?;
        Some(SignedFile { name: name.clone(), hash, algorithm: HashAlgorithm::Sha256 })
    });
    let payload = Payload { files: signed.collect(), iat: Some(now) };
    let header = Header { alg: "ES256".to_owned(), typ: Some("JWT".to_owned()), crit: None };
    let message = format!("{}.{}", encode(&header), encode(&payload));
    let signature = key.sign(message.as_bytes())?;
    let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
    Ok(serde_json::to_vec(&StoredSignatures { signatures: vec![token] }).unwrap_or_default())
}

/// Verifies the signature and checks that `files` are exactly the signed files with the signed hashes. `max_time` is the
/// latest permitted signing time in seconds since the Unix epoch.
pub(crate) fn verify(files: &Files, key: &VerifyingKey, max_time: u64) -> Result<(), PolicyBundleError> {
    let stored = files.get(SIGNATURES).ok_or(PolicyBundleError::Unsigned)?;
    let stored: StoredSignatures =
        serde_json::from_slice(stored).map_err(|_| PolicyBundleError::Signatures)?;
    let [token] = stored.signatures.as_slice() else { return Err(PolicyBundleError::Signatures) };
    let payload = payload(token, key)?;
    if let Some(signed) = payload.iat.filter(|signed| *signed > max_time) {
        return Err(PolicyBundleError::Clock {
            ahead_hours: (signed - max_time).saturating_add(MAX_CLOCK_SKEW) / 3600,
        });
    }
    let mut expected = BTreeMap::new();
    for file in payload.files {
        let name = normalize_name(&file.name)
            .ok_or_else(|| PolicyBundleError::Missing(file.name.clone()))?
            .to_owned();
        expected.insert(name, (file.hash, file.algorithm));
    }
    for (name, bytes) in files.iter().filter(|(name, _)| *name != SIGNATURES) {
        let (hash, algorithm) =
            expected.remove(name).ok_or_else(|| PolicyBundleError::UnsignedFile(name.clone()))?;
        let found = algorithm.hash(name, bytes).map_err(|problem| PolicyBundleError::Document {
            name: name.clone(),
            problem: problem.to_string(),
        })?;
        if !found.eq_ignore_ascii_case(&hash) {
            return Err(PolicyBundleError::Changed(name.clone()));
        }
    }
    expected.into_keys().next().map_or(Ok(()), |missing| Err(PolicyBundleError::Missing(missing)))
}

/// Verifies a token's signature and returns its payload.
fn payload(token: &str, key: &VerifyingKey) -> Result<Payload, PolicyBundleError> {
    let (message, signature) = token.rsplit_once('.').ok_or(PolicyBundleError::Signatures)?;
    let (header, payload) = message.split_once('.').ok_or(PolicyBundleError::Signatures)?;
    let parsed: Header = decode(header)?;
    if parsed.alg != "ES256" || parsed.crit.is_some() {
        return Err(PolicyBundleError::Algorithm(parsed.alg));
    }
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| PolicyBundleError::Signatures)?;
    if !key.verifies(message.as_bytes(), &signature) {
        return Err(PolicyBundleError::WrongSignature);
    }
    decode(payload)
}

fn encode(value: &impl Serialize) -> String {
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(value).unwrap_or_default())
}

fn decode<T: DeserializeOwned>(part: &str) -> Result<T, PolicyBundleError> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| PolicyBundleError::Signatures)?;
    serde_json::from_slice(&bytes).map_err(|_| PolicyBundleError::Signatures)
}
