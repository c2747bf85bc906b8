//! Simulated collector. Checks each entry that arrives.

use super::site::{Answered, Progress, Site};
use super::spool::Spool;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Request, Response, StatusCode};
use ironcurtain_export::names;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::common::v1::KeyValue;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use prost::Message;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use tokio::time::Instant;

/// Behaviour of the collector while it is reachable.
#[derive(Debug, Clone, Copy)]
pub enum Behaviour {
    Accept,
    /// Stores the records, but closes the connection without a response.
    AcceptSilently,
    /// Answers with status 503 and the time left until the end of its maintenance.
    BusyUntil(Instant),
}

/// Entries that one desktop has sent.
#[derive(Debug, Clone, Default)]
pub struct Arrived {
    /// Sequence numbers of the entries, without duplicates.
    pub entries: BTreeSet<u64>,
    pub duplicates: u64,
    /// Number of entries after which the spool is drained.
    goal: Option<usize>,
}

/// Collector that removes duplicates by entry id.
pub struct Collector {
    spool: Arc<Spool>,
    behaviour: Mutex<Behaviour>,
    desktops: Mutex<Vec<Arrived>>,
    pub drained: Progress,
}

impl Collector {
    pub fn new(spool: Arc<Spool>, desktops: usize) -> Arc<Self> {
        Arc::new(Self {
            spool,
            behaviour: Mutex::new(Behaviour::Accept),
            desktops: Mutex::new(vec![Arrived::default(); desktops]),
            drained: Progress::new(desktops),
        })
    }

    pub fn site(self: &Arc<Self>) -> Arc<Site> {
        let collector = self.clone();
        Site::new(move |request| collector.clone().answer(request))
    }

    pub fn behave(&self, behaviour: Behaviour) {
        *self.behaviour.lock().expect("no panic") = behaviour;
    }

    /// Returns the entries that have arrived so far, by desktop.
    pub fn arrived(&self) -> Vec<Arrived> {
        self.desktops.lock().expect("no panic").clone()
    }

    /// Sets the number of entries after which each desktop's spool is drained.
    pub fn drain(&self, goals: &[u64]) {
        self.drained.reset();
        for (desktop, (arrived, goal)) in
            self.desktops.lock().expect("no panic").iter_mut().zip(goals).enumerate()
        {
            let goal = usize::try_from(*goal).expect("a number of entries");
            arrived.goal = Some(goal);
            if arrived.entries.len() >= goal {
                self.drained.reach(desktop);
            }
        }
    }

    fn answer(self: Arc<Self>, request: Request<Incoming>) -> Answered {
        Box::pin(async move {
            let behaviour = *self.behaviour.lock().expect("no panic");
            let mut response = Response::new(Full::default());
            if let Behaviour::BusyUntil(end) = behaviour {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
                let left = end.saturating_duration_since(Instant::now()).as_secs() + 1;
                response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(left));
                return Some(response);
            }
            let has_logs = request.uri().path().ends_with("/v1/logs");
            let body = request.into_body().collect().await.ok()?.to_bytes();
            if has_logs {
                self.store(&body);
            }
            let kind = HeaderValue::from_static("application/x-protobuf");
            response.headers_mut().insert(header::CONTENT_TYPE, kind);
            (!matches!(behaviour, Behaviour::AcceptSilently)).then_some(response)
        })
    }

    fn store(&self, body: &Bytes) {
        let request = ExportLogsServiceRequest::decode(body.clone()).expect("a request with logs");
        for logs in &request.resource_logs {
            let resource = logs.resource.as_ref().expect("a resource");
            let instance = text(&resource.attributes, names::INSTANCE).expect("an instance");
            let desktop: usize = instance.parse().expect("the number of a desktop");
            let mut desktops = self.desktops.lock().expect("no panic");
            let arrived = desktops.get_mut(desktop).expect("a desktop");
            for record in logs.scope_logs.iter().flat_map(|scope| &scope.log_records) {
                assert_ne!(record.event_name, names::LOST_EVENT, "no entry is lost");
                if record.event_name == names::HEAD_EVENT {
                    continue;
                }
                let id = text(&record.attributes, names::UID).expect("an id");
                let number = self.spool.number(id).expect("the id of an entry");
                if !arrived.entries.insert(number) {
                    arrived.duplicates += 1;
                }
            }
            if arrived.goal.is_some_and(|goal| arrived.entries.len() >= goal) {
                self.drained.reach(desktop);
            }
        }
    }
}

fn text<'a>(attributes: &'a [KeyValue], name: &str) -> Option<&'a str> {
    let pair = attributes.iter().find(|pair| pair.key == name)?;
    let Value::StringValue(text) = pair.value.as_ref()?.value.as_ref()? else { return None };
    Some(text)
}
