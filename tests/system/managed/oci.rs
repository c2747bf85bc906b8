//! Downloads bundles from Debian's `docker-registry` over HTTPS.

use super::{Organization, TOKEN, has_no_trouble, has_trouble, key_pair, rule, world};
use crate::client::TIMEOUT;
use crate::remote_servers::tls::inside;
use crate::world::eventually;
use serde_json::json;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Password file of the registry, with the user `reader` and the password [`TOKEN`].
const USERS: &str = "reader:$2y$05$abcdefghijklmnopqrstuuHZSItsKchLCIg6XIY9a.LmZgwD7svOG\n";

/// Uploads blobs from the files `config` and `layer`, and a manifest with this number of layers.
const PUSH: &str = r#"
    curl() { command curl -sSf --cacert ca.pem -u "$LOGIN" -o answer "$@"; }
    describe() {
        echo "{\"mediaType\":\"application/vnd.oci.image.$2\",\"digest\":\"sha256:$(sha256sum "$1" | cut -c1-64)\",\"size\":$(stat -c %s "$1")}"
    }
    echo '{}' > config
    for file in config layer; do
        curl -X POST -D head "$URL/blobs/uploads/"
        place=$(sed -n 's/^[Ll]ocation: //p' head | tr -d '\r')
        curl -X PUT --data-binary "@$file" -H 'Content-Type: application/octet-stream' \
            "$place&digest=sha256:$(sha256sum $file | cut -c1-64)"
    done
    type=application/vnd.oci.image.manifest.v1+json
    layer=$(describe layer layer.v1.tar+gzip)
    layers=$layer
    if [ "$LAYERS" = 2 ]; then layers=$layer,$layer; fi
    echo "{\"schemaVersion\":2,\"mediaType\":\"$type\",\"config\":$(describe config config.v1+json),\"layers\":[$layers]}" > manifest
    curl -X PUT --data-binary @manifest -H "Content-Type: $type" "$URL/manifests/stable"
"#;

/// An OCI registry that requires a password.
struct DockerRegistry {
    dir: PathBuf,
    port: u16,
    process: Child,
}

impl DockerRegistry {
    /// Starts a registry with the certificate in `dir`.
    fn start(dir: &Path) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = json!({
            "version": 0.1,
            "storage": { "filesystem": { "rootdirectory": dir.join("storage") } },
            "http": {
                "addr": format!("127.0.0.1:{port}"),
                "tls": { "certificate": dir.join("server.pem"), "key": dir.join("server.key") },
            },
            "auth": { "htpasswd": { "realm": "tests", "path": dir.join("users") } },
        });
        std::fs::write(dir.join("registry.yml"), config.to_string()).unwrap();
        std::fs::write(dir.join("users"), USERS).unwrap();
        let log = File::create(dir.join("registry.log")).unwrap();
        let mut command = Command::new("docker-registry");
        command.arg("serve").arg(dir.join("registry.yml")).stderr(log.try_clone().unwrap()).stdout(log);
        let process = command.spawn().expect("`docker-registry` is installed");
        eventually("the registry listens", TIMEOUT, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { dir: dir.to_owned(), port, process }
    }

    /// Pushes a bundle with this number of layers as the tag `stable` of the repository `team/rules`.
    fn push(&self, bundle: &[u8], layers: u8) {
        std::fs::write(self.dir.join("layer"), bundle).unwrap();
        let pushed = Command::new("sh")
            .args(["-ec", PUSH])
            .env("URL", format!("https://mcp.example.test:{}/v2/team/rules", self.port))
            .env("LOGIN", format!("reader:{TOKEN}"))
            .env("LAYERS", layers.to_string())
            .current_dir(&self.dir)
            .output()
            .unwrap();
        assert!(pushed.status.success(), "{}", String::from_utf8_lossy(&pushed.stderr));
    }

    /// Returns the number of successful requests for this kind of object.
    fn requests(&self, kind: &str) -> usize {
        let log = std::fs::read_to_string(self.dir.join("registry.log")).unwrap();
        let request = format!("\"GET /v2/team/rules/{kind}/");
        log.lines().filter(|line| line.contains(&request) && line.contains(" HTTP/1.1\" 200 ")).count()
    }
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn bundles_are_downloaded_from_docker_registry() {
    inside("managed::oci::bundles_are_downloaded_from_docker_registry", |dir| {
        let organization = Organization::new();
        let token = |password: &str| {
            std::fs::write("/etc/ironcurtain/token", format!("reader:{password}\n")).unwrap();
        };
        token(TOKEN);
        let registry = DockerRegistry::start(dir);
        let bundle = |sequence, tool: &str, name: &str| {
            organization.bundle(sequence, &json!([rule(name, tool, "deny")]))
        };
        registry.push(&bundle(1, "heard", "quiet"), 1);
        let url = format!("oci://mcp.example.test:{}/team/rules:stable", registry.port);
        organization.manages_at(&url, &json!({}));
        let world = world();
        let mut client = world.connect("hostile");
        eventually("the first bundle applies", TIMEOUT, || {
            client.plain("heard").text.contains("managed:quiet")
        });
        client.plain("now").ok();
        has_no_trouble(&world);
        // While the tag is unchanged, the bundle is not downloaded again.
        let before = registry.requests("manifests");
        eventually("the tag is checked again", TIMEOUT, || registry.requests("manifests") >= before + 2);
        assert_eq!(registry.requests("blobs"), 1);
        // Refused bundles do not change the rules.
        let other_key = key_pair(organization.dir.path(), "other.pem");
        for (bundle, layers, expected) in [
            (
                organization.signed_by(&other_key, 2, &json!([])),
                1,
                "the signature does not match the public key",
            ),
            (bundle(0, "now", "old"), 1, "its sequence number 0 is lower than the current 1"),
            (bundle(2, "now", "double"), 2, "has 2 layers of the type"),
        ] {
            registry.push(&bundle, layers);
            has_trouble(&world, expected);
            client.plain("heard").refused("managed:quiet");
            client.plain("now").ok();
        }
        token("wrong");
        let refused = format!("the registry `mcp.example.test:{}` refused the token (401)", registry.port);
        has_trouble(&world, &refused);
        client.plain("heard").refused("managed:quiet");
        // A valid bundle applies after all these failures.
        token(TOKEN);
        registry.push(&bundle(3, "now", "silent"), 1);
        eventually("the next bundle applies", TIMEOUT, || {
            client.plain("now").text.contains("managed:silent")
        });
        client.plain("heard").ok();
        has_no_trouble(&world);
    });
}
