//! A streamable HTTP server whose behaviour each test defines.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// Id of every session.
pub const SESSION: &str = "session-1";

/// A request that the server has received.
#[derive(Debug, Clone)]
pub struct ReceivedRequest {
    pub verb: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

impl ReceivedRequest {
    /// Returns the JSON-RPC method, or the HTTP method if the request contains no message.
    pub fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or(&self.verb)
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

/// The connection on which a request arrived. Dropping it closes the connection.
pub struct Responder(TcpStream);

impl Responder {
    /// Sends raw bytes. Returns `false` if sending fails.
    pub fn raw(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).and_then(|()| self.0.flush()).is_ok()
    }

    /// Sends a complete response.
    pub fn answer(&mut self, status: &str, headers: &str, body: &str) {
        let length = body.len();
        self.raw(
            format!(
                "HTTP/1.1 {status}\r\n{headers}Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .as_bytes(),
        );
    }

    pub fn json(&mut self, body: &Value) {
        let session = format!("Content-Type: application/json\r\nMcp-Session-Id: {SESSION}\r\n");
        self.answer("200 OK", &session, &body.to_string());
    }

    /// Starts an event stream, which lasts until the connection is closed.
    pub fn begin_events(&mut self) {
        self.raw(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\nConnection: close\r\n\r\n",
        );
    }

    pub fn event(&mut self, id: &str, body: &Value) -> bool {
        self.raw(format!("id: {id}\r\nevent: message\r\ndata: {body}\r\n\r\n").as_bytes())
    }
}

/// Handles a request. Returns `false` to have the server answer correctly instead.
pub type Behaviour = dyn Fn(&ReceivedRequest, &mut Responder) -> bool + Send + Sync;

pub struct FakeServer {
    pub port: u16,
    asked: Arc<Mutex<Vec<ReceivedRequest>>>,
    behaviour: Arc<Mutex<Arc<Behaviour>>>,
}

impl FakeServer {
    /// Starts a server that behaves correctly.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::<Mutex<Vec<ReceivedRequest>>>::default();
        let behaviour: Arc<Mutex<Arc<Behaviour>>> =
            Arc::new(Mutex::new(Arc::new(|_: &ReceivedRequest, _: &mut Responder| false)));
        let (all, how) = (asked.clone(), behaviour.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (all, how) = (all.clone(), how.clone());
                std::thread::spawn(move || serve(stream.unwrap(), &all, &how));
            }
        });
        Self { port, asked, behaviour }
    }

    /// Replaces the behaviour.
    pub fn set_behaviour(
        &self,
        behaviour: impl Fn(&ReceivedRequest, &mut Responder) -> bool + Send + Sync + 'static,
    ) {
        *self.behaviour.lock().unwrap() = Arc::new(behaviour);
    }

    /// Restores the correct behaviour.
    pub fn behave_correctly(&self) {
        self.set_behaviour(|_, _| false);
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }

    /// Returns all requests received so far.
    pub fn asked(&self) -> Vec<ReceivedRequest> {
        self.asked.lock().unwrap().clone()
    }

    /// Returns the methods of all requests, in order.
    pub fn methods(&self) -> Vec<String> {
        self.asked().iter().map(|asked| asked.method().to_owned()).collect()
    }
}

fn serve(stream: TcpStream, all: &Mutex<Vec<ReceivedRequest>>, behaviour: &Mutex<Arc<Behaviour>>) {
    let Some(asked) = read(&stream) else { return };
    all.lock().unwrap().push(asked.clone());
    let behaviour = behaviour.lock().unwrap().clone();
    let mut back = Responder(stream);
    if !behaviour(&asked, &mut back) {
        answer_correctly(&asked, &mut back);
    }
}

fn read(stream: &TcpStream) -> Option<ReceivedRequest> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (verb, path) = (words.next()?, words.next()?);
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(ReceivedRequest { verb, path, headers, body: serde_json::from_slice(&body).unwrap_or_default() })
}

/// Answers a request as a correct server would.
fn answer_correctly(asked: &ReceivedRequest, back: &mut Responder) {
    let id = &asked.body["id"];
    let result = |result: Value| json!({ "jsonrpc": "2.0", "id": id, "result": result });
    match (asked.verb.as_str(), asked.method()) {
        ("POST", "initialize") => back.json(&result(json!({
            "protocolVersion": "2025-06-18",
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": { "name": "far", "version": "1" },
        }))),
        ("POST", "tools/list") => back.json(&result(tools())),
        ("POST", "tools/call") => back.json(&result(said(&asked.body["params"]["arguments"].to_string()))),
        ("POST", _) => back.answer("202 Accepted", "", ""),
        ("GET", _) => back.answer("405 Method Not Allowed", "", ""),
        _ => back.answer("200 OK", "", ""),
    }
}

/// Returns a tool result that contains this text.
pub fn said(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }], "isError": false })
}

fn tools() -> Value {
    let of = |name: &str, argument: &str| {
        let schema = json!({ "type": "object", "properties": { argument: { "type": "string" } }, "required": [argument] });
        json!({ "name": name, "description": name, "inputSchema": schema })
    };
    json!({ "tools": [of("say", "text"), of("look", "path")] })
}
