//! Tests the TUN device: programs that ignore the proxy reach what the proxy allows, and nothing else.

use std::{
    collections::HashMap,
    fs,
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, TcpListener},
    path::Path,
    sync::{Arc, Mutex},
    thread,
};

use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, HostRules, Proxy, ProxyLimits, Record, RecordError, Resolve,
};
use ironcurtain_sandbox::{NetworkAccess, Spec};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::harness::{Fixture, Probe, eventually};

/// Python functions for the programs in the sandbox. Each prints one line.
const FUNCTIONS: &str = r#"
import errno, socket, sys, time
def failed(error): return errno.errorcode.get(error.errno, str(error))
def ask(host, port, word=b"word"):
    try:
        with socket.create_connection((host, port), 20) as s:
            s.sendall(word); s.shutdown(socket.SHUT_WR); return s.makefile("rb").read().decode()
    except OSError as error: return failed(error)
def send(host, port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)
    try: s.connect((host, port)); s.send(b"out"); s.recv(1); return "answered"
    except OSError as error: return failed(error)
def tunnel(target):
    s = socket.create_connection(("127.0.0.1", 3128), 20)
    s.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n".encode()); return s.recv(12).decode()
def opened(*kind):
    try: socket.socket(*kind); return "opened"
    except OSError as error: return failed(error)
"#;

/// Sandbox with a shell, and the proxy that serves it.
struct Scene {
    probe: Probe,
    _rules: watch::Sender<Arc<HostRules>>,
    _runtime: tokio::runtime::Runtime,
    asked: Arc<KnownNames>,
    _place: Fixture,
}

#[derive(Default)]
struct KnownNames(Mutex<Vec<String>>);

impl Resolve for KnownNames {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.0.lock().unwrap().push(name.to_owned());
        let known: HashMap<&str, Ipv4Addr> =
            [("echo.example.test", Ipv4Addr::LOCALHOST), ("sly.example.test", [169, 254, 169, 254].into())]
                .into();
        let found = known.get(name).map(|address| vec![(*address).into()]);
        Box::pin(std::future::ready(found.ok_or_else(|| io::ErrorKind::NotFound.into())))
    }
}

