//! Tests downloads from misbehaving OCI registries.

use ironcurtain_bundle::{BundleClient, BundleLocation, DownloadError, Downloaded};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use zeroize::Zeroizing;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
const BUNDLE: &[u8] = b"the content is verified elsewhere";

/// Registry on this computer that records the heads of all requests.
struct FakeRegistry {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl FakeRegistry {
    /// Starts a registry. `answer` returns the response to a request's head.
    fn start(answer: impl Fn(&str) -> Vec<u8> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let recorded = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (mut stream, mut head) = (stream.unwrap(), Vec::new());
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    head.extend(byte);
                }
                let head = String::from_utf8(head).unwrap();
                recorded.lock().unwrap().push(head.clone());
                // An error is ignored, because the client may stop reading early.
                let _ = stream.write_all(&answer(&head));
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        Self { port, requests }
    }

    /// Starts a registry that serves the bundle, except for requests for which `answer` returns a response.
    fn except(answer: impl Fn(&str) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self::start(move |head| answer(head).unwrap_or_else(|| serve(head)))
    }

    fn client(&self, reference: &str, token: Option<&str>) -> BundleClient {
        let location = BundleLocation::parse(&format!("oci://127.0.0.1:{}/team/rules{reference}", self.port));
        BundleClient::new(location.unwrap(), token.map(|token| Zeroizing::new(token.to_owned())))
    }

    /// Downloads the `1` tag.
    async fn download(&self, token: Option<&str>) -> Result<Downloaded, String> {
        self.client(":1", token).download(None, None).await.map_err(|problem| problem.to_string())
    }

    /// Asserts that the download fails with this error, which names the registry.
    async fn refuses(&self, token: Option<&str>, expected: &str) {
        let refused = self.download(token).await.unwrap_err();
        assert!(refused.contains(expected) && refused.contains("127.0.0.1:"), "{expected}: {refused}");
    }

    /// Returns the requests since the last call: the path and the `Authorization` header of each request.
    fn requests(&self) -> Vec<(String, Option<String>)> {
        let heads = std::mem::take(&mut *self.requests.lock().unwrap());
        heads.iter().map(|head| (path(head).to_owned(), authorization(head).map(str::to_owned))).collect()
    }
}

fn path(head: &str) -> &str {
    head.split(' ').nth(1).unwrap()
}

fn authorization(head: &str) -> Option<&str> {
    head.lines().find_map(|line| line.strip_prefix("authorization: "))
}

