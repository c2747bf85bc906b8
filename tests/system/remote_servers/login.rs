//! Tests logins to a server that uses the Python SDK: logging in on a terminal, token renewal by a session, and logging
//! out.

mod adding;
mod cancelling;
mod keyring;
mod oidc;
mod streams;

use super::world;
use crate::client::TIMEOUT;
use crate::secret_file::{PASSPHRASE, create_file_with_secret, run};
use crate::secrets::{command_lines_with, files_with};
use crate::terminal::{Started, Terminal};
use crate::world::{World, eventually, installed, programs};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// MCP server whose authorization server has the same address.
struct LoginHost {
    port: u16,
    process: Child,
}

impl LoginHost {
    fn start() -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/remote_servers/login.py");
        let mut command = Command::new("/usr/bin/python3");
        command.arg(script).env("PYTHONPATH", installed("pypi")).env("PYTHONDONTWRITEBYTECODE", "1");
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let host = Self { port: port.trim().parse().unwrap(), process };
        eventually("the server answers", TIMEOUT, || get(&format!("{}/tokens", host.base())).is_some());
        host
    }

    fn base(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.base())
    }

    /// Sends a control request to the server.
    fn control(&self, path: &str) -> String {
        get(&format!("{}{path}", self.base())).unwrap().1
    }

    /// Returns the valid tokens.
    fn valid(&self) -> Vec<String> {
        serde_json::from_str(&self.control("/valid")).unwrap()
    }

    /// Returns all codes and tokens issued so far.
    fn issued(&self) -> Vec<String> {
        serde_json::from_str(&self.control("/tokens")).unwrap()
    }
}

