//! Adds servers from npm and PyPI as a user would, each in a new home, and calls one tool of each server. Prints a
//! Markdown table. Run it with `cargo xtask servers`, or with the name of one server.
//!
//! - The scripted user accepts every question with its narrowest offer.
//! - Fails unless every server works, reports what this computer lacks, or asks for access to the host that it needs.

#[path = "foreign-servers/table.rs"]
mod table;

use anyhow::{Context, ensure};
use ironcurtain_config::home::Home;
use ironcurtain_consent::{Answer, AnswerSlot, Consent, Lifetime, Question, TextPart, WithdrawalReason};
use ironcurtain_daemon::{DaemonOptions, start};
use ironcurtain_protocol::Request;
use ironcurtain_testkit::JsonProcess;
use ironcurtain_testkit::programs::{built, is_root};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use table::{Expected, RegistryServer, SERVERS};

/// Timeout of one request, long enough for a package that loads a model.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum length of a result in the table.
const MAX_RESULT_LEN: usize = 160;

/// Simulated user who accepts the narrowest offer of every question.
#[derive(Default)]
struct AcceptEverything(Mutex<Vec<String>>);

impl Consent for AcceptEverything {
    fn ask(&self, question: Question, slot: AnswerSlot) {
        let pieces = question.consequences.iter().flat_map(|effect| &effect.object);
        let object: String = pieces
            .map(|piece| match piece {
                TextPart::Fixed(text) => (*text).to_owned(),
                TextPart::Path(text) | TextPart::Untrusted(text) => text.clone(),
            })
            .collect();
        let tool = question.tool.as_deref().unwrap_or("(none)");
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{tool}: {object}"));
        let lifetimes = question.offers.first().map(|offer| offer.lifetimes.clone()).unwrap_or_default();
        let lifetime =
            if lifetimes.contains(&Lifetime::Session) { Lifetime::Session } else { Lifetime::Once };
        slot.answer(Answer::Allow { offer: 0, lifetime });
    }

    fn withdraw(&self, _: &str, _: WithdrawalReason) {}

    fn notify(&self, _: &str) {}
}

/// Output of a command that ran on a terminal, with yes as the answer to every question.
struct TerminalOutput {
    text: String,
    questions: usize,
    is_ok: bool,
}

/// Result for one server.
struct Row {
    seconds: f64,
    typed: usize,
    asked: Vec<String>,
    result: String,
    is_expected: bool,
}

fn main() -> anyhow::Result<()> {
    let only = std::env::args().nth(1);
    let postgres = Database::start()?;
    let selected: Vec<&RegistryServer> =
        SERVERS.iter().filter(|server| only.as_deref().is_none_or(|only| only == server.name)).collect();
    ensure!(!selected.is_empty(), "unknown server");
    let mut out = std::io::stdout();
    writeln!(
        out,
        "| server | seconds to add | questions when adding | questions of the first call | result |"
    )?;
    writeln!(out, "|---|---|---|---|---|")?;
    let mut wrong = Vec::new();
    for server in selected {
        let row = try_server(server, &postgres);
        let (is_expected, line) = match &row {
            Ok(row) => (row.is_expected, line(server, row)),
            Err(problem) => (
                false,
                format!("| {} | | | | not added: {} |", server.name, one_line(&format!("{problem:#}"))),
            ),
        };
        writeln!(out, "{line}")?;
        if !is_expected {
            wrong.push(server.name);
        }
    }
    ensure!(wrong.is_empty(), "not as expected: {}", wrong.join(", "));
    Ok(())
}

fn line(server: &RegistryServer, row: &Row) -> String {
    let Row { seconds, typed, asked, result, is_expected } = row;
    let mark = if *is_expected { "" } else { "UNEXPECTED: " };
    let asked = format!("{}: {}", asked.len(), one_line(&asked.join("; ")));
    format!("| {} | {seconds:.1} | {typed} | {asked} | {mark}{} |", server.name, one_line(result))
}

fn one_line(text: &str) -> String {
    let text: Vec<&str> = text.split_whitespace().collect();
    text.join(" ").replace('|', "\\|").chars().take(MAX_RESULT_LEN).collect()
}

