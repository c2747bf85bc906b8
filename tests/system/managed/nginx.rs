//! Downloads bundles from nginx over HTTPS.

use super::{Organization, TOKEN, has_trouble, key_pair, metrics, rule, world};
use crate::client::TIMEOUT;
use crate::remote_servers::tls::inside;
use crate::world::eventually;
use serde_json::json;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// Size of the large bundle, in bytes.
const LARGE: usize = 10 * 1024 * 1024;

/// An nginx that serves one bundle.
pub(super) struct Nginx {
    dir: PathBuf,
    process: Child,
}

impl Nginx {
    /// Starts nginx with the certificate in `dir`. It sends at most 4 MiB per second.
    fn start(dir: &Path, port: u16) -> Self {
        std::fs::create_dir_all(dir.join("www")).unwrap();
        let server = format!(
            "server {{
                listen 127.0.0.1:{port} ssl;
                ssl_certificate server.pem; ssl_certificate_key server.key;
                root www; limit_rate 4m;
                if ($http_authorization != \"Bearer {TOKEN}\") {{ return 401; }}
            }}"
        );
        Self::run(dir, port, &server)
    }

    /// Starts nginx with this `server` block.
    pub(super) fn run(dir: &Path, port: u16, server: &str) -> Self {
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
        let temporary: String = temporary.iter().map(|what| format!("{what}_temp_path {what};\n")).collect();
        let config = format!(
            "daemon off; master_process off; user root; pid nginx.pid; error_log error.log;
            events {{}}
            http {{
                access_log access.log; default_type application/gzip; {temporary}
                {server}
            }}"
        );
        std::fs::write(dir.join("nginx.conf"), config).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(dir).args(["-c", "nginx.conf", "-e", "error.log"]);
        let process = command.spawn().expect("`nginx` is installed");
        eventually("nginx listens", TIMEOUT, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Self { dir: dir.to_owned(), process }
    }

    /// Replaces the bundle in a single step.
    fn serve(&self, bundle: &[u8]) {
        let www = self.dir.join("www");
        std::fs::write(www.join("new"), bundle).unwrap();
        std::fs::rename(www.join("new"), www.join("bundle.tar.gz")).unwrap();
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("access.log")).unwrap()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns a bundle with a document that cannot be compressed to less than [`LARGE`] bytes.
fn large_bundle(organization: &Organization, sequence: u64) -> Vec<u8> {
    let random = Command::new("openssl").args(["rand", "-base64", &LARGE.to_string()]).output().unwrap();
    let scenarios = organization.dir.path().join("scenarios.json");
    let comment = String::from_utf8(random.stdout).unwrap();
    std::fs::write(&scenarios, json!({ "scenarios": [], "comment": comment }).to_string()).unwrap();
    let bundle = organization.bundle(sequence, &json!([rule("large", "heard", "deny")]));
    std::fs::remove_file(scenarios).unwrap();
    assert!(bundle.len() > LARGE, "{}", bundle.len());
    bundle
}

#[test]
fn bundles_are_downloaded_from_nginx() {
    inside("managed::nginx::bundles_are_downloaded_from_nginx", |dir| {
        let organization = Organization::new();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let nginx = Nginx::start(dir, port);
        nginx.serve(&organization.bundle(1, &json!([rule("quiet", "heard", "deny")])));
        let url = format!("https://mcp.example.test:{port}/bundle.tar.gz");
        organization.manages_at(&url, &json!({}));
        let mut world = world();
        let mut client = world.connect("hostile");
        eventually("the first bundle applies", TIMEOUT, || {
            client.plain("heard").text.contains("managed:quiet")
        });
        eventually("nginx responds that the bundle is unchanged", TIMEOUT, || {
            nginx.log().contains("\" 304 0 ")
        });
        eventually("the metrics count it", TIMEOUT, || {
            metrics(&world).contains("ironcurtain_bundle_updates_total{result=\"unchanged\"} ")
        });
        // Refused bundles do not change the rules.
        let other_key = key_pair(organization.dir.path(), "other.pem");
        for (bundle, expected) in [
            (
                organization.signed_by(&other_key, 2, &json!([])),
                "the signature does not match the public key",
            ),
            (organization.bundle(0, &json!([])), "its sequence number 0 is lower than the current 1"),
        ] {
            nginx.serve(&bundle);
            has_trouble(&world, expected);
            client.plain("heard").refused("managed:quiet");
        }
        // The daemon answers calls while a large bundle is downloaded slowly.
        nginx.serve(&large_bundle(&organization, 3));
        client.plain("heard").refused("managed:quiet");
        client.plain("now").ok();
        // Calls in a loop would delay the download.
        eventually("the large bundle applies", 3 * TIMEOUT, || world.status().troubles.is_empty());
        client.plain("heard").refused("managed:large");
        drop(client);
        // The bundle stays in effect if the server is unavailable when the daemon starts.
        drop(nginx);
        world.restart();
        has_trouble(&world, "failed to connect to the bundle server");
        let mut client = world.connect("hostile");
        client.plain("heard").refused("managed:large");
        client.plain("now").ok();
        drop(client);
        let nginx = Nginx::start(dir, port);
        nginx.serve(&organization.bundle(4, &json!([rule("silent", "now", "deny")])));
        let mut client = world.connect("hostile");
        eventually("the next bundle applies", TIMEOUT, || {
            client.plain("now").text.contains("managed:silent")
        });
        client.plain("heard").ok();
    });
}