impl Drop for LoginHost {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Requests a page. Returns the response's head and body.
fn get(url: &str) -> Option<(String, String)> {
    let (address, target) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(address).ok()?;
    let request = format!("GET /{target} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some((head.to_owned(), body.to_owned()))
}

/// Follows redirects as a browser does. Returns the last page.
fn browse(page: &str) -> (String, String) {
    let mut url = page.to_owned();
    for _ in 0..5 {
        let (head, body) = get(&url).unwrap();
        let location = head.lines().find_map(|line| {
            line.split_once(": ").filter(|(name, _)| name.eq_ignore_ascii_case("location")).map(|(_, to)| to)
        });
        match location {
            Some(to) => url = to.to_owned(),
            None => return (head, body),
        }
    }
    panic!("too many redirects: {url}");
}

/// Returns an `ironcurtain` command that cannot use a keyring.
fn command(world: &World, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args(arguments).env("IRONCURTAIN_HOME", world.ours());
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    command
}

/// Login on a terminal.
struct TypedLogin {
    terminal: Terminal,
    started: Started,
}

impl TypedLogin {
    fn start(command: Command) -> Self {
        Self::start_with(command, &[])
    }

    fn start_with(mut command: Command, options: &[&str]) -> Self {
        let terminal = Terminal::new(40, 1000);
        command.args(["servers", "login", "far", "--no-browser"]).args(options);
        let started = terminal.start(&command);
        Self { terminal, started }
    }

    /// Confirms the login, and returns the URL to open.
    fn page(&mut self) -> String {
        self.terminal.shows("in your browser, to log in for `far`? [y/N]");
        self.terminal.types("y\n");
        self.terminal.shows("Open this page in your browser:\r\n");
        self.terminal.shows("\r\n").trim().to_owned()
    }

    /// Waits for the login to complete, and returns the terminal's output.
    fn log_in(mut self) -> String {
        self.terminal.shows("You are logged in to `far` (use).");
        assert_eq!(self.started.wait(), 0);
        self.terminal.all()
    }
}

/// Logs in as the user, and returns the terminal's output.
fn log_in(command: Command) -> String {
    let mut login = TypedLogin::start(command);
    let (head, body) = browse(&login.page());
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("You can close this page"), "{head}\n{body}");
    login.log_in()
}

/// Creates a world with this server and an unlocked secret file for its tokens.
fn world_of(entry: &Value) -> World {
    let world = world(entry);
    create_file_with_secret(&world.ours());
    let unlocked = run(&world.ours(), &["secrets", "unlock"], &format!("{PASSPHRASE}\n"));
    assert!(unlocked.0, "{unlocked:?}");
    world
}

fn refused_initialize(world: &World) -> String {
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer: Value = world.start("far").request("initialize", params);
    answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn login_token_is_used_renewed_and_removed() {
    let host = LoginHost::start();
    let mut world = world_of(&json!({ "url": host.url() }));
    let ours = world.ours();
    let added = run(&ours, &["servers", "add", &host.url(), "--name", "other", "--yes"], "");
    let wanted = format!("`{}` wants you to log in (401); run: ironcurtain servers login other", host.url());
    assert!(added.0 && added.1.contains(&wanted), "{added:?}");
    let wanted = format!("`{}` wants you to log in (401); run: ironcurtain servers login far", host.url());
    assert!(refused_initialize(&world).contains(&wanted));
    eventually("the user is notified", TIMEOUT, || {
        world.user.notices().contains(&"far needs you to log in: ironcurtain servers login far".to_owned())
    });

    let listed = |wanted: &str| {
        let listed = run(&ours, &["servers", "list"], "");
        let line = listed.1.lines().find(|line| line.starts_with("far  "));
        assert!(line.is_some_and(|line| line.ends_with(&format!("{}  {wanted}", host.url()))), "{listed:?}");
    };
    // After a restart, the daemon still knows that a login is required, and does not notify the user again.
    world.restart();
    listed("login required");
    let checked = run(&ours, &["doctor"], "");
    assert!(checked.1.contains("server far: it requires a login"), "{checked:?}");
    assert!(refused_initialize(&world).contains(&wanted));
    let unlocked = run(&ours, &["secrets", "unlock"], &format!("{PASSPHRASE}\n"));
    assert!(unlocked.0, "{unlocked:?}");
    let shown = log_in(command(&world, &[]));
    for line in [
        format!("Server: far, {}", host.url()),
        format!("Authorization server: {}", host.base()),
        "Scopes: use".to_owned(),
    ] {
        assert!(shown.contains(&line), "{line} in {shown}");
    }
    let mut client = world.connect("far");
    assert_eq!(client.say("hello").ok(), "hello");
    let first = host.issued();
    assert_eq!(first.len(), 3, "a code and two tokens");
    listed("logged in");

    // The session renews the token.
    host.control("/expire");
    assert_eq!(client.say("again").ok(), "again");
    assert_eq!(host.issued().len(), 5);

    // After the authorization server revokes the login, calls fail until the user logs in again. The session continues.
    let notices =
        || world.user.notices().iter().filter(|notice| notice.contains("far needs you to log in")).count();
    let expired = "has expired; to log in again, run: ironcurtain servers login far";
    host.control("/revoke");
    client.say("x").refused(expired);
    eventually("the user is notified of the session's login", TIMEOUT, || notices() == 2);
    listed("login expired");
    let checked = run(&ours, &["doctor"], "");
    assert!(checked.1.contains("server far: your login has expired"), "{checked:?}");
    let shown_again = log_in(command(&world, &[]));
    assert_eq!(client.say("back").ok(), "back");
    listed("logged in");
    host.control("/revoke");
    client.say("x").refused(expired);
    eventually("the user is notified again", TIMEOUT, || notices() == 3);

    let out = run(&ours, &["servers", "logout", "far"], "");
    assert!(out.0 && out.1.contains("You are logged out of `far`"), "{out:?}");
    listed("login required");
    client.say("x").refused(&wanted);
    assert!(refused_initialize(&world).contains(&wanted));
    let out = run(&ours, &["servers", "logout", "far"], "");
    assert!(out.0 && out.1.contains("You were not logged in to `far`."), "{out:?}");

    let (log, issued) = (world.log(), host.issued());
    assert_eq!(issued.len(), 8);
    for secret in issued {
        assert!(!log.contains(&secret), "the record has a token");
        assert!(!shown.contains(&secret) && !shown_again.contains(&secret) && !out.1.contains(&secret));
        assert_eq!(files_with(&secret, &ours), Vec::<String>::new());
        assert_eq!(command_lines_with(&secret), Vec::<String>::new());
    }
    assert!(world.audit().intact);
}

#[test]
fn logging_in_again_revokes_the_previous_tokens() {
    let host = LoginHost::start();
    let mut world = world_of(&json!({ "url": host.url() }));
    // The trusted process stores the first two logins, the command the third one.
    for number in 1..=3 {
        if number == 3 {
            world.restart();
        }
        let mut login = TypedLogin::start(command(&world, &[]));
        if number == 3 {
            login.terminal.shows("Passphrase");
            login.terminal.types(&format!("{PASSPHRASE}\n"));
        }
        browse(&login.page());
        let shown = login.log_in();
        let unlock = "Sessions can use the login once you unlock your secrets: ironcurtain secrets unlock";
        assert_eq!(shown.contains(unlock), number == 3, "{shown}");
        let issued = host.issued();
        assert_eq!(issued.len(), 3 * number);
        assert_eq!(host.valid(), issued[issued.len() - 2..], "only the newest tokens are valid");
    }
    let out = run(&world.ours(), &["servers", "logout", "far"], &format!("{PASSPHRASE}\n"));
    assert!(out.0 && out.1.contains("Its tokens were revoked, and deleted here."), "{out:?}");
    assert_eq!(host.valid(), Vec::<String>::new());
}

#[test]
fn login_registers_and_opens_nothing_without_confirmation() {
    let host = LoginHost::start();
    let world = world_of(&json!({ "url": host.url() }));
    let mut login = TypedLogin::start(command(&world, &[]));
    login.terminal.shows("to log in for `far`? [y/N]");
    login.terminal.types("\n");
    login.terminal.shows("You are not logged in.");
    assert_ne!(login.started.wait(), 0);
    assert!(!login.terminal.all().contains("/authorize"));
    assert!(host.issued().is_empty());
    let piped = run(&world.ours(), &["servers", "login", "far"], "y\n");
    assert!(!piped.0 && piped.1.contains("a login needs your answer: run this in a terminal"), "{piped:?}");
    log_in(command(&world, &[]));
    assert_eq!(world.connect("far").say("hello").ok(), "hello");
}

#[test]
fn a_registered_client_with_a_fixed_redirect_port_can_log_in() {
    let host = LoginHost::start();
    let world = world_of(&json!({ "url": host.url() }));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let redirect = format!("http://localhost:{port}/oauth/callback");
    let client = json!({ "redirect_uris": [redirect], "token_endpoint_auth_method": "none", "scope": "use" })
        .to_string();
    let address = format!("127.0.0.1:{}", host.port);
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /register HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{client}",
        client.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let registered: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    let id = registered["client_id"].as_str().unwrap().to_owned();

    // The authorization server does not know the random port.
    let mut refused = TypedLogin::start_with(command(&world, &[]), &["--client-id", &id]);
    let (head, _) = browse(&refused.page());
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    drop(refused);
    let mut login =
        TypedLogin::start_with(command(&world, &[]), &["--client-id", &id, "--redirect", &redirect]);
    let (head, body) = browse(&login.page());
    assert!(head.starts_with("HTTP/1.1 200") && body.contains("You can close this page"), "{head}\n{body}");
    login.log_in();
    assert_eq!(world.connect("far").say("hello").ok(), "hello");
    // The client and its redirect address are stored with the login.
    log_in(command(&world, &[]));
    assert_eq!(world.connect("far").say("hello").ok(), "hello");
    let wrong = run(
        &world.ours(),
        &["servers", "login", "far", "--client-id", "a", "--redirect", "http://evil.example:3118/"],
        "",
    );
    assert!(!wrong.0 && wrong.1.contains("cannot be used as the redirect address"), "{wrong:?}");
}
