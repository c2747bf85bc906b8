//! Maps request ids, progress tokens and tasks between the client and the servers.
//!
//! - The client's request ids are unique and are forwarded unchanged. The servers' request ids can collide, so they are
//!   replaced with our own ids.
//! - INVARIANT: a server cannot answer, report progress on, or cancel another server's requests.

use super::lists::{CatalogueKind, ListEntries};
use crate::wire::{Fields, Id};
use serde_json::value::{RawValue, to_raw_value};
use std::collections::HashMap;

/// Maximum number of tasks whose server is stored.
const MAX_TASKS: usize = 10_000;

/// Client request that is in flight at a server.
#[derive(Debug)]
pub struct RoutedRequest {
    /// Number of the server connection that handles the request.
    pub upstream: u64,
    /// `true` if the request calls a tool.
    pub calls_tool: bool,
    /// `true` if the request asks the server to create a task.
    pub creates_task: bool,
    token: Option<String>,
}

/// Request that IronCurtain itself sent to a server.
#[derive(Debug)]
pub enum OwnRequest {
    /// `initialize`
    Initialize,
    /// One page of a list, with the entries of the earlier pages.
    List(CatalogueKind, Box<ListEntries>),
    /// `logging/setLevel`
    Level,
    /// One page of the server's tasks, with the tasks of the earlier pages. Belongs to the client request with this
    /// id.
    Tasks(Id, Box<ListEntries>),
}

/// Server request that is in flight at the client.
#[derive(Debug)]
struct ForwardedRequest {
    upstream: u64,
    id: Id,
    token: Option<String>,
}

/// All mappings between client and servers.
#[derive(Debug)]
pub struct RequestTables {
    /// Prefix of our ids. It is unique to this process so that late responses to an earlier process's requests are
    /// ignored.
    prefix: String,
    last: u64,
    client_requests: HashMap<Id, RoutedRequest>,
    own_requests: HashMap<Id, (u64, OwnRequest)>,
    server_requests: HashMap<Id, ForwardedRequest>,
    /// Number of the server connection that may use each of the client's progress tokens.
    tokens: HashMap<String, u64>,
    /// Server connection and original token, keyed by our substitute for the token.
    server_tokens: HashMap<String, (u64, Box<RawValue>)>,
    /// Name of the server that owns each task.
    tasks: HashMap<String, String>,
}

impl RequestTables {
    /// Creates tables with this id prefix and the tasks that are already known.
    pub fn new(prefix: String, tasks: HashMap<String, String>) -> Self {
        Self {
            prefix,
            last: 0,
            client_requests: HashMap::new(),
            own_requests: HashMap::new(),
            server_requests: HashMap::new(),
            tokens: HashMap::new(),
            server_tokens: HashMap::new(),
            tasks,
        }
    }

    fn next_name(&mut self) -> String {
        self.last += 1;
        format!("\"{}-{}\"", self.prefix, self.last)
    }

    fn next_id(&mut self) -> Option<Id> {
        let name = RawValue::from_string(self.next_name()).ok()?;
        Id::try_from(&*name).ok()
    }

    /// Records that this upstream handles a client request.
    pub fn add_client_request(&mut self, id: &Id, upstream: u64, method: &str, params: &Fields) {
        let token = token(params).map(|token| token.get().to_owned());
        if let Some(token) = &token {
            self.tokens.insert(token.clone(), upstream);
        }
        let calls_tool = method == "tools/call";
        let creates_task = calls_tool && params.get("task").is_some();
        self.client_requests.insert(id.clone(), RoutedRequest { upstream, calls_tool, creates_task, token });
    }

    /// Returns `true` if a client request with this id is in flight.
    pub fn is_in_flight(&self, id: &Id) -> bool {
        self.client_requests.contains_key(id)
    }

    /// Returns `true` if any client request is in flight.
    pub fn has_in_flight(&self) -> bool {
        !self.client_requests.is_empty()
    }

