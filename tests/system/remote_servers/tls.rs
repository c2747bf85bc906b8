//! Host names of remote servers: the addresses they resolve to, and the certificates that prove a server's identity.
//!
//! Needs no privileges, because the tests restart themselves with their own host names and certificate authority.

use super::fake_server::FakeServer;
use super::{audit_entries, world, write_entry};
use crate::client::TIMEOUT;
use crate::world::eventually;
use ironcurtain_testkit::namespace::{is_inside, run_inside_through};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Content of the hosts file.
const HOSTS: &str = "\
127.0.0.1 localhost
127.0.0.1 mcp.example.test sly.example.test
169.254.169.254 meta.example.test
";

/// Variable with the folder that the first process prepared.
const DIR: &str = "IRONCURTAIN_TEST_DIR";

const MAKE: &str = "new='-newkey rsa:2048 -nodes'
    openssl req -x509 $new -keyout ca.key -out ca.pem -days 3650 -subj /CN=tests \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign
    openssl req $new -keyout server.key -out server.csr -subj /CN=mcp.example.test
    echo 'subjectAltName = DNS:mcp.example.test' > server.ext
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -out server.pem -days 3650 -extfile server.ext";

/// Runs `body` with these host names and trusted certificates. `test` is the full name of the calling test.
pub(crate) fn inside(test: &str, body: impl FnOnce(&Path)) {
    if is_inside() {
        let dir = PathBuf::from(std::env::var_os(DIR).unwrap());
        let bind =
            Command::new("mount").arg("--bind").args([&dir.join("hosts"), Path::new("/etc/hosts")]).status();
        assert!(bind.unwrap().success());
        return body(&dir);
    }
    let dir = tempfile::Builder::new().prefix("ictls").tempdir_in("/var/tmp").unwrap();
    std::fs::write(dir.path().join("hosts"), HOSTS).unwrap();
    let made = Command::new("sh").args(["-ec", MAKE]).current_dir(dir.path()).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let (own, dir) = (std::env::current_exe().unwrap(), dir.path().to_str().unwrap());
    let (trusts, place) = (format!("SSL_CERT_FILE={dir}/ca.pem"), format!("{DIR}={dir}"));
    run_inside_through(test, &["--mount"], &["env", &trusts, &place, own.to_str().unwrap()]);
}

/// A TLS proxy in front of a server.
struct Tls {
    port: u16,
    process: Child,
}

impl Tls {
    fn before(far: &FakeServer, dir: &Path) -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/remote_servers/tls.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).args(["server.pem", "server.key"]).arg(far.port.to_string());
        let mut process = command.current_dir(dir).stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Self { port: port.trim().parse().unwrap(), process }
    }
}

impl Drop for Tls {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn remote_server_needs_valid_certificate_and_permitted_address() {
    inside("remote_servers::tls::remote_server_needs_valid_certificate_and_permitted_address", |dir| {
        let far = FakeServer::start();
        let tls = Tls::before(&far, dir);
        let url = |host: &str| format!("https://{host}:{}/mcp", tls.port);
        let world = world(&json!({ "url": url("mcp.example.test"), "allowedAddresses": ["127.0.0.1"] }));
        let mut client = world.connect("far");
        client.say("hello").ok();
        client.hang_up();
        eventually("the session ends", TIMEOUT, || far.methods().contains(&"DELETE".to_owned()));

        let names = std::cell::Cell::new(0);
        let told = |entry: serde_json::Value, told: &str| {
            // A name with a different address would count as a different server, so each attempt uses a new name.
            names.set(names.get() + 1);
            let name = format!("far{}", names.get());
            write_entry(&world.home.config, &name, &entry);
            eventually(told, TIMEOUT, || {
                let mut client = world.start(&name);
                let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
                let answer = client.request("initialize", params);
                answer["error"]["message"].as_str().unwrap_or_default().contains(told)
            });
        };
        let posts = || far.asked().iter().filter(|asked| asked.verb == "POST").count();
        let before = posts();
        // The name resolves to this machine, as in a DNS rebinding attack.
        let hint = "resolves to 127.0.0.1, which is this machine itself; if this is intended, add the address to `allowedAddresses`";
        told(json!({ "url": url("mcp.example.test") }), hint);
        told(json!({ "url": url("mcp.example.test"), "allowedAddresses": ["127.0.0.2"] }), hint);
        told(
            json!({ "url": "https://meta.example.test/mcp" }),
            "resolves to 169.254.169.254, which hands out this machine's credentials",
        );
        told(
            json!({ "url": "https://nowhere.example.test/mcp" }),
            "`nowhere.example.test` cannot be resolved",
        );
        // The server's certificate is for another name.
        let sly = json!({ "url": url("sly.example.test"), "allowedAddresses": ["127.0.0.1"] });
        told(sly, "failed to verify the certificate of");
        assert_eq!(posts(), before, "nothing was sent");
        let refused = audit_entries(&world, "network");
        let refused: Vec<_> = refused
            .iter()
            .filter(|e| e["policyDecision"]["status"] == "deny")
            .map(|e| e["host"].as_str().unwrap())
            .collect();
        assert!(
            refused.contains(&"mcp.example.test") && refused.contains(&"meta.example.test"),
            "{refused:?}"
        );

        write_entry(
            &world.home.config,
            "far",
            &json!({ "url": url("mcp.example.test"), "allowedAddresses": ["127.0.0.1"] }),
        );
        eventually("the permitted server works again", TIMEOUT, || {
            let mut client = world.start("far");
            let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
            client.request("initialize", params).get("result").is_some()
        });
    });
}

#[test]
fn self_signed_certificate_is_not_trusted() {
    inside("remote_servers::tls::self_signed_certificate_is_not_trusted", |dir| {
        let far = FakeServer::start();
        let alone = "openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.pem -days 9 -subj /CN=mcp.example.test -addext subjectAltName=DNS:mcp.example.test";
        assert!(Command::new("sh").args(["-ec", alone]).current_dir(dir).output().unwrap().status.success());
        let tls = Tls::before(&far, dir);
        let url = format!("https://mcp.example.test:{}/mcp", tls.port);
        let world = world(&json!({ "url": url, "allowedAddresses": ["127.0.0.1"] }));
        let mut client = world.start("far");
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = client.request("initialize", params);
        let told = answer["error"]["message"].as_str().unwrap();
        assert!(told.contains("failed to verify the certificate"), "{told}");
        assert_eq!(far.methods(), Vec::<String>::new());
    });
}