/// Adds a server in a new home and calls its tool.
fn try_server(server: &RegistryServer, postgres: &Database) -> anyhow::Result<Row> {
    let dir = tempfile::Builder::new().prefix("icforeign").tempdir()?;
    let base = dir.path().canonicalize()?;
    let (ironcurtain_home, person) = (base.join("ic"), base.join("person"));
    let home = Home::under(&ironcurtain_home, &person);
    std::fs::create_dir_all(person.join("docs"))?;
    std::fs::create_dir_all(person.join("app"))?;
    std::fs::write(person.join("app/index.js"), "const unused = 1;\n")?;
    let config = "export default [{ rules: { \"no-unused-vars\": \"error\" } }];\n";
    std::fs::write(person.join("app/eslint.config.mjs"), config)?;
    std::fs::write(person.join("app/package.json"), "{ \"name\": \"app\", \"type\": \"module\" }\n")?;
    let fill = |text: &str| {
        let text = text.replace("{home}", &person.display().to_string());
        text.replace("{postgres}", &postgres.url()).replace("{chromium}", "/usr/bin/chromium-headless-shell")
    };
    let mut words: Vec<String> = ["servers", "add"].map(str::to_owned).to_vec();
    if is_root() {
        words.push("--allow-root".to_owned());
    }
    words.extend(["--name", server.name].map(str::to_owned));
    match server.snippet(fill) {
        Some(snippet) => {
            let file = person.join("snippet.json");
            std::fs::write(&file, snippet.to_string())?;
            words.truncate(words.len() - 2);
            words.push(file.display().to_string());
        }
        None => words.extend(server.typed.iter().map(|word| fill(word))),
    }
    let began = Instant::now();
    let added = run_on_terminal(&words, &ironcurtain_home, &person)?;
    let seconds = began.elapsed().as_secs_f64();
    if !added.is_ok {
        let result = added.text.rsplit("ironcurtain: ").next().unwrap_or_default();
        let is_expected = match server.expected {
            Expected::Works(_) => false,
            Expected::MissingDependency(texts) => contains_any(result, texts),
            Expected::HostQuestion(host) => added.text.contains(host) && added.questions > 1,
        };
        let result = format!("not added: {result}");
        return Ok(Row { seconds, typed: added.questions, asked: Vec::new(), result, is_expected });
    }
    let user = Arc::new(AcceptEverything::default());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let options = DaemonOptions { home, programs: built(), allow_root: is_root() };
    let daemon = runtime.block_on(start(options, user.clone()))?;
    let called = call_tool(server, &ironcurtain_home, &fill(server.call.1));
    runtime.block_on(async {
        daemon.request(Request::Shutdown).await;
        daemon.ended().await;
    });
    // Makes the installed, read-only packages writable so that they can be deleted.
    Command::new("chmod").args(["--recursive", "u+w"]).arg(&base).status()?;
    let asked = user.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let (is_error, result) = called?;
    let is_expected = match server.expected {
        Expected::Works(text) => !is_error && result.contains(text),
        Expected::MissingDependency(texts) => !is_error || contains_any(&result, texts),
        Expected::HostQuestion(host) => asked.iter().any(|asked| asked.contains(host)),
    };
    Ok(Row { seconds, typed: added.questions, asked, result, is_expected })
}

fn contains_any(error: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| error.to_lowercase().contains(text))
}

/// Runs `ironcurtain` on a terminal and answers each question with yes.
fn run_on_terminal(
    words: &[String],
    ironcurtain_home: &Path,
    person: &Path,
) -> anyhow::Result<TerminalOutput> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let own = openpt(flags)?;
    grantpt(&own)?;
    unlockpt(&own)?;
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait"]).arg(built().join("ironcurtain")).args(words);
    command.env("IRONCURTAIN_HOME", ironcurtain_home).env("HOME", person).env("TERM", "xterm");
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    for variable in ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"] {
        command.env_remove(variable);
    }
    let other = || ioctl_tiocgptpeer(&own, flags);
    let mut child = command.stdin(other()?).stdout(other()?).stderr(other()?).spawn()?;
    // The command holds the other end, so reading fails once the program has exited.
    drop(command);
    let mut own = File::from(own);
    let (mut text, mut questions, mut piece) = (String::new(), 0, [0; 4096]);
    let mut seen = 0;
    while let Ok(count @ 1..) = own.read(&mut piece) {
        text.push_str(&String::from_utf8_lossy(piece.get(..count).unwrap_or_default()));
        if text.get(seen..).is_some_and(|new| new.trim_end().ends_with("[y/N]")) {
            (seen, questions) = (text.len(), questions + 1);
            own.write_all(b"y\n")?;
        }
    }
    Ok(TerminalOutput { text, questions, is_ok: child.wait()?.success() })
}

