//! Local MCP server and authorization server whose responses a test can replace.

use crate::remote::login::LoginServer;
use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, Dialer, Host, HostPort, HostRules, Proxy, ProxyLimits, Record,
    RecordError, Resolve,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use url::Url;

/// Received request.
#[derive(Debug, Clone)]
pub struct Received {
    pub head: String,
    pub path: String,
    pub body: String,
}

impl Received {
    pub fn form(&self) -> BTreeMap<String, String> {
        url::form_urlencoded::parse(self.body.as_bytes()).into_owned().collect()
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }
}

/// Response with status, headers and body.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: String,
    pub body: String,
}

/// HTTP server on a local port.
#[derive(Clone)]
pub struct FakeHost {
    pub base: String,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    received: Arc<Mutex<Vec<Received>>>,
    /// Runs before the response at this path is sent.
    before: Arc<Mutex<Option<Before>>>,
}

type Before = (String, Box<dyn FnOnce() + Send>);

impl FakeHost {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let host = Self { base, answers: Arc::default(), received: Arc::default(), before: Arc::default() };
        let serving = host.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let host = serving.clone();
                tokio::spawn(async move { host.serve(stream).await });
            }
        });
        host
    }

    async fn serve(&self, mut stream: TcpStream) {
        let (head, body) = read(&mut stream).await;
        let path = head.split(' ').nth(1).unwrap().split('?').next().unwrap().to_owned();
        self.received.lock().unwrap().push(Received { head, path: path.clone(), body });
        let none = Answer { status: 404, headers: String::new(), body: String::new() };
        let answer = self.answers.lock().unwrap().get(&path).cloned().unwrap_or(none);
        if let Some((_, before)) = self.before.lock().unwrap().take_if(|(before, _)| *before == path) {
            before();
        }
        let Answer { status, headers, body } = answer;
        let length = body.len();
        let text = format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
        );
        let _ = stream.write_all(text.as_bytes()).await;
    }

    pub fn set(&self, path: &str, status: u16, headers: &str, body: &str) {
        let answer = Answer { status, headers: headers.to_owned(), body: body.to_owned() };
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    /// Runs the closure before the next response at this path is sent.
    pub fn before(&self, path: &str, run: impl FnOnce() + Send + 'static) {
        *self.before.lock().unwrap() = Some((path.to_owned(), Box::new(run)));
    }

    pub fn json(&self, path: &str, body: &Value) {
        self.set(path, 200, "Content-Type: application/json\r\n", &body.to_string());
    }

    /// Returns the body of a response.
    pub fn answer(&self, path: &str) -> String {
        self.answers.lock().unwrap().get(path).unwrap().body.clone()
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    pub fn count(&self, path: &str) -> usize {
        self.received().iter().filter(|one| one.path == path).count()
    }

    pub fn last(&self, path: &str) -> Received {
        self.received().into_iter().rfind(|one| one.path == path).unwrap()
    }
}

async fn read(stream: &mut TcpStream) -> (String, String) {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_lowercase();
            let length = length
                .split("content-length: ")
                .nth(1)
                .map_or(0, |rest| rest.lines().next().unwrap().trim().parse::<usize>().unwrap());
            if body.len() >= length {
                return (head.to_owned(), body.to_owned());
            }
        }
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.unwrap();
        assert!(read > 0, "the request is not complete: {text}");
        bytes.extend_from_slice(&piece[..read]);
    }
}