impl Record for KnownNames {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

impl Scene {
    fn new(allowed: &[String]) -> Self {
        let fixture = Fixture::new();
        fs::write(fixture.path("session/f.py"), FUNCTIONS).unwrap();
        let mut env = fixture.spec(&[]).env;
        env.insert("PYTHONPATH".into(), fixture.path("session"));
        let network = NetworkAccess::ProxiedWithServices;
        let mut probe = Probe::start(&Spec { network, env, ..fixture.spec(&["sh"]) });
        let listener = probe.egress.take().unwrap().listener().unwrap();
        let (rules, watched) = watch::channel(Arc::new(HostRules::new(allowed, [""; 0], false).unwrap()));
        let asked = Arc::<KnownNames>::default();
        let proxy = Proxy {
            server: "probe".into(),
            rules: watched,
            ask: None,
            record: asked.clone(),
            resolve: asked.clone(),
            connections: Connections::default(),
            limits: ProxyLimits::default(),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        runtime.spawn(ironcurtain_egress::serve(listener, proxy));
        Self { probe, _rules: rules, _runtime: runtime, asked, _place: fixture }
    }

    /// Evaluates a Python expression in the sandbox.
    fn python(&mut self, expression: &str) -> String {
        self.probe.send_command(&format!("/usr/bin/python3 -c 'from f import *; print({expression})' 2>&1"))
    }
}

/// Starts a server that answers with what it receives. Returns its port.
fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || {
                let (mut stream, mut buffer) = (stream.unwrap(), vec![0; 64 * 1024]);
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    if stream.write_all(&buffer[..count]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    port
}

/// Returns rules that allow the server at this port by its name.
fn allowed(port: u16) -> Vec<String> {
    vec![format!("echo.example.test:{port}"), format!("127.0.0.1:{port}"), "sly.example.test".into()]
}

#[test]
fn program_without_proxy_reaches_only_allowed_names() {
    let port = echo();
    let mut scene = Scene::new(&allowed(port));
    assert_eq!(scene.python(&format!("ask(\"echo.example.test\", {port})")), "word");
    let address = scene.python("socket.gethostbyname(\"other.example.test\")");
    assert!(address.starts_with("198.18.1."), "{address}");
    assert_eq!(*scene.asked.0.lock().unwrap(), ["echo.example.test"], "only the proxy resolves names");
    // Another port, another name, a name that resolves to a metadata service, and addresses.
    for (host, port) in [
        ("echo.example.test", port - 1),
        ("other.example.test", port),
        ("sly.example.test", 80),
        ("9.9.9.9", 443),
        ("169.254.169.254", 80),
        ("192.168.1.1", 80),
        ("10.0.0.1", 22),
        ("198.18.0.1", 53),
        ("198.18.77.77", port),
    ] {
        let output = scene.python(&format!("ask(\"{host}\", {port})"));
        assert_eq!(output, "ECONNREFUSED", "{host}:{port}");
    }
    // A large answer, over a socket that a program connects as IPv6.
    let mapped = format!(
        "len(ask(\"::ffff:\" + socket.gethostbyname(\"echo.example.test\"), {port}, b\"x\" * 3000000))"
    );
    assert_eq!(scene.python(&mapped), "3000000");
    assert_eq!(scene.python("ask(\"router\", 80)"), "[Errno -2] Name or service not known");
    assert_eq!(scene.python("ask(\"2606:4700::1111\", 443)"), "ENETUNREACH");
    assert_eq!(scene.python("socket.gethostbyname(socket.gethostname())"), "127.0.0.1");
}

#[test]
fn other_protocols_and_the_device_itself_are_refused() {
    let port = echo();
    let mut scene = Scene::new(&allowed(port));
    for (host, port) in [("9.9.9.9", 53), ("9.9.9.9", 443), ("169.254.169.254", 123), ("198.18.0.1", 5353)] {
        assert_eq!(scene.python(&format!("send(\"{host}\", {port})")), "ECONNREFUSED", "{host}:{port}");
    }
    for kind in [
        "socket.AF_NETLINK, socket.SOCK_RAW, 0",
        "socket.AF_INET, socket.SOCK_RAW, 1",
        "socket.AF_PACKET, socket.SOCK_RAW",
    ] {
        assert_eq!(scene.python(&format!("opened({kind})")), "EPERM", "{kind}");
    }
    assert_eq!(scene.python("opened(socket.AF_INET, socket.SOCK_STREAM)"), "opened");
    assert_eq!(
        scene.probe.send_command("ls /dev/net 2>&1"),
        "ls: cannot access '/dev/net': No such file or directory"
    );
    assert_eq!(scene.probe.send_command("cat /etc/resolv.conf"), "nameserver 198.18.0.1");
    assert_eq!(scene.python(&format!("ask(\"echo.example.test\", {port})")), "word");
}

#[test]
fn each_sandbox_has_its_own_table() {
    let port = echo();
    let (mut one, mut other) = (Scene::new(&allowed(port)), Scene::new(&allowed(port)));
    let address = one.python("socket.gethostbyname(\"echo.example.test\")");
    // The other sandbox has given the same address to another name.
    assert_eq!(other.python("socket.gethostbyname(\"other.example.test\")"), address);
    assert_eq!(one.python(&format!("ask(\"{address}\", {port})")), "word");
    assert_eq!(other.python(&format!("ask(\"{address}\", {port})")), "ECONNREFUSED");
    assert_eq!(other.python(&format!("ask(\"echo.example.test\", {port})")), "word");
}

#[test]
fn serving_process_has_no_privileges_and_ends_with_the_sandbox() {
    let port = echo();
    let mut scene = Scene::new(&allowed(port));
    assert_eq!(scene.python(&format!("ask(\"echo.example.test\", {port})")), "word");
    let folder = format!("/proc/{}", serving_process(scene.probe.pid));
    let status = fs::read_to_string(format!("{folder}/status")).unwrap();
    for expected in [
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapInh:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
    ] {
        assert!(status.lines().any(|line| line == expected), "{expected}\n{status}");
    }
    scene.probe.kill.kill();
    eventually("the process has ended", || !Path::new(&folder).exists());
}

#[test]
fn sandbox_continues_without_its_serving_process() {
    let port = echo();
    let mut scene = Scene::new(&allowed(port));
    kill_process(serving_process(scene.probe.pid), Signal::KILL).unwrap();
    eventually("the device has disappeared with the process", || {
        scene.python(&format!("ask(\"198.18.1.1\", {port})")) == "ENETUNREACH"
    });
    assert_eq!(scene.python(&format!("tunnel(\"echo.example.test:{port}\")")), "HTTP/1.1 200");
}

/// Returns the process that serves the device of a supervisor's sandbox.
fn serving_process(supervisor: u32) -> Pid {
    let children = fs::read_to_string(format!("/proc/{supervisor}/task/{supervisor}/children")).unwrap();
    let serves = |pid: &&str| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some("--tun")
    };
    children.split_whitespace().find(serves).and_then(|pid| Pid::from_raw(pid.parse().unwrap())).unwrap()
}
