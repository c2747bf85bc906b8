//! Finds the bundle in the manifest of an OCI image.

use crate::archive::MAX_BUNDLE_LEN;
use crate::download_error::{LAYER_TYPE, MANIFEST_TYPE, OciError};
use crate::sha256::Sha256Digest;
use serde::Deserialize;

/// Layer that contains a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layer {
    pub(super) digest: Sha256Digest,
    /// Size in bytes, at most [`MAX_BUNDLE_LEN`].
    pub(super) size: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ImageManifest {
    #[serde(default)]
    media_type: Option<String>,
    layers: Vec<Descriptor>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Descriptor {
    media_type: String,
    digest: String,
    size: u64,
}

impl Layer {
    /// Returns the only layer with a bundle.
    pub(super) fn from_manifest(manifest: &[u8]) -> Result<Self, OciError> {
        let manifest: ImageManifest = serde_json::from_slice(manifest).map_err(|problem| {
            // The error's message may contain text from the registry, so only its position is used.
            OciError::Manifest { line: problem.line(), column: problem.column() }
        })?;
        if manifest.media_type.is_some_and(|kind| kind != MANIFEST_TYPE) {
            return Err(OciError::ManifestType);
        }
        let layers: Vec<_> =
            manifest.layers.into_iter().filter(|layer| layer.media_type == LAYER_TYPE).collect();
        let [layer] = layers.as_slice() else { return Err(OciError::Layers(layers.len())) };
        let digest = Sha256Digest::parse(&layer.digest).ok_or(OciError::LayerDigest)?;
        let size = usize::try_from(layer.size).ok().filter(|size| *size <= MAX_BUNDLE_LEN);
        Ok(Self { digest, size: size.ok_or(OciError::LayerSize)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_has_exactly_one_bundle() {
        let digest = Sha256Digest::compute(b"{}");
        let layer = |kind: &str, digest: &str, size: u64| {
            format!(r#"{{"mediaType":"{kind}","digest":"{digest}","size":{size},"annotations":{{}}}}"#)
        };
        let of = |layers: &[String]| {
            let manifest = format!(r#"{{"schemaVersion":2,"config":{{}},"layers":[{}]}}"#, layers.join(","));
            Layer::from_manifest(manifest.as_bytes()).map_err(|problem| problem.to_string())
        };
        let (good, other) = (layer(LAYER_TYPE, digest.as_str(), 2), layer("text/plain", "x", 1));
        assert_eq!(of(&[other.clone(), good.clone()]), Ok(Layer { digest: digest.clone(), size: 2 }));
        for (layers, expected) in [
            (vec![], "has 0 layers of the type `application/vnd.oci.image.layer.v1.tar+gzip`"),
            (vec![other], "has 0 layers of the type"),
            (vec![good.clone(), good], "has 2 layers of the type"),
            (vec![layer(LAYER_TYPE, "sha512:00", 2)], "is not a SHA-256 digest"),
            (vec![layer(LAYER_TYPE, "sha256:../../x", 2)], "is not a SHA-256 digest"),
            (vec![layer(LAYER_TYPE, digest.as_str(), 1 << 40)], "the bundle is larger than 32 MiB"),
            (vec!["7".to_owned()], "malformed at line 1, column "),
        ] {
            let refused = of(&layers).unwrap_err();
            assert!(refused.contains(expected), "{refused}");
        }
        let index = br#"{"mediaType":"application/vnd.oci.image.index.v1+json","layers":[]}"#;
        assert!(matches!(Layer::from_manifest(index), Err(OciError::ManifestType)));
    }
}