/// Sends a GET request as a browser does. Returns an error if nothing is listening.
pub async fn get(url: &str) -> io::Result<Answer> {
    let url = Url::parse(url).unwrap();
    let address = format!("{}:{}", url.host_str().unwrap(), url.port().unwrap());
    let mut stream = TcpStream::connect(&address).await?;
    let target = &url[url::Position::BeforePath..];
    stream.write_all(format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_default();
    let status = head.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    Ok(Answer { status, headers: head.to_owned(), body: body.to_owned() })
}

/// Honest MCP server and its authorization server.
pub struct Hosts {
    pub mcp: FakeHost,
    pub auth: FakeHost,
    /// Addresses of host names. All other names do not exist.
    pub names: BTreeMap<&'static str, IpAddr>,
    /// Hosts to which connections were allowed.
    pub dialled: Arc<Mutex<Vec<String>>>,
}

/// Returns a token endpoint's response.
pub fn tokens(number: u32, scope: &str) -> Value {
    json!({
        "access_token": format!("access-{number}"), "token_type": "Bearer", "expires_in": 3600,
        "refresh_token": format!("refresh-{number}"), "scope": scope,
    })
}

impl Hosts {
    pub async fn start() -> Self {
        let (mcp, auth) = (FakeHost::start().await, FakeHost::start().await);
        let hosts = Self { mcp, auth, names: BTreeMap::new(), dialled: Arc::default() };
        let resource = format!("{}/.well-known/oauth-protected-resource/mcp", hosts.mcp.base);
        let challenge =
            format!("WWW-Authenticate: Bearer resource_metadata=\"{resource}\", scope=\"read\"\r\n");
        hosts.mcp.set("/mcp", 401, &challenge, "");
        hosts.set_issuer(&hosts.auth.base);
        let base = &hosts.auth.base;
        hosts.auth.json(
            "/.well-known/oauth-authorization-server",
            &json!({
                "issuer": base, "authorization_endpoint": format!("{base}/authorize"),
                "token_endpoint": format!("{base}/token"), "registration_endpoint": format!("{base}/register"),
                "response_types_supported": ["code"], "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": false,
            }),
        );
        hosts
            .auth
            .json("/register", &json!({ "client_id": "c1", "redirect_uris": ["http://127.0.0.1/callback"] }));
        hosts.auth.json("/token", &tokens(1, "read"));
        hosts
    }

    pub fn url(&self) -> String {
        format!("{}/mcp", self.mcp.base)
    }

    /// Makes the MCP server announce this authorization server.
    pub fn set_issuer(&self, issuer: &str) {
        let resource = json!({ "resource": self.url(), "authorization_servers": [issuer], "scopes_supported": ["read"] });
        self.mcp.json("/.well-known/oauth-protected-resource/mcp", &resource);
    }

    /// Modifies the authorization server's metadata.
    pub fn metadata(&self, change: impl FnOnce(&mut Map<String, Value>)) {
        let path = "/.well-known/oauth-authorization-server";
        let mut metadata: Map<String, Value> = serde_json::from_str(&self.auth.answer(path)).unwrap();
        change(&mut metadata);
        self.auth.json(path, &Value::Object(metadata));
    }

    /// Returns a login server whose entry allows loopback addresses.
    pub fn server(&self) -> LoginServer {
        LoginServer { allowed_addresses: vec!["127.0.0.1".parse().unwrap()], ..self.strict() }
    }

    /// Returns a login server whose entry allows no address except its own.
    pub fn strict(&self) -> LoginServer {
        let url = Url::parse(&self.url()).unwrap();
        let host = Host::parse(url.host_str().unwrap()).unwrap();
        let target = HostPort { host, port: url.port().unwrap() };
        let (names, dialled) = (self.names.clone(), self.dialled.clone());
        let dial = Arc::new(move |rules| dialer(rules, names.clone(), dialled.clone()));
        LoginServer { name: "far".into(), url, target, allowed_addresses: Vec::new(), dial }
    }
}

struct RecordedEvents {
    dialled: Arc<Mutex<Vec<String>>>,
    _rules: watch::Sender<Arc<HostRules>>,
}

impl Record for RecordedEvents {
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        if matches!(event.verdict, ironcurtain_egress::ConnectionVerdict::Allowed(_)) {
            self.dialled.lock().unwrap().push(format!("{}:{}", event.host, event.port));
        }
        Box::pin(async { Ok(()) })
    }
}

struct Names(BTreeMap<&'static str, IpAddr>);

impl Resolve for Names {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let found = self.0.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into());
        Box::pin(async move { found.map(|address| vec![address]) })
    }
}

fn dialer(
    rules: HostRules,
    names: BTreeMap<&'static str, IpAddr>,
    dialled: Arc<Mutex<Vec<String>>>,
) -> Dialer {
    let (sender, rules) = watch::channel(Arc::new(rules));
    Dialer::new(Proxy {
        server: "far".into(),
        rules,
        ask: None,
        record: Arc::new(RecordedEvents { dialled, _rules: sender }),
        resolve: Arc::new(Names(names)),
        connections: Connections::default(),
        limits: ProxyLimits::default(),
    })
}
