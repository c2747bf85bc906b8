//! Tests signatures, the bundle store, and downloads from misbehaving servers.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod oci;

use ironcurtain_bundle::{
    BundleClient, BundleLocation, BundleSource, BundleStore, BundleStoreError, DownloadError, Downloaded,
    MAX_BUNDLE_LEN, PolicyBundle, PolicyBundleError, SigningKey, VerifyingKey,
};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

/// Signing time of all bundles, in seconds since the Unix epoch.
const SIGNED: u64 = 1_800_000_000;

fn key(dir: &Path) -> SigningKey {
    let done = Command::new("openssl")
        .args(["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"])
        .output()
        .expect("`openssl` is installed");
    std::fs::write(dir.join("key.pem"), &done.stdout).unwrap();
    SigningKey::from_pem(&String::from_utf8(done.stdout).unwrap()).unwrap()
}

fn built(key: &SigningKey, sequence: u64, policy: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("compiled-policy.json"), policy).unwrap();
    BundleSource::read(dir.path()).unwrap().build(key, "r".to_owned(), sequence, SIGNED).unwrap()
}

/// Modifies a bundle's files without updating the signature.
fn changed(bundle: &[u8], change: impl Fn(&str, Vec<u8>) -> Vec<(String, Vec<u8>)>) -> Vec<u8> {
    let mut archive = tar::Archive::new(flate2::read::GzDecoder::new(bundle));
    let mut result =
        tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().to_str().unwrap().to_owned();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        for (name, bytes) in change(&name, bytes) {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            result.append_data(&mut header, name, bytes.as_slice()).unwrap();
        }
    }
    result.into_inner().unwrap().finish().unwrap()
}