/// Calls the server's tool. Returns `true` if the call failed, and the text of the result.
fn call_tool(
    server: &RegistryServer,
    ironcurtain_home: &Path,
    arguments: &str,
) -> anyhow::Result<(bool, String)> {
    let mut shim = Command::new(built().join("ironcurtain-shim"));
    shim.args(["--server", server.name]).env("IRONCURTAIN_HOME", ironcurtain_home).current_dir("/");
    let mut shim = JsonProcess::start(shim.stderr(Stdio::inherit()));
    let mut request = |id: u32, method: &str, params: Value| {
        if id > 1 {
            shim.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        shim.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        loop {
            let message = shim.receive(TIMEOUT).with_context(|| format!("no response to `{method}`"))?;
            if message.get("id") == Some(&json!(id)) && message.get("method").is_none() {
                return anyhow::Ok(message);
            }
        }
    };
    let client = json!({ "name": "agent", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    let answer = request(1, "initialize", params)?;
    if let Some(error) = answer.pointer("/error/message").and_then(Value::as_str) {
        return Ok((true, error.to_owned()));
    }
    let arguments: Value = serde_json::from_str(arguments)?;
    let answer = request(2, "tools/call", json!({ "name": server.call.0, "arguments": arguments }))?;
    if let Some(error) = answer.pointer("/error/message").and_then(Value::as_str) {
        return Ok((true, error.to_owned()));
    }
    let content = answer.pointer("/result/content").and_then(Value::as_array).cloned().unwrap_or_default();
    let texts: Vec<&str> = content.iter().filter_map(|one| one.get("text")?.as_str()).collect();
    Ok((answer.pointer("/result/isError") == Some(&json!(true)), texts.join(" ")))
}

/// PostgreSQL server on a local port, run by a user other than root.
struct Database {
    port: u16,
    process: Child,
    _folder: tempfile::TempDir,
}

impl Database {
    fn start() -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new().prefix("icpostgres").tempdir()?;
        let versions = std::fs::read_dir("/usr/lib/postgresql").context("PostgreSQL is not installed")?;
        let programs = versions.filter_map(|version| Some(version.ok()?.path().join("bin")));
        let programs = programs.max().context("PostgreSQL is not installed")?;
        let program = |name: &str| {
            let path: PathBuf = programs.join(name);
            if !is_root() {
                return Command::new(path);
            }
            let mut command = Command::new("setpriv");
            command.args(["--reuid", "postgres", "--regid", "postgres", "--clear-groups"]).arg(path);
            command
        };
        if is_root() {
            let status = Command::new("chown").arg("postgres").arg(folder.path()).status()?;
            ensure!(status.success(), "`chown postgres` failed");
        }
        let data = folder.path().join("data");
        let mut init = program("initdb");
        init.args(["--username", "postgres", "--auth", "trust", "--pgdata"]).arg(&data);
        let output = init.current_dir("/").output()?;
        ensure!(output.status.success(), "initdb: {}", String::from_utf8_lossy(&output.stderr));
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut server = program("postgres");
        server
            .arg("-D")
            .arg(&data)
            .args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"])
            .arg(folder.path());
        let process = server.current_dir("/").stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let database = Self { port, process, _folder: folder };
        let deadline = Instant::now() + TIMEOUT;
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(Instant::now() < deadline, "PostgreSQL did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(database)
    }

    fn url(&self) -> String {
        format!("postgresql://postgres@127.0.0.1:{}/postgres", self.port)
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