fn response(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn redirect(target: &str) -> Vec<u8> {
    response("307 Temporary Redirect", &format!("location: {target}\r\n"), b"")
}

fn challenge(challenge: &str) -> Vec<u8> {
    response("401 Unauthorized", &format!("www-authenticate: {challenge}\r\n"), b"")
}

fn sha256(bytes: &[u8]) -> String {
    let hex: String = digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

fn layer(bundle: &[u8]) -> Value {
    json!({ "mediaType": LAYER, "digest": sha256(bundle), "size": bundle.len() })
}

fn manifest(layers: &[Value]) -> String {
    json!({ "schemaVersion": 2, "mediaType": MANIFEST, "config": {}, "layers": layers }).to_string()
}

fn manifest_response(manifest: &str) -> Vec<u8> {
    response("200 OK", &format!("content-type: {MANIFEST}\r\n"), manifest.as_bytes())
}

fn serve(head: &str) -> Vec<u8> {
    match path(head) {
        "/v2/team/rules/manifests/1" => manifest_response(&manifest(&[layer(BUNDLE)])),
        path if path.starts_with("/v2/team/rules/manifests/sha256:") => {
            manifest_response(&manifest(&[layer(BUNDLE)]))
        }
        path if path == blob_path() => response("200 OK", "", BUNDLE),
        _ => response("404 Not Found", "", b""),
    }
}

fn blob_path() -> String {
    format!("/v2/team/rules/blobs/{}", sha256(BUNDLE))
}

#[track_caller]
fn is_bundle(downloaded: Result<Downloaded, String>) {
    let is_good = matches!(
        &downloaded,
        Ok(Downloaded::New { bytes, supports_long_polling: false, .. }) if bytes == BUNDLE
    );
    assert!(is_good, "{downloaded:?}");
}

#[tokio::test]
async fn an_unchanged_tag_needs_one_request() {
    let registry = FakeRegistry::start(serve);
    let client = registry.client(":1", None);
    let Downloaded::New { bytes, etag, .. } = client.download(None, None).await.unwrap() else {
        panic!("the bundle is new")
    };
    assert_eq!(bytes, BUNDLE);
    let digest = sha256(manifest(&[layer(BUNDLE)]).as_bytes());
    assert_eq!(etag.as_deref(), Some(digest.as_str()));
    assert_eq!(registry.requests().len(), 2);
    // The long-polling time has no effect.
    let wait = Some(Duration::from_secs(30));
    assert_eq!(client.download(etag.as_deref(), wait).await.unwrap(), Downloaded::Unchanged);
    assert_eq!(registry.requests(), [("/v2/team/rules/manifests/1".to_owned(), None)]);
    // An address with a digest accepts only the manifest with that digest.
    let pinned = registry.client(&format!("@{digest}"), None);
    is_bundle(pinned.download(None, None).await.map_err(|problem| problem.to_string()));
    let other = registry.client(&format!("@{}", sha256(b"other")), None);
    let refused = other.download(None, None).await.unwrap_err().to_string();
    assert!(refused.contains("the manifest does not have the digest in the address"), "{refused}");
    let refused = registry.download(Some("t\n0ken")).await.unwrap_err();
    assert_eq!(refused, "the token for the bundle server contains invalid characters");
}

#[tokio::test]
async fn manifests_and_bundles_are_checked() {
    let other = |size: usize| json!({ "mediaType": LAYER, "digest": sha256(BUNDLE), "size": size });
    let image =
        json!({ "mediaType": "application/vnd.docker.image.rootfs.diff.tar.gzip", "digest": "x", "size": 1 });
    let large = manifest(&[layer(BUNDLE)]) + &" ".repeat(1024 * 1024);
    let index = response("200 OK", "content-type: application/vnd.oci.image.index.v1+json\r\n", b"{}");
    let content = "does not have the size and digest that the manifest states";
    for (answer, expected) in [
        (manifest_response(&large), "the manifest is larger than 1 MiB"),
        (manifest_response(&manifest(&[layer(BUNDLE), layer(b"x")])), "has 2 layers of the type"),
        (manifest_response(&manifest(&[image])), "has 0 layers of the type"),
        (manifest_response("\u{1b}[31m"), "the manifest is malformed at line 1, column 1"),
        (index, "did not send a manifest of the type `application/vnd.oci.image.manifest.v1+json`"),
        (manifest_response(&manifest(&[other(BUNDLE.len() + 1)])), content),
        (manifest_response(&manifest(&[other(BUNDLE.len() - 1)])), content),
        (manifest_response(&manifest(&[other(1 << 40)])), "the bundle is larger than 32 MiB"),
        (redirect("/v2/team/rules/manifests/2"), "answered with a redirect (307), which is not followed"),
        (response("404 Not Found", "", b""), "answered with the status 404"),
    ] {
        let registry = FakeRegistry::except(move |head| head.contains("/manifests/").then(|| answer.clone()));
        registry.refuses(None, expected).await;
    }
    let forged = vec![b'x'; BUNDLE.len()];
    let registry =
        FakeRegistry::except(move |head| head.contains("/blobs/").then(|| response("200 OK", "", &forged)));
    registry.refuses(None, content).await;
    is_bundle(FakeRegistry::start(serve).download(None).await);
}

#[tokio::test]
async fn redirects_of_bundles_are_followed_without_the_token() {
    let storage = FakeRegistry::start(|head| match path(head) {
        "/again" => redirect("/bundle"),
        "/bundle" => response("200 OK", "", BUNDLE),
        _ => redirect("/loop"),
    });
    for (target, expected) in
        [("/bundle", Ok(())), ("/again", Ok(())), ("/loop", Err("redirected the download more than 2 times"))]
    {
        let target = format!("http://127.0.0.1:{}{target}", storage.port);
        let registry = FakeRegistry::except(move |head| head.contains("/blobs/").then(|| redirect(&target)));
        match expected {
            Ok(()) => is_bundle(registry.download(Some("t0ken")).await),
            Err(expected) => registry.refuses(Some("t0ken"), expected).await,
        }
        let token = Some("Bearer t0ken".to_owned());
        let expected = [("/v2/team/rules/manifests/1".to_owned(), token.clone()), (blob_path(), token)];
        assert_eq!(registry.requests(), expected);
        let stored = storage.requests();
        assert!(!stored.is_empty() && stored.iter().all(|(_, token)| token.is_none()), "{stored:?}");
    }
    for target in ["http://storage.example/x", "file:///etc/passwd", "//storage.example/x", "http://["] {
        let registry = FakeRegistry::except(move |head| head.contains("/blobs/").then(|| redirect(target)));
        registry.refuses(None, "redirected the download to an address without `https`").await;
    }
}

/// Starts a registry that requires the bearer token `issued`, and a token service that responds with `answer`.
fn with_token_service(answer: Vec<u8>) -> (FakeRegistry, FakeRegistry) {
    let service = FakeRegistry::start(move |_| answer.clone());
    let realm = format!("http://127.0.0.1:{}/token", service.port);
    let registry = FakeRegistry::except(move |head| {
        let scope = "repository:team/rules:pull";
        let header = format!("Bearer realm=\"{realm}\",service=\"r\",scope=\"{scope}\"");
        (authorization(head) != Some("Bearer issued")).then(|| challenge(&header))
    });
    (registry, service)
}

#[tokio::test]
async fn tokens_are_requested_from_the_token_service() {
    let query = "/token?service=r&scope=repository%3Ateam%2Frules%3Apull".to_owned();
    let basic = "Basic dXNlcjp0MGtlbg==".to_owned();
    for (field, token, expected) in
        [("token", None, None), ("access_token", Some("user:t0ken\n"), Some(basic))]
    {
        let answer = response("200 OK", "", json!({ field: "issued" }).to_string().as_bytes());
        let (registry, service) = with_token_service(answer);
        is_bundle(registry.download(token).await);
        assert_eq!(service.requests(), [(query.clone(), expected)]);
        let sent: Vec<_> = registry.requests().into_iter().map(|(_, token)| token).collect();
        let issued = Some("Bearer issued".to_owned());
        // The password itself is not sent to the registry.
        assert_eq!(sent, [None, issued.clone(), issued]);
    }
    for (answer, expected) in [
        (response("200 OK", "", b"{}"), "the token service did not send a token"),
        (response("200 OK", "", &vec![b' '; 64 * 1024 + 1]), "the token service did not send a token"),
        (response("401 Unauthorized", "", b""), "refused the token (401)"),
        (redirect("/other"), "answered with a redirect (307), which is not followed"),
        // The registry does not accept the token from the token service.
        (response("200 OK", "", br#"{"token":"other"}"#), "refused the token (401)"),
    ] {
        let (registry, service) = with_token_service(answer);
        registry.refuses(Some("user:t0ken"), expected).await;
        assert_eq!(service.requests().len(), 1);
        assert!(registry.requests().len() <= 2);
    }
}

#[tokio::test]
async fn credentials_are_sent_only_if_the_registry_requires_them() {
    let basic = || {
        FakeRegistry::except(|head| {
            let is_user = authorization(head) == Some("Basic dXNlcjp0MGtlbg==");
            (!is_user).then(|| challenge("Basic realm=\"r\""))
        })
    };
    is_bundle(basic().download(Some("user:t0ken")).await);
    for (token, requests) in [(Some("user:wrong"), 2), (Some("t0ken"), 1), (None, 1)] {
        let registry = basic();
        registry.refuses(token, "refused the token (401)").await;
        assert_eq!(registry.requests().len(), requests);
    }
    // The password is not sent to a registry that does not require a password.
    let open = FakeRegistry::start(serve);
    is_bundle(open.download(Some("user:t0ken")).await);
    assert!(open.requests().iter().all(|(_, token)| token.is_none()));
    for (header, expected) in [
        ("Negotiate", "requires a login that is not supported"),
        ("Bearer realm=\"http://auth.example/token\"", "named a token service without `https`"),
        ("Bearer realm=\"file:///etc/passwd\"", "named a token service without `https`"),
        ("Bearer service=\"r\"", "named a token service without `https`"),
    ] {
        let registry = FakeRegistry::start(move |_| challenge(header));
        registry.refuses(Some("user:t0ken"), expected).await;
        let requests = registry.requests();
        assert!(requests.len() == 1 && requests[0].1.is_none(), "{requests:?}");
    }
}

/// Signals `sent` and returns an incomplete response. The connection then stays open.
fn stalled(sent: &Sender<()>, answer: &[u8]) -> Vec<u8> {
    sent.send(()).unwrap();
    answer.to_vec()
}

#[tokio::test(start_paused = true)]
async fn registries_that_stop_answering_are_given_up() {
    let answers = [
        ("/manifests/", &b""[..]),
        (
            "/manifests/",
            b"HTTP/1.1 200 OK\r\ncontent-type: application/vnd.oci.image.manifest.v1+json\r\ncontent-length: 9\r\n\r\n",
        ),
        ("/blobs/", b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"),
    ];
    for (stage, answer) in answers {
        let (sender, receiver) = channel();
        let registry =
            FakeRegistry::except(move |head| head.contains(stage).then(|| stalled(&sender, answer)));
        // The paused clock does not advance while a blocking task runs.
        let stall = tokio::task::spawn_blocking(move || receiver.recv_timeout(Duration::from_secs(60)));
        let refused = registry.client(":1", None).download(None, None).await.unwrap_err();
        assert!(matches!(refused, DownloadError::Timeout(..)), "{stage}: {refused}");
        stall.await.unwrap().unwrap();
    }
}
