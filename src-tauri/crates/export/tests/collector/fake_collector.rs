//! Collector whose behaviour the test defines.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use prost::Message;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};

/// Response of a correct collector.
pub const ACCEPTED: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\n\r\n";

/// A request as received.
#[derive(Debug, Clone)]
pub struct Received {
    pub path: String,
    pub headers: Vec<String>,
    pub body: Vec<u8>,
}

impl Received {
    /// Returns the log records in the request.
    pub fn records(&self) -> Vec<LogRecord> {
        let request = ExportLogsServiceRequest::decode(self.body.as_slice()).unwrap();
        let scopes = request.resource_logs.into_iter().flat_map(|logs| logs.scope_logs);
        scopes.flat_map(|scope| scope.log_records).collect()
    }
}

/// Returns an attribute's text or number.
pub fn attribute(record: &LogRecord, name: &str) -> Option<String> {
    let pair = record.attributes.iter().find(|pair| pair.key == name)?;
    let value = pair.value.as_ref()?.value.as_ref()?;
    if let Value::StringValue(text) = value {
        return Some(text.clone());
    }
    let Value::IntValue(number) = value else { return None };
    Some(number.to_string())
}

/// Function that returns the raw response, or `None` to accept the request.
type Behaviour = dyn Fn(&Received, &mut TcpStream) -> Option<String> + Send + Sync;

/// Guard that keeps requests unanswered until it is dropped.
pub struct Hold {
    _release: mpsc::Sender<()>,
}

pub struct FakeCollector {
    pub port: u16,
    received: Arc<Mutex<Vec<Received>>>,
    accepted: Arc<Mutex<Vec<LogRecord>>>,
    behaviour: Arc<Mutex<Arc<Behaviour>>>,
}

impl FakeCollector {
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let behaviour: Arc<Mutex<Arc<Behaviour>>> =
            Arc::new(Mutex::new(Arc::new(|_: &Received, _: &mut TcpStream| None)));
        let (received, accepted) = (Arc::<Mutex<_>>::default(), Arc::<Mutex<_>>::default());
        let all = Self { port, received, accepted, behaviour };
        let (received, accepted, behaviour) =
            (all.received.clone(), all.accepted.clone(), all.behaviour.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (received, accepted, behaviour) = (received.clone(), accepted.clone(), behaviour.clone());
                std::thread::spawn(move || {
                    let mut stream = stream.unwrap();
                    while let Some(request) = read(&stream) {
                        received.lock().unwrap().push(request.clone());
                        let behaviour = behaviour.lock().unwrap().clone();
                        let answer = behaviour(&request, &mut stream);
                        if answer.is_none() && request.path.ends_with("/v1/logs") {
                            accepted.lock().unwrap().extend(request.records());
                        }
                        let answer = answer.unwrap_or_else(|| ACCEPTED.to_owned());
                        if stream.write_all(answer.as_bytes()).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        all
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Sets the behaviour for further requests.
    pub fn behave(
        &self,
        behaviour: impl Fn(&Received, &mut TcpStream) -> Option<String> + Send + Sync + 'static,
    ) {
        *self.behaviour.lock().unwrap() = Arc::new(behaviour);
    }

    /// Leaves all requests unanswered until the returned guard is dropped. Then accepts them, even from clients that
    /// have disconnected.
    pub fn hold(&self) -> Hold {
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        self.behave(move |_, _| {
            // `recv` fails once the guard is dropped.
            let _ = released.lock().unwrap().recv();
            None
        });
        Hold { _release: release }
    }

    /// Accepts all requests from now on.
    pub fn accept(&self) {
        self.behave(|_, _| None);
    }

    /// Answers all requests with this status from now on.
    pub fn answer(&self, status: &str, headers: &str) {
        let answer = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: 0\r\n\r\n");
        self.behave(move |_, _| Some(answer.clone()));
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the accepted records.
    pub fn accepted(&self) -> Vec<LogRecord> {
        self.accepted.lock().unwrap().clone()
    }

    /// Returns the sequence numbers of the accepted entries.
    pub fn numbers(&self) -> Vec<u64> {
        let numbers = self.accepted().into_iter().filter_map(|record| attribute(&record, "ironcurtain.seq"));
        numbers.map(|number| number.parse().unwrap()).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split_whitespace().nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim_end().is_empty() {
            break;
        }
        headers.push(line.trim_end().to_owned());
    }
    let length = headers
        .iter()
        .find_map(|header| header.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(Received { path, headers, body })
}