    /// Removes a client request that this upstream answered or the client cancelled. If the request created a task, the
    /// upstream may still report progress on the task.
    pub fn take_client_request(&mut self, id: &Id, by: Option<u64>) -> Option<RoutedRequest> {
        self.client_requests.get(id).filter(|asked| by.is_none_or(|upstream| asked.upstream == upstream))?;
        let asked = self.client_requests.remove(id)?;
        if let Some(token) = asked.token.as_ref().filter(|_| !asked.creates_task) {
            self.tokens.remove(token);
        }
        Some(asked)
    }

    /// Records our own request to this upstream, and returns its id.
    pub fn add_own_request(&mut self, upstream: u64, own: OwnRequest) -> Option<Id> {
        let id = self.next_id()?;
        self.own_requests.insert(id.clone(), (upstream, own));
        Some(id)
    }

    /// Removes and returns our own request that this upstream has answered.
    pub fn take_own_request(&mut self, upstream: u64, id: &Id) -> Option<OwnRequest> {
        self.own_requests.get(id).filter(|(owner, _)| *owner == upstream)?;
        self.own_requests.remove(id).map(|(_, own)| own)
    }

    /// Records a server request and replaces its progress token in `params`. Returns the request's id for the client.
    pub fn add_server_request(&mut self, upstream: u64, id: Id, params: &mut Fields) -> Option<Id> {
        let client_id = self.next_id()?;
        let token = match token(params) {
            None => None,
            Some(old) => {
                let new = self.next_name();
                let raw = RawValue::from_string(new.clone()).ok()?;
                let mut meta: Fields = serde_json::from_str(params.get("_meta")?.get()).ok()?;
                meta.set("progressToken", raw);
                params.set("_meta", to_raw_value(&meta).ok()?);
                self.server_tokens.insert(new.clone(), (upstream, old));
                Some(new)
            }
        };
        self.server_requests.insert(client_id.clone(), ForwardedRequest { upstream, id, token });
        Some(client_id)
    }

    /// Removes the server request that the client answers. Returns its upstream and original id.
    pub fn take_server_request(&mut self, id: &Id) -> Option<(u64, Id)> {
        let ForwardedRequest { upstream, id, token } = self.server_requests.remove(id)?;
        token.map(|token| self.server_tokens.remove(&token));
        Some((upstream, id))
    }

    /// Removes a request that the server cancels. Returns the request's id for the client.
    pub fn cancel_server_request(&mut self, upstream: u64, id: &Id) -> Option<Id> {
        let client_id = self
            .server_requests
            .iter()
            .find(|(_, request)| request.upstream == upstream && request.id == *id)?
            .0
            .clone();
        self.take_server_request(&client_id);
        Some(client_id)
    }

    /// Returns the upstream that handles a client request.
    pub fn upstream_of(&self, id: &Id) -> Option<u64> {
        self.client_requests.get(id).map(|asked| asked.upstream)
    }

    /// Returns `true` if this upstream may use this progress token of the client.
    pub fn may_use_token(&self, upstream: u64, token: &RawValue) -> bool {
        self.tokens.get(token.get()) == Some(&upstream)
    }

    /// Returns the upstream and the original token that `token` replaces.
    pub fn original_token(&self, token: &RawValue) -> Option<(u64, Box<RawValue>)> {
        self.server_tokens.get(token.get()).cloned()
    }

    /// Records the server of a new task. Returns `false` if the id belongs to another server's task, or if there are
    /// too many tasks.
    pub fn add_task(&mut self, task: String, server: &str) -> bool {
        if self.tasks.len() >= MAX_TASKS && !self.tasks.contains_key(&task) {
            return false;
        }
        self.tasks.entry(task).or_insert_with(|| server.to_owned()) == server
    }

    /// Returns the server that owns a task.
    pub fn server_of_task(&self, task: &str) -> Option<&str> {
        self.tasks.get(task).map(String::as_str)
    }

    /// Returns all tasks and their servers.
    pub fn tasks(&self) -> &HashMap<String, String> {
        &self.tasks
    }

