//! Bundle server that supports `ETag`, `304 Not Modified`, a bearer token and long polling, and can misbehave.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// Token that the server requires, unless the bundle is public.
pub const TOKEN: &str = "t0ken";

/// Behaviour of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
    /// Sends the bundle.
    Serve(Vec<u8>),
    /// Sends the bundle, even without the token.
    Publish(Vec<u8>),
    /// Responds with this status code.
    Status(u16),
}

pub struct BundleServer {
    pub port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    behaviour: Behaviour,
    version: u64,
    /// Heads of all requests, in lowercase.
    requests: Vec<String>,
}

impl BundleServer {
    pub fn start(behaviour: Behaviour) -> Self {
        Self::start_at(TcpListener::bind("127.0.0.1:0").unwrap(), behaviour)
    }

    /// Starts a server on this port, which must be free.
    pub fn start_on(port: u16, behaviour: Behaviour) -> Self {
        Self::start_at(TcpListener::bind(("127.0.0.1", port)).unwrap(), behaviour)
    }

    fn start_at(listener: TcpListener, behaviour: Behaviour) -> Self {
        let port = listener.local_addr().unwrap().port();
        let state = Mutex::new(State { behaviour, version: 1, requests: Vec::new() });
        let shared = Arc::new(Shared { state, changed: Condvar::new() });
        let of_thread = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let shared = of_thread.clone();
                // Ignore the error: the client may close its connection early.
                std::thread::spawn(move || drop(shared.answer(stream.unwrap())));
            }
        });
        Self { port, shared }
    }

    /// Changes the behaviour, and responds to requests that are waiting for a change.
    pub fn behave(&self, behaviour: Behaviour) {
        let mut state = self.shared.state.lock().unwrap();
        (state.behaviour, state.version) = (behaviour, state.version + 1);
        self.shared.changed.notify_all();
    }

    pub fn serve(&self, bundle: Vec<u8>) {
        self.behave(Behaviour::Serve(bundle));
    }

    /// Returns the heads of all requests, in lowercase.
    pub fn requests(&self) -> Vec<String> {
        self.shared.state.lock().unwrap().requests.clone()
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        let mut head = String::new();
        let mut reader = BufReader::new(stream.try_clone()?);
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head)? == 0 {
                return Ok(());
            }
        }
        let head = head.to_lowercase();
        let mut state = self.state.lock().unwrap();
        state.requests.push(head.clone());
        let is_public = matches!(state.behaviour, Behaviour::Publish(_));
        if !is_public && !head.contains(&format!("\r\nauthorization: bearer {TOKEN}\r\n")) {
            return stream.write_all(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n");
        }
        let has = |state: &State| head.contains(&format!("\r\nif-none-match: \"{}\"\r\n", state.version));
        let wait = head.split("wait=").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
        if let Some(seconds) = wait {
            let patience = Duration::from_secs(seconds);
            state = self.changed.wait_timeout_while(state, patience, |state| has(state)).unwrap().0;
        }
        let (behaviour, version, is_current) = (state.behaviour.clone(), state.version, has(&state));
        drop(state);
        match behaviour {
            Behaviour::Serve(_) | Behaviour::Publish(_) if is_current => {
                stream.write_all(b"HTTP/1.1 304 Not Modified\r\ncontent-length: 0\r\n\r\n")
            }
            Behaviour::Serve(bundle) | Behaviour::Publish(bundle) => {
                let kind = "application/vnd.openpolicyagent.bundles";
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\netag: \"{version}\"\r\ncontent-length: {}\r\n\r\n",
                    bundle.len()
                );
                stream.write_all(head.as_bytes())?;
                stream.write_all(&bundle)
            }
            Behaviour::Status(status) => {
                let head =
                    format!("HTTP/1.1 {status} Status\r\nlocation: /other\r\ncontent-length: 0\r\n\r\n");
                stream.write_all(head.as_bytes())
            }
        }
    }
}
