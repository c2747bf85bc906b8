//! Proxy whose name resolution, user answers and audit record are controlled by the test.

use ironcurtain_egress::{
    AskHost, BoxFuture, ConnectionEvent, ConnectionVerdict, Connections, HostAnswer, HostPort, HostRules,
    PermittedBy, Proxy, ProxyLimits, Record, RecordError, Resolve, serve,
};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Timeout for each step, far above its normal duration.
pub const TIMEOUT: Duration = Duration::from_secs(30);

pub struct TestProxy {
    pub address: SocketAddr,
    pub rules: watch::Sender<Arc<HostRules>>,
    pub names: Arc<Names>,
    pub events: Arc<Events>,
    pub connections: Connections,
    task: JoinHandle<io::Error>,
}

/// Options for a test's proxy.
pub struct Options {
    pub rules: HostRules,
    pub limits: ProxyLimits,
    pub ask: Option<Arc<dyn AskHost>>,
}

impl Drop for TestProxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl TestProxy {
    /// Starts a proxy with the given allowed and denied patterns and without a user to ask.
    pub fn new(allowed: &[&str], denied: &[&str]) -> Self {
        let rules = HostRules::new(allowed, denied, false).unwrap();
        Self::with(Options { rules, limits: ProxyLimits::default(), ask: None })
    }

    pub fn with(options: Options) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (rules, watched) = watch::channel(Arc::new(options.rules));
        let (names, events): (Arc<Names>, Arc<Events>) = Default::default();
        let connections = Connections::default();
        let proxy = Proxy {
            server: "fetch".into(),
            rules: watched,
            ask: options.ask,
            record: events.clone(),
            resolve: names.clone(),
            connections: connections.clone(),
            limits: options.limits,
        };
        Self { address, rules, names, events, connections, task: tokio::spawn(serve(listener, proxy)) }
    }

    pub async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends bytes and returns everything the proxy sends until it closes the connection.
    pub async fn send_and_read(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        read_to_end(&mut stream).await
    }

    /// Opens a tunnel to an allowed target.
    pub async fn tunnel(&self, target: &str) -> TcpStream {
        let mut stream = self.connect().await;
        stream
            .write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
            .await
            .unwrap();
        let head = read_head(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
        stream
    }

    /// Requests a tunnel to a refused target and returns the status, code and text of the refusal.
    pub async fn refusal(&self, target: &str) -> (u16, String, String) {
        refusal_of(
            &self
                .send_and_read(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())
                .await,
        )
    }
}

/// Parses a refusal's status, code and text.
pub fn refusal_of(answer: &str) -> (u16, String, String) {
    let (head, text) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {answer:?}"));
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let code = head.lines().find_map(|line| line.strip_prefix("x-ironcurtain-reason: ")).unwrap_or_default();
    (status, code.to_owned(), text.to_owned())
}

/// Reads until the peer closes the connection.
pub async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset counts as a close.
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the peer hangs up");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads the head of an HTTP message.
pub async fn read_head(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let byte = timeout(TIMEOUT, stream.read_u8()).await.expect("a response arrives");
        bytes.push(byte.unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&bytes))));
    }
    String::from_utf8(bytes).unwrap()
}