    /// Removes an upstream. Returns the ids of the client requests that were in flight there, and our ids for the
    /// upstream's own requests.
    pub fn remove_upstream(&mut self, upstream: u64) -> (Vec<Id>, Vec<Id>) {
        let asked: Vec<Id> = self
            .client_requests
            .iter()
            .filter(|(_, asked)| asked.upstream == upstream)
            .map(|(id, _)| id.clone())
            .collect();
        for id in &asked {
            self.take_client_request(id, None);
        }
        let forwarded: Vec<Id> = self
            .server_requests
            .iter()
            .filter(|(_, request)| request.upstream == upstream)
            .map(|(id, _)| id.clone())
            .collect();
        for id in &forwarded {
            self.take_server_request(id);
        }
        self.own_requests.retain(|_, (owner, _)| *owner != upstream);
        self.tokens.retain(|_, owner| *owner != upstream);
        (asked, forwarded)
    }
}

/// Returns the progress token of a request.
fn token(params: &Fields) -> Option<Box<RawValue>> {
    let meta: Fields = serde_json::from_str(params.get("_meta")?.get()).ok()?;
    meta.get("progressToken").map(ToOwned::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> Fields {
        serde_json::from_str(text).unwrap()
    }

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn tables() -> RequestTables {
        RequestTables::new("p".into(), HashMap::new())
    }

    #[test]
    fn only_the_requested_server_can_answer_or_report_progress() {
        let mut tables = tables();
        let id = Id::from(7);
        tables.add_client_request(&id, 1, "tools/call", &fields(r#"{"_meta":{"progressToken":"t"}}"#));
        assert!(tables.may_use_token(1, &raw("\"t\"")) && !tables.may_use_token(2, &raw("\"t\"")));
        assert!(tables.take_client_request(&id, Some(2)).is_none() && tables.is_in_flight(&id));
        assert!(
            tables
                .take_client_request(&id, Some(1))
                .is_some_and(|asked| asked.calls_tool && !asked.creates_task)
        );
        assert!(!tables.may_use_token(1, &raw("\"t\"")) && !tables.has_in_flight());
    }

    #[test]
    fn servers_can_use_the_same_id_and_token() {
        let mut tables = tables();
        let mut ask = |upstream| {
            let mut params = fields(r#"{"_meta":{"progressToken":1},"message":"m"}"#);
            let id = tables.add_server_request(upstream, Id::from(1), &mut params).unwrap();
            (id, token(&params).unwrap())
        };
        let ((one, token_one), (two, token_two)) = (ask(1), ask(2));
        assert!(one != two && token_one.get() != token_two.get());
        let (upstream, token) = tables.original_token(&token_two).unwrap();
        assert_eq!((upstream, token.get()), (2, "1"));
        assert_eq!(tables.cancel_server_request(1, &Id::from(1)), Some(one.clone()));
        assert_eq!(tables.take_server_request(&one), None);
        assert_eq!(tables.take_server_request(&two), Some((2, Id::from(1))));
        assert!(tables.original_token(&token_two).is_none() && tables.server_tokens.is_empty());
    }

    #[test]
    fn a_task_belongs_to_the_server_that_created_it_first() {
        let mut tables = tables();
        assert!(tables.add_task("t".into(), "a") && tables.add_task("t".into(), "a"));
        assert!(!tables.add_task("t".into(), "b"));
        assert_eq!((tables.server_of_task("t"), tables.server_of_task("u")), (Some("a"), None));
    }

    #[test]
    fn removing_a_server_removes_its_open_requests() {
        let mut tables = tables();
        tables.add_client_request(&Id::from(1), 1, "tools/call", &fields("{}"));
        tables.add_client_request(&Id::from(2), 2, "tools/call", &fields("{}"));
        let ours = tables.add_server_request(1, Id::from(9), &mut fields("{}")).unwrap();
        let own = tables.add_own_request(1, OwnRequest::Level).unwrap();
        assert!(tables.take_own_request(2, &own).is_none());
        assert_eq!(tables.remove_upstream(1), (vec![Id::from(1)], vec![ours]));
        assert!(tables.take_own_request(1, &own).is_none() && tables.is_in_flight(&Id::from(2)));
    }
}