#[test]
fn only_what_was_signed_is_accepted() {
    let dir = tempfile::tempdir().unwrap();
    let key = key(dir.path());
    let (public, other) = (key.verifying_key().unwrap(), self::key(dir.path()).verifying_key().unwrap());
    let good = built(&key, 7, r#"{ "rules": [], "x": 1.50 }"#);
    let open =
        |bytes: &[u8]| PolicyBundle::open(bytes, &public, SIGNED).map_err(|problem| problem.to_string());
    let bundle = open(&good).unwrap();
    assert_eq!((bundle.revision.as_str(), bundle.sequence), ("r", 7));
    assert_eq!(bundle.document("policy").unwrap()["rules"], serde_json::json!([]));
    assert_eq!(bundle.document("lists"), None);
    assert!(matches!(PolicyBundle::open(&good, &other, SIGNED), Err(PolicyBundleError::WrongSignature)));

    let one = |name: &str, bytes: Vec<u8>| vec![(name.to_owned(), bytes)];
    // Whitespace and key order do not affect a document's hash.
    let spaced = changed(&good, |name, bytes| match name {
        "ironcurtain/policy/data.json" => one(name, b"{\"x\":1.50,\n\"rules\":[ ]}".to_vec()),
        _ => one(name, bytes),
    });
    assert_eq!(open(&spaced).unwrap(), bundle);
    for (policy, expected) in [
        (r#"{"rules":[],"x":1.5}"#, "was changed after it was signed"),
        (r#"{"rules":[1],"x":1.50}"#, "was changed after it was signed"),
        ("{", "EOF while parsing"),
    ] {
        let changed = changed(&good, |name, bytes| match name {
            "ironcurtain/policy/data.json" => one(name, policy.as_bytes().to_vec()),
            _ => one(name, bytes),
        });
        let refused = open(&changed).unwrap_err();
        assert!(refused.contains(expected) && refused.contains("ironcurtain/policy/data.json"), "{refused}");
    }
    let extra = changed(&good, |name, bytes| match name {
        ".manifest" => vec![(name.to_owned(), bytes), ("extra.rego".to_owned(), Vec::new())],
        _ => one(name, bytes),
    });
    assert_eq!(open(&extra).unwrap_err(), "the file `extra.rego` is not part of the signature");
    let without = |removed: &str| {
        changed(&good, |name, bytes| if name == removed { Vec::new() } else { one(name, bytes) })
    };
    assert_eq!(open(&without(".manifest")).unwrap_err(), "the signed file `.manifest` is missing");
    assert!(open(&without(".signatures.json")).unwrap_err().starts_with("it is not signed"));
    let unsigned = r#"{"signatures":["eyJhbGciOiJub25lIn0.e30."]}"#;
    let none = changed(&good, |name, bytes| match name {
        ".signatures.json" => one(name, unsigned.as_bytes().to_vec()),
        _ => one(name, bytes),
    });
    assert_eq!(open(&none).unwrap_err(), "the signature algorithm `none` is not allowed; expected `ES256`");
}

#[test]
fn a_signature_from_the_future_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let key = key(dir.path());
    let public = key.verifying_key().unwrap();
    let bundle = built(&key, 1, r#"{ "rules": [] }"#);
    let day = 24 * 60 * 60;
    assert!(PolicyBundle::open(&bundle, &public, SIGNED - day).is_ok());
    let early = PolicyBundle::open(&bundle, &public, SIGNED - day - 1).unwrap_err();
    assert!(early.to_string().contains("signed 24 hours in the future; check the clock"), "{early}");
}

#[test]
fn an_older_bundle_does_not_replace_the_kept_one() {
    let dir = tempfile::tempdir().unwrap();
    let key = key(dir.path());
    let public = key.verifying_key().unwrap();
    let store = BundleStore::new(dir.path().join("managed/bundle.tar.gz"));
    assert_eq!(store.read(&public).unwrap(), None);
    let bundles = [5, 4, 5, 6].map(|sequence| built(&key, sequence, r#"{ "rules": [] }"#));
    let first = store.replace(None, &bundles[0], &public, SIGNED).unwrap();
    let older = store.replace(Some(&first), &bundles[1], &public, SIGNED).unwrap_err();
    assert!(matches!(older, BundleStoreError::Rollback { found: 4, stored: 5 }), "{older}");
    assert_eq!(store.replace(Some(&first), &bundles[2], &public, SIGNED).unwrap(), first);
    let other = built(&key, 5, r#"{ "rules": [1] }"#);
    let same = store.replace(Some(&first), &other, &public, SIGNED).unwrap_err();
    assert!(matches!(same, BundleStoreError::SameSequence(5)), "{same}");
    let newer = store.replace(Some(&first), &bundles[3], &public, SIGNED).unwrap();
    assert_eq!(store.read(&public).unwrap(), Some(newer));
    // If the clock is set back, the stored bundle stays in effect, but a downloaded bundle is refused.
    let kept = store.read(&public).unwrap();
    let early = store.replace(kept.as_ref(), &bundles[3], &public, 0).unwrap_err();
    assert!(matches!(early, BundleStoreError::Refused(PolicyBundleError::Clock { .. })), "{early}");
    std::fs::write(store.path(), &bundles[3][..100]).unwrap();
    assert!(matches!(store.read(&public), Err(BundleStoreError::Refused(_))));
}

#[test]
fn keys_on_other_curves_are_refused() {
    let generate = |curve: &str| {
        let option = format!("ec_paramgen_curve:{curve}");
        let arguments = ["genpkey", "-algorithm", "EC", "-pkeyopt", &option];
        let done = Command::new("openssl").args(arguments).output().unwrap();
        String::from_utf8(done.stdout).unwrap()
    };
    assert!(SigningKey::from_pem(&generate("P-256")).is_ok());
    let other = generate("P-384");
    for bad in [&other, "", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
        SigningKey::from_pem(bad).unwrap_err();
        VerifyingKey::from_pem(bad).unwrap_err();
    }
}

/// Sends one response to one request, then keeps the connection open until the client closes it.
fn serve(answer: Vec<u8>) -> BundleClient {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/bundle.tar.gz", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // Sending the response before the request arrives would be a protocol error.
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            request.extend(byte);
        }
        // An error is ignored, because the client may stop reading early.
        let _ = stream.write_all(&answer);
        let _ = stream.read_to_end(&mut Vec::new());
    });
    BundleClient::new(BundleLocation::parse(&url).unwrap(), None)
}

fn ok(body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\netag: \"e\"\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn large_bundles_are_downloaded_up_to_the_limit() {
    let body = vec![7; 10 * 1024 * 1024];
    let Downloaded::New { bytes, etag, supports_long_polling } =
        serve(ok(&body)).download(None, None).await.unwrap()
    else {
        panic!("the bundle is new");
    };
    assert!(bytes == body && !supports_long_polling);
    assert_eq!(etag.as_deref(), Some("\"e\""));
    let body = vec![7; MAX_BUNDLE_LEN + 1];
    let refused = serve(ok(&body)).download(None, None).await.unwrap_err();
    assert!(matches!(refused, DownloadError::TooLarge), "{refused}");
}

#[tokio::test(start_paused = true)]
async fn servers_that_stop_answering_are_given_up() {
    for answer in [&b""[..], b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n"] {
        let refused = serve(answer.to_vec()).download(None, None).await.unwrap_err();
        assert!(matches!(refused, DownloadError::Timeout(..)), "{refused}");
    }
}

#[tokio::test]
async fn other_answers_are_refused() {
    for (status, expected) in [
        ("302 Found", "answered with a redirect (302), which is not followed"),
        ("401 Unauthorized", "refused the token (401)"),
        ("500 Error", "answered with the status 500"),
    ] {
        let answer = format!("HTTP/1.1 {status}\r\nlocation: /x\r\ncontent-length: 0\r\n\r\n");
        let refused = serve(answer.into_bytes()).download(None, None).await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    let unchanged = || serve(b"HTTP/1.1 304 Not Modified\r\n\r\n".to_vec());
    assert_eq!(unchanged().download(Some("\"e\""), None).await.unwrap(), Downloaded::Unchanged);
    // If the request had no `ETag`, `304 Not Modified` is an error.
    let never = unchanged().download(None, None).await.unwrap_err();
    assert!(matches!(never, DownloadError::Status(_, 304)), "{never}");
    let other = serve(b"SSH-2.0-OpenSSH\r\n".to_vec()).download(None, None).await.unwrap_err();
    assert!(matches!(other, DownloadError::Http(..)), "{other}");
}
