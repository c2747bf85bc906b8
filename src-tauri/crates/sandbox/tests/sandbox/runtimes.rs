//! Tests that the language runtimes of common servers start and work in a sandbox.

use std::io::Read;

use crate::harness::{Fixture, Probe};

#[test]
fn node_starts() {
    let code = "const fs = require('fs'); fs.writeFileSync('out', 'x'); \
        const { execFileSync } = require('child_process'); \
        new (require('worker_threads').Worker)('0', { eval: true }).on('exit', () => \
        console.log(process.version[0], fs.readFileSync('out', 'utf8'), execFileSync('echo', ['child']).toString().trim()))";
    assert_eq!(output(&["node", "-e", code]), "v x child\n");
}

#[test]
fn node_serves_on_its_own_loopback() {
    let code = "const net = require('net'); const s = net.createServer(c => { c.end('served'); s.close() }); \
        s.listen(0, '127.0.0.1', () => net.connect(s.address().port, '127.0.0.1').on('data', d => console.log(String(d))))";
    assert_eq!(output(&["node", "-e", code]), "served\n");
}

#[test]
fn python_starts() {
    let code = "import asyncio, json, os, ssl, subprocess, tempfile, threading, multiprocessing
t = threading.Thread(target=lambda: None); t.start(); t.join()
with tempfile.NamedTemporaryFile() as f: f.write(b'x')
print(os.path.expanduser('~'), subprocess.check_output(['echo', 'child']).decode().strip(), asyncio.run(asyncio.sleep(0, 'async')))";
    assert_eq!(output(&["/usr/bin/python3", "-c", code]), "/tmp child async\n");
}

#[test]
fn shell_and_tools_start() {
    assert_eq!(
        output(&["sh", "-c", "printf 'b\\na\\n' | sort | tr '\\n' ' '; id -un >user; wc -l <user"]),
        "a b 1\n"
    );
}

fn output(argv: &[&str]) -> String {
    let fixture = Fixture::new();
    let mut server = Probe::start(&fixture.spec(argv));
    server.stdin = None;
    let (mut output, mut complaints) = (String::new(), String::new());
    server.stdout.read_to_string(&mut output).unwrap();
    server.stderr.read_to_string(&mut complaints).unwrap();
    assert_eq!((complaints.as_str(), server.wait().status), ("", Some(0)));
    output
}