/// Loopback server that sends each connection the same response and records the received bytes.
pub struct Peer {
    pub port: u16,
    pub received: watch::Receiver<Vec<Vec<u8>>>,
    task: JoinHandle<()>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Peer {
    /// Reads one request head, responds, and reads the rest.
    pub async fn http(answer: &'static str) -> Self {
        Self::start(move |mut stream, report| async move {
            let mut received = read_head(&mut stream).await.into_bytes();
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let _ = stream.read_to_end(&mut received).await;
            report.send_modify(|all| all.push(received));
        })
        .await
    }

    /// Echoes until the client closes the connection.
    pub async fn echo() -> Self {
        Self::start(|mut stream, report| async move {
            let mut received = Vec::new();
            let mut buffer = [0; 4096];
            while let Ok(n @ 1..) = stream.read(&mut buffer).await {
                received.extend_from_slice(&buffer[..n]);
                let _ = stream.write_all(&buffer[..n]).await;
            }
            report.send_modify(|all| all.push(received));
        })
        .await
    }

    async fn start<F>(serve: impl Fn(TcpStream, watch::Sender<Vec<Vec<u8>>>) -> F + Send + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (report, received) = watch::channel(Vec::new());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, report.clone()));
            }
        });
        Self { port, received, task }
    }

    /// Waits until `connections` connections have closed, and returns the bytes received on each.
    pub async fn received(&self, connections: usize) -> Vec<String> {
        let mut received = self.received.clone();
        let all = timeout(TIMEOUT, received.wait_for(|all| all.len() >= connections))
            .await
            .expect("the bytes arrive")
            .unwrap();
        all.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

/// Scripted lookup results for each name. The results are used in order, and the last result repeats. Records the
/// looked-up names.
#[derive(Default)]
pub struct Names(Mutex<HashMap<String, VecDeque<Vec<IpAddr>>>>, Mutex<Vec<String>>);

impl Names {
    /// Sets a name's results. Each string is one result: addresses separated by spaces.
    pub fn set(&self, name: &str, answers: &[&str]) {
        let addresses = |text: &&str| text.split(' ').map(|a| a.parse().unwrap()).collect();
        self.0.lock().unwrap().insert(name.into(), answers.iter().map(addresses).collect());
    }

    /// Returns all looked-up names, in order.
    pub fn looked_up(&self) -> Vec<String> {
        self.1.lock().unwrap().clone()
    }
}

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.1.lock().unwrap().push(name.into());
        let mut names = self.0.lock().unwrap();
        let answer = match names.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.pop_front(),
            Some(answers) => answers.front().cloned(),
            None => None,
        };
        let missing = || io::Error::new(io::ErrorKind::NotFound, "no such host");
        Box::pin(std::future::ready(answer.ok_or_else(missing)))
    }
}

/// Recorded events.
pub struct Events {
    all: watch::Sender<Vec<ConnectionEvent>>,
    /// Error that every attempt to record returns, or `None` if recording works.
    pub broken: Mutex<Option<String>>,
}

impl Default for Events {
    fn default() -> Self {
        Self { all: watch::Sender::new(Vec::new()), broken: Mutex::default() }
    }
}

impl Record for Events {
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        let broken = self.broken.lock().unwrap().clone();
        if broken.is_none() {
            self.all.send_modify(|all| all.push(event));
        }
        Box::pin(std::future::ready(broken.map_or(Ok(()), |problem| Err(RecordError::new(problem)))))
    }
}

impl Events {
    /// Waits for at least `count` events and returns one line per event.
    pub async fn lines(&self, count: usize) -> Vec<String> {
        let mut all = self.all.subscribe();
        let all =
            timeout(TIMEOUT, all.wait_for(|all| all.len() >= count)).await.expect("it is recorded").unwrap();
        all.iter().map(line).collect()
    }
}

fn line(event: &ConnectionEvent) -> String {
    let verdict = match &event.verdict {
        ConnectionVerdict::Allowed(PermittedBy::Rule(rule)) => format!("allowed by {rule}"),
        ConnectionVerdict::Allowed(PermittedBy::Grant(grant)) => format!("allowed by grant {grant}"),
        ConnectionVerdict::Allowed(PermittedBy::Once) => "allowed once".to_owned(),
        ConnectionVerdict::Refused { code, .. } => format!("refused {code}"),
        ConnectionVerdict::Failed { code, .. } => format!("failed {code}"),
    };
    let addresses: Vec<_> = event.addresses.iter().map(ToString::to_string).collect();
    assert_eq!(event.server, "fetch");
    format!("{} {}:{} {verdict} [{}]", event.protocol, event.host, event.port, addresses.join(" "))
}

/// Simulated user who gives scripted answers and records the questions.
pub struct Person {
    answer: watch::Sender<Option<HostAnswer>>,
    pub asked: Mutex<Vec<String>>,
}

/// Lets other tasks run until `is_met` returns `true`.
pub async fn wait_until(what: &str, is_met: impl Fn() -> bool) {
    let met = async {
        while !is_met() {
            tokio::task::yield_now().await;
        }
    };
    timeout(TIMEOUT, met).await.unwrap_or_else(|_| panic!("timed out waiting for: {what}"));
}

impl Person {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { answer: watch::Sender::new(None), asked: Mutex::default() })
    }

    /// Returns the number of pending questions.
    pub fn waiting(&self) -> usize {
        self.answer.receiver_count()
    }

    /// Sets the answer to the pending question and to later questions.
    pub fn set_answer(&self, answer: Option<HostAnswer>) {
        self.answer.send_replace(answer);
    }
}

impl AskHost for Person {
    fn ask(&self, target: HostPort) -> BoxFuture<'static, HostAnswer> {
        self.asked.lock().unwrap().push(target.to_string());
        let mut answer = self.answer.subscribe();
        Box::pin(async move { answer.wait_for(Option::is_some).await.unwrap().clone().unwrap() })
    }
}
