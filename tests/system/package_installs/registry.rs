//! An npm registry and a Python registry on the loopback interface that serve packages created by the tests.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// Content of a package.
#[derive(Default)]
pub struct Package<'a> {
    /// `scripts` of `package.json`.
    pub scripts: Value,
    /// `dependencies` of `package.json`.
    pub dependencies: Value,
    /// Base URL of the archive, or `None` if it is in this registry.
    pub elsewhere: Option<&'a str>,
    /// Description of the package's tools.
    pub description: &'a str,
    /// Names of additional tools.
    pub more: &'a [&'a str],
    /// `true` if the program exits immediately.
    pub broken: bool,
}

pub struct Registry {
    pub port: u16,
    shelf: Arc<Mutex<Shelf>>,
}

#[derive(Default)]
struct Shelf {
    files: BTreeMap<String, Vec<u8>>,
    versions: BTreeMap<String, Map<String, Value>>,
    asked: Vec<String>,
    /// Paths whose requests are left unanswered.
    held: Vec<String>,
}

impl Registry {
    pub fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let registry = Self { port: listener.local_addr().unwrap().port(), shelf: Arc::default() };
        let shelf = registry.shelf.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let shelf = shelf.clone();
                std::thread::spawn(move || serve(stream, &shelf));
            }
        });
        registry
    }

    /// Configures the user's npm and pip to use this registry.
    pub fn configure(&self, person: &Path) {
        std::fs::write(person.join(".npmrc"), format!("registry=http://127.0.0.1:{}/\n", self.port)).unwrap();
        let pip = person.join(".config/pip");
        std::fs::create_dir_all(&pip).unwrap();
        let index = format!("[global]\nindex-url = http://127.0.0.1:{}/simple\n", self.port);
        std::fs::write(pip.join("pip.conf"), index).unwrap();
    }

    /// Adds an npm package.
    pub fn npm(&self, name: &str, version: &str, package: &Package<'_>) {
        let about = json!({
            "name": name, "version": version, "bin": "./server.js", "scripts": or_empty(&package.scripts),
            "dependencies": or_empty(&package.dependencies),
        });
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("package");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("package.json"), about.to_string()).unwrap();
        std::fs::write(folder.join("server.js"), program(version, package)).unwrap();
        let path = format!("/files/{name}-{version}.tgz");
        let archive = packed(dir.path(), "package");
        let base = format!("http://127.0.0.1:{}", self.port);
        let mut about = about;
        about["dist"] = json!({ "tarball": format!("{}{path}", package.elsewhere.unwrap_or(&base)) });
        let mut shelf = self.shelf();
        shelf.files.insert(path, archive);
        shelf.versions.entry(name.to_owned()).or_default().insert(version.to_owned(), about);
        let versions = &shelf.versions[name];
        let all = json!({ "name": name, "dist-tags": { "latest": version }, "versions": versions });
        shelf.files.insert(format!("/{name}"), all.to_string().into_bytes());
    }

    /// Adds one file of a Python package.
    pub fn pypi(&self, name: &str, file: &str, content: Vec<u8>) {
        let mut shelf = self.shelf();
        shelf.files.insert(format!("/simple/{name}/{file}"), content);
        let start = format!("/simple/{name}/");
        let links =
            shelf.files.keys().filter_map(|path| path.strip_prefix(&start)).filter(|file| !file.is_empty());
        let page: String = links.map(|file| format!("<a href=\"{file}\">{file}</a>")).collect();
        shelf.files.insert(start, format!("<!DOCTYPE html><html><body>{page}</body></html>").into_bytes());
    }

    /// Stops answering requests for this path.
    pub fn hold(&self, path: &str) {
        self.shelf().held.push(path.to_owned());
    }

    /// Resumes answering requests for all paths.
    pub fn release(&self) {
        self.shelf().held.clear();
    }

    /// Returns the paths of all requests so far.
    pub fn asked(&self) -> Vec<String> {
        self.shelf().asked.clone()
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn or_empty(value: &Value) -> Value {
    if value.is_null() { json!({}) } else { value.clone() }
}

/// Returns a compressed archive of a folder.
pub fn packed(dir: &Path, folder: &str) -> Vec<u8> {
    let output = Command::new("tar").arg("-C").arg(dir).args(["-cz", folder]).output().unwrap();
    assert!(output.status.success());
    output.stdout
}

fn serve(mut stream: TcpStream, shelf: &Mutex<Shelf>) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    if reader.read_line(&mut first).is_err() {
        return;
    }
    for line in reader.by_ref().lines().map_while(Result::ok) {
        if line.is_empty() {
            break;
        }
    }
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let (held, content) = {
        let mut shelf = shelf.lock().unwrap_or_else(PoisonError::into_inner);
        shelf.asked.push(path.clone());
        (shelf.held.contains(&path), shelf.files.get(&path).cloned())
    };
    if held {
        // Reads until the other side closes the connection.
        let _ = reader.lines().map_while(Result::ok).count();
        return;
    }
    let status = if content.is_some() { "200 OK" } else { "404 Not Found" };
    let kind = if path.ends_with('/') { "text/html" } else { "application/octet-stream" };
    let content = content.unwrap_or_default();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        content.len()
    );
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&content));
}

/// Returns the source of a small MCP server for Node.js.
fn program(version: &str, package: &Package<'_>) -> String {
    let tool = |name: &&str| json!({ "name": name, "description": package.description, "inputSchema": { "type": "object" } });
    let names = ["version", "reach", "change"];
    let tools: Vec<Value> = names.iter().chain(package.more).map(tool).collect();
    let first = if package.broken { "throw new Error('a part is missing');" } else { "" };
    PROGRAM
        .replace("FIRST", first)
        .replace("VERSION", version)
        .replace("TOOLS", &Value::from(tools).to_string())
}

const PROGRAM: &str = r"#!/usr/bin/env node
FIRST
const say = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n');
const calls = {
    version: () => 'VERSION',
    reach: ({ port }) => new Promise((done) => require('net').connect(port, '127.0.0.1')
        .on('connect', () => done('connected')).on('error', (problem) => done(problem.code))),
    change: () => { try { require('fs').chmodSync(__filename, 0o755); return 'changed'; } catch (e) { return e.code; } },
};
require('readline').createInterface({ input: process.stdin }).on('line', async (line) => {
    const { id, method, params } = JSON.parse(line);
    if (id === undefined) return;
    if (method === 'initialize') {
        const { protocolVersion } = params, serverInfo = { name: 'tiny', version: 'VERSION' };
        say({ id, result: { protocolVersion, capabilities: { tools: {} }, serverInfo } });
    } else if (method === 'tools/list') {
        say({ id, result: { tools: TOOLS } });
    } else if (method === 'tools/call') {
        const text = await calls[params.name](params.arguments ?? {});
        say({ id, result: { content: [{ type: 'text', text }] } });
    } else {
        say({ id, result: {} });
    }
});
";
