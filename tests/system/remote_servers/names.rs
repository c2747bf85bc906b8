//! The name of a remote server: what it leads to, and whether whoever answers proves to be it.
//!
//! - It needs no rights: the tests are started again where they may name hosts, with an authority of their own.

use super::far::Far;
use super::{recorded, world, write_entry};
use crate::client::BOUND;
use crate::world::eventually;
use ironcurtain_testkit::namespace::{is_inside, run_inside_by};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Every name there is.
const HOSTS: &str = "\
127.0.0.1 localhost
127.0.0.1 mcp.example.test sly.example.test
169.254.169.254 meta.example.test
";

/// The folder of what was made before the second start.
const DIR: &str = "IRONCURTAIN_TEST_DIR";

const MAKE: &str = "new='-newkey rsa:2048 -nodes'
    openssl req -x509 $new -keyout ca.key -out ca.pem -days 3650 -subj /CN=tests \
        -addext basicConstraints=critical,CA:TRUE -addext keyUsage=keyCertSign
    openssl req $new -keyout server.key -out server.csr -subj /CN=mcp.example.test
    echo 'subjectAltName = DNS:mcp.example.test' > server.ext
    openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -out server.pem -days 3650 -extfile server.ext";

/// Runs `body` where these names are known and these certificates trusted. `test` is the whole name of the test.
fn inside(test: &str, body: impl FnOnce(&Path)) {
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
    run_inside_by(test, &["--mount"], &["env", &trusts, &place, own.to_str().unwrap()]);
}

/// Ends the encryption in front of a server.
struct Tls {
    port: u16,
    process: Child,
}

impl Tls {
    fn before(far: &Far, dir: &Path) -> Self {
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
fn a_server_is_who_its_certificate_says_and_where_its_name_may_lead() {
    inside(
        "remote_servers::names::a_server_is_who_its_certificate_says_and_where_its_name_may_lead",
        |dir| {
            let far = Far::start();
            let tls = Tls::before(&far, dir);
            let url = |host: &str| format!("https://{host}:{}/mcp", tls.port);
            let world = world(&json!({ "url": url("mcp.example.test"), "allowedAddresses": ["127.0.0.1"] }));
            let mut client = world.connect("far");
            client.say("hello").ok();
            client.hang_up();
            eventually("its session is over", BOUND, || far.methods().contains(&"DELETE".to_owned()));

            let names = std::cell::Cell::new(0);
            let told = |entry: serde_json::Value, told: &str| {
                // Another address under a name would be another server.
                names.set(names.get() + 1);
                let name = format!("far{}", names.get());
                write_entry(&world.home.config, &name, &entry);
                eventually(told, BOUND, || {
                    let mut client = world.start(&name);
                    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
                    let answer = client.request("initialize", params);
                    answer["error"]["message"].as_str().unwrap_or_default().contains(told)
                });
            };
            let posts = || far.asked().iter().filter(|asked| asked.verb == "POST").count();
            let before = posts();
            // A name that leads to this machine, as one that is bound anew does.
            let hint = "leads to 127.0.0.1, which is this machine itself; if this is intended, add the address to `allowedAddresses`";
            told(json!({ "url": url("mcp.example.test") }), hint);
            told(json!({ "url": url("mcp.example.test"), "allowedAddresses": ["127.0.0.2"] }), hint);
            told(
                json!({ "url": "https://meta.example.test/mcp" }),
                "leads to 169.254.169.254, which hands out this machine's credentials",
            );
            told(
                json!({ "url": "https://nowhere.example.test/mcp" }),
                "`nowhere.example.test` cannot be resolved",
            );
            // Whoever answers there is not the one that was named.
            let sly = json!({ "url": url("sly.example.test"), "allowedAddresses": ["127.0.0.1"] });
            told(sly, "failed to prove its identity, so nothing was sent to it");
            assert_eq!(posts(), before, "nothing was sent");
            let refused = recorded(&world, "network");
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
            eventually("the allowed twin works again", BOUND, || {
                let mut client = world.start("far");
                let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
                client.request("initialize", params).get("result").is_some()
            });
        },
    );
}

#[test]
fn a_certificate_that_nobody_signed_is_not_trusted() {
    inside("remote_servers::names::a_certificate_that_nobody_signed_is_not_trusted", |dir| {
        let far = Far::start();
        let alone = "openssl req -x509 -newkey rsa:2048 -nodes -keyout server.key -out server.pem -days 9 -subj /CN=mcp.example.test -addext subjectAltName=DNS:mcp.example.test";
        assert!(Command::new("sh").args(["-ec", alone]).current_dir(dir).output().unwrap().status.success());
        let tls = Tls::before(&far, dir);
        let url = format!("https://mcp.example.test:{}/mcp", tls.port);
        let world = world(&json!({ "url": url, "allowedAddresses": ["127.0.0.1"] }));
        let mut client = world.start("far");
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = client.request("initialize", params);
        let told = answer["error"]["message"].as_str().unwrap();
        assert!(
            told.contains("failed to prove its identity") && told.contains("certificate"),
            "{told}"
        );
        assert_eq!(far.methods(), Vec::<String>::new());
    });
}
