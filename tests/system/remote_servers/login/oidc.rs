//! Tests a login with the authorization server `oidc-provider` over TLS, with a user who clicks in Chromium.

use super::super::tls::inside;
use super::{TypedLogin, command, get, run, world_of};
use crate::conformance::node;
use crate::world::World;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

struct OidcHost {
    port: u16,
    control: u16,
    process: Child,
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/remote_servers").join(name)
}

impl OidcHost {
    fn start(dir: &Path) -> Self {
        let mut command = Command::new(node());
        command.arg(script("oidc.mjs")).args(["mcp.example.test", "server.pem", "server.key"]);
        command.current_dir(dir).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().unwrap();
        let mut ports = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut ports).unwrap();
        let (port, control) = ports.trim().split_once(' ').unwrap();
        Self { port: port.parse().unwrap(), control: control.parse().unwrap(), process }
    }

    fn base(&self) -> String {
        format!("https://mcp.example.test:{}", self.port)
    }

    /// Sends a control request, and returns all codes and tokens issued so far.
    fn issued(&self, path: &str) -> Vec<String> {
        serde_json::from_str(&get(&format!("http://127.0.0.1:{}{path}", self.control)).unwrap().1).unwrap()
    }

    /// Submits a form, as an attacker who knows its values would.
    fn post(&self, path: &str, fields: &[(&str, &str)]) -> Value {
        let mut command = Command::new("curl");
        command.args(["--silent", "--cacert"]).arg(std::env::var_os("SSL_CERT_FILE").unwrap());
        for (key, value) in fields {
            command.arg("--data-urlencode").arg(format!("{key}={value}"));
        }
        let output = command.arg(format!("{}{path}", self.base())).output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

impl Drop for OidcHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Opens a page in Chromium and returns the text of the last page. `act` is `consent`, `refuse` or `look`.
fn clicked(page: &str, act: &str) -> String {
    let output = Command::new(node()).arg(script("browse.mjs")).args([page, act]).output().unwrap();
    let (said, complained) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    said.into_owned()
}

fn parameter(page: &str, wanted: &str) -> String {
    let query = page.split_once('?').unwrap().1;
    let found = query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == wanted);
    found.unwrap().1.to_owned()
}

/// Logs in through Chromium. Returns the last page and the terminal's output.
fn log_in(world: &World) -> (String, String) {
    let mut login = TypedLogin::start(command(world, &[]));
    let page = login.page();
    let last = clicked(&page, "consent");
    assert!(last.contains("Return to IronCurtain. You can close this page."), "{last}");
    (page, login.log_in())
}

#[test]
fn a_user_logs_in_by_clicks_at_a_real_authorization_server() {
    inside("remote_servers::login::oidc::a_user_logs_in_by_clicks_at_a_real_authorization_server", |dir| {
        let host = OidcHost::start(dir);
        let url = format!("{}/mcp", host.base());
        let world = world_of(&json!({ "url": url, "allowedAddresses": ["127.0.0.1"] }));
        let ours = world.ours();

        // The user refuses the login on the authorization server's page.
        let mut refused = TypedLogin::start(command(&world, &[]));
        let page = refused.page();
        assert!(clicked(&page, "refuse").contains("The login was refused."));
        refused.terminal.shows("the authorization server refused the login: `access_denied");
        assert_ne!(refused.started.wait(), 0);

        // The server sends no code to a different redirect URI, and the login is still pending.
        let mut login = TypedLogin::start(command(&world, &[]));
        let page = login.page();
        let redirect = parameter(&page, "redirect_uri");
        let elsewhere = page.replace(&redirect, "https%3A%2F%2Fevil.example.test%2Fcallback");
        assert!(clicked(&elsewhere, "look").contains("redirect_uri"), "the server names the reason");
        assert_eq!(host.issued("/tokens"), Vec::<String>::new());
        assert!(clicked(&page, "consent").contains("You can close this page."));
        let shown = login.log_in();
        assert!(shown.contains(&format!("Authorization server: {}", host.base())), "{shown}");

        let mut client = world.connect("far");
        assert_eq!(client.say("hello").ok(), "hello");
        assert_eq!(host.issued("/expire").len(), 3, "a code and two tokens");
        assert_eq!(client.say("again").ok(), "again");
        let renewed = host.issued("/tokens");
        assert_eq!(renewed.len(), 5, "the session renewed the tokens");

        // An intercepted code is useless without the verifier.
        let (client_id, redirect) =
            (parameter(&page, "client_id"), redirect.replace("%3A", ":").replace("%2F", "/"));
        let replay = [
            ("grant_type", "authorization_code"),
            ("code", renewed[0].as_str()),
            ("client_id", &client_id),
            ("redirect_uri", &redirect),
            ("code_verifier", "a-verifier-that-somebody-else-has-guessed-0"),
        ];
        assert_eq!(host.post("/token", &replay)["error"], "invalid_grant");
        assert_eq!(host.issued("/tokens").len(), 5);

        let (page_again, shown_again) = log_in(&world);
        assert_eq!(client.say("back").ok(), "back");
        // The new login replaces the earlier login, whose refresh token is revoked.
        let replaced = [
            ("grant_type", "refresh_token"),
            ("refresh_token", renewed[4].as_str()),
            ("client_id", &client_id),
        ];
        assert_eq!(host.post("/token", &replaced)["error"], "invalid_grant");
        let issued = host.issued("/tokens");
        let refresh = &issued[issued.len() - 1];
        let out = run(&ours, &["servers", "logout", "far"], "");
        let revoked = "You are logged out of `far`. Its tokens were revoked, and deleted here.";
        assert!(out.0 && out.1.contains(revoked), "{out:?}");
        let client_id = parameter(&page_again, "client_id");
        let reuse = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", &client_id)];
        assert_eq!(host.post("/token", &reuse)["error"], "invalid_grant");
        client.say("x").refused(&format!("`{url}` wants you to log in (401)"));
        for secret in &issued {
            assert!(
                !world.log().contains(secret) && !shown.contains(secret) && !shown_again.contains(secret)
            );
        }
        assert!(world.audit().intact);
    });
}
