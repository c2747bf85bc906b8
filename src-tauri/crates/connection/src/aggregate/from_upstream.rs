//! Handles messages from the servers' sessions, and forwards them to the client with names and ids that are unique
//! across servers.

use super::upstream::Phase;
use super::{Aggregate, MAX_WARNINGS};
use ironcurtain_mcp::aggregate::{CatalogueKind, InitializeRequest, ListEntries, OwnRequest, RoutedRequest};
use ironcurtain_mcp::wire::{
    Fields, Held, Id, Incoming, Outgoing, Response, error_line, notification_line, request_line,
    request_parts, response_parts,
};
use ironcurtain_visible as visible;
use rmcp::model::ErrorCode;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};

/// Log levels above `warning`. A client that sets one of them receives no warnings about servers.
const QUIET: [&str; 4] = ["error", "critical", "alert", "emergency"];

impl Aggregate {
    pub(super) fn handle_upstream_line(&mut self, upstream: u64, line: Outgoing) {
        let Some(server) = self.server(upstream) else { return };
        match Incoming::of_line(line) {
            Ok((Incoming::Response { id, response }, held)) => match self.tables.answers_us(upstream, &id) {
                Some(own) => self.handle_own_response(upstream, own, response),
                None => self.answered(upstream, &server, &id, response, held),
            },
            Ok((Incoming::Request { id, method, params }, held)) => {
                self.forward_request_to_client(upstream, &server, id, &method, params, held)
            }
            Ok((Incoming::Notification { method, params }, held)) => {
                self.forward_notification(upstream, &server, &method, params, held)
            }
            Err(_) => tracing::warn!(server, "dropped an invalid message"),
        }
    }

    /// Returns the name of the server with this upstream number.
    pub(super) fn server(&self, upstream: u64) -> Option<String> {
        self.upstreams.iter().find(|(_, of)| of.number == upstream).map(|(name, _)| name.clone())
    }

    fn answered(&mut self, upstream: u64, server: &str, id: &Id, response: Response, held: Held) {
        // If no request is found, the request was cancelled or belongs to another server.
        let Some(asked) = self.tables.finished(id, Some(upstream)) else { return };
        if let (RoutedRequest { makes_task: true, .. }, Response::Result(result)) = (&asked, &response)
            && let Some(task) = made_task(result)
            && !self.tables.makes_task(task, server)
        {
            let text = format!("the server `{server}` created a task with an id that is already in use");
            return self.fail(id, ErrorCode::INTERNAL_ERROR, &text);
        }
        if let (RoutedRequest { calls_tool: true, .. }, Response::Result(result)) = (&asked, &response) {
            self.catalogue.link(server, result);
        }
        self.to_client.send(response_parts(id, response).holding_what(held));
    }

    fn forward_request_to_client(
        &mut self,
        upstream: u64,
        server: &str,
        id: Id,
        method: &str,
        params: Option<Box<RawValue>>,
        held: Held,
    ) {
        let mut fields: Fields =
            params.as_ref().and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let as_it_came = id.clone();
        let Some(ours) = self.tables.server_asks(upstream, id, &mut fields) else {
            let line = error_line(Some(&as_it_came), ErrorCode::INVALID_PARAMS.0, "invalid `params._meta`");
            return self.to_upstream(upstream, line, None);
        };
        if method == "elicitation/create"
            && let Some(message) =
                fields.get("message").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
            && let Ok(labelled) = to_raw_value(&format!("{server}: {message}"))
        {
            fields.set("message", labelled);
        }
        let params = params.and_then(|_| to_raw_value(&fields).ok());
        self.to_client.send(request_parts(&ours, method, params).holding_what(held));
    }

    fn forward_notification(
        &mut self,
        upstream: u64,
        server: &str,
        method: &str,
        params: Option<Box<RawValue>>,
        held: Held,
    ) {
        let fields = params.as_ref().and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
        let raw = |name: &str| fields.as_ref().and_then(|fields| fields.get(name));
        let params = match method {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                for kind in CatalogueKind::ALL.into_iter().filter(|kind| kind.changed() == method) {
                    self.fetch(upstream, kind);
                }
                return;
            }
            "notifications/progress" => {
                let is_its_own =
                    raw("progressToken").is_some_and(|token| self.tables.may_report(upstream, token));
                if is_its_own { params } else { return }
            }
            "notifications/cancelled" => {
                let id = raw("requestId").and_then(|raw| Id::try_from(raw).ok());
                let ours = id.and_then(|id| self.tables.server_cancels(upstream, &id));
                let (Some(ours), Some(mut fields)) = (ours, fields) else { return };
                let Ok(raw) = RawValue::from_string(ours.as_json().to_owned()) else { return };
                fields.set("requestId", raw);
                to_raw_value(&fields).ok()
            }
            "notifications/tasks/status" => {
                let task = raw("taskId").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
                let of = task.as_deref().and_then(|task| self.tables.server_of_task(task));
                if of == Some(server) { params } else { return }
            }
            "notifications/resources/updated" => {
                let uri = raw("uri").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
                let address = uri.and_then(|uri| self.catalogue.address_of(server, &uri));
                let (Some(address), Some(mut fields)) = (address, fields) else { return };
                let Ok(address) = to_raw_value(&address) else { return };
                fields.set("uri", address);
                to_raw_value(&fields).ok()
            }
            "notifications/message" => {
                let Some(mut fields) = fields else { return };
                let logger =
                    fields.get("logger").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
                let logger = logger.map_or_else(|| server.to_owned(), |logger| format!("{server}/{logger}"));
                let Ok(logger) = to_raw_value(&logger) else { return };
                fields.set("logger", logger);
                to_raw_value(&fields).ok()
            }
            _ => params,
        };
        self.to_client.send(Outgoing::line(notification_line(method, params.as_deref())).holding_what(held));
    }

    /// Sends an upstream a request that IronCurtain created.
    pub(super) fn ask_upstream(
        &mut self,
        upstream: u64,
        own: OwnRequest,
        method: &str,
        params: Option<&RawValue>,
    ) {
        if let Some(id) = self.tables.asks_itself(upstream, own) {
            self.to_upstream(upstream, request_line(&id, method, params), None);
        }
    }

    /// Sends `initialize` to an upstream, if it has a session and the client has sent its own `initialize`.
    pub(super) fn initialize_upstream(&mut self, upstream: u64) {
        let Some(of) = self.upstreams.values_mut().find(|of| of.number == upstream) else { return };
        let Some(params) = self.initialize_request.as_ref().map(|greeting| greeting.params.clone()) else {
            return;
        };
        if of.session.is_some() && of.phase != Phase::Up {
            self.ask_upstream(upstream, OwnRequest::Initialize, "initialize", Some(&params));
        }
    }

    fn handle_own_response(&mut self, upstream: u64, own: OwnRequest, response: Response) {
        match (own, response) {
            (OwnRequest::Level, _) => {}
            (OwnRequest::Tasks(list, listed), response) => {
                self.tasks_listed(upstream, &list, *listed, &response);
            }
            (OwnRequest::Initialize, Response::Result(result)) => {
                self.initialized_by(upstream, serde_json::from_str(result.get()).unwrap_or_default());
            }
            (OwnRequest::Initialize, Response::Error(error)) => {
                self.mark_missing(upstream, error_text(&error))
            }
            (OwnRequest::List(kind, mut listed), Response::Result(page)) => match listed.take(kind, &page) {
                Ok(Some(cursor)) => self.ask_page(upstream, kind, *listed, Some(&cursor)),
                Ok(None) => self.listed(upstream, kind, *listed, true),
                Err(problem) => {
                    let server = self.server(upstream).unwrap_or_default();
                    self.warn(format!(
                        "failed to parse the `{}` response of the server `{server}`: {problem}",
                        kind.method()
                    ));
                    self.listed(upstream, kind, *listed, false);
                }
            },
            (OwnRequest::List(kind, listed), Response::Error(_)) => {
                self.listed(upstream, kind, *listed, false)
            }
        }
    }

    /// Marks a server as running, and requests its lists.
    pub(super) fn mark_running(&mut self, upstream: u64, capabilities: Fields) {
        let Some(of) = self.upstreams.values_mut().find(|of| of.number == upstream) else { return };
        of.is_up(capabilities);
        let has = CatalogueKind::ALL.into_iter().filter(|kind| of.has(kind.capability()));
        let (has, has_log) = (has.collect::<Vec<_>>(), of.has("logging"));
        if has_log {
            self.send_log_level(upstream);
        }
        for kind in has {
            self.fetch(upstream, kind);
        }
        self.refresh();
    }

    /// Marks a server as missing, logs a warning and sends it to the client.
    pub(super) fn mark_missing(&mut self, upstream: u64, why: String) {
        let Some(of) = self.upstreams.values_mut().find(|of| of.number == upstream) else { return };
        let server = of.config.name.clone();
        of.missing(why.clone());
        self.warn(format!("the server `{server}` is missing: {why}"));
        self.refresh();
    }

    /// Requests the first page of a list from a server. If a request for the list is already in flight, marks it as
    /// outdated instead.
    fn fetch(&mut self, upstream: u64, kind: CatalogueKind) {
        let Some(of) = self.upstreams.values_mut().find(|of| of.number == upstream) else { return };
        if of.phase != Phase::Up || !of.has(kind.capability()) {
            return;
        }
        if let Some(changed) = of.awaited.get_mut(&kind) {
            *changed = true;
            return;
        }
        of.awaited.insert(kind, false);
        self.ask_page(upstream, kind, ListEntries::default(), None);
    }

    fn ask_page(
        &mut self,
        upstream: u64,
        kind: CatalogueKind,
        listed: ListEntries,
        cursor: Option<&RawValue>,
    ) {
        let params =
            to_raw_value(&cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }))).ok();
        self.ask_upstream(
            upstream,
            OwnRequest::List(kind, Box::new(listed)),
            kind.method(),
            params.as_deref(),
        );
    }

    /// Stores a list that was fetched. `is_whole` is `false` if the server failed to answer.
    fn listed(&mut self, upstream: u64, kind: CatalogueKind, listed: ListEntries, is_whole: bool) {
        let Some(of) = self.upstreams.values_mut().find(|of| of.number == upstream) else { return };
        if kind == CatalogueKind::Tools {
            of.compare_with_remembered(&listed);
        }
        of.lists.insert(kind, listed);
        if kind == CatalogueKind::Tools && is_whole {
            let says = self.host.instructions.of(&of.config.command_line()).flatten();
            let client = self.initialize_request.as_ref().map(InitializeRequest::kind_of_client);
            let tools = of.to_remember(says.as_deref());
            if let Some(client) = client.filter(|_| of.remembered != tools) {
                of.remembered.clone_from(&tools);
                (self.host.remember)(of.config.identity(), client, tools);
            }
        }
        let has_changed = of.awaited.remove(&kind).unwrap_or_default();
        let (server, left_out) = (of.config.name.clone(), of.left_out());
        if left_out > 0 {
            self.warn(format!(
                "left out {left_out} list entries of the server `{server}`, which are invalid or exceed the limit"
            ));
        }
        if has_changed {
            self.fetch(upstream, kind);
        }
        self.refresh();
    }

    /// Rebuilds all lists, and notifies the client of each list that changed since the client last read it.
    pub(super) fn refresh(&mut self) {
        let there = self.upstreams.iter().filter(|(_, upstream)| upstream.is_listed());
        let with_resources =
            there.clone().filter(|(_, upstream)| upstream.has("resources")).map(|(name, _)| name.clone());
        let with_resources = with_resources.collect();
        let changed = self
            .catalogue
            .update(there.map(|(name, upstream)| (name.as_str(), &upstream.lists)), with_resources);
        for kind in changed {
            if self.fresh.remove(kind.changed()) {
                self.reply(notification_line(kind.changed(), None));
            }
        }
        for warning in self.catalogue.warnings().to_vec() {
            self.warn(warning);
        }
    }

    /// Logs a warning and sends it to the client, unless the same warning was sent before.
    pub(super) fn warn(&mut self, text: String) {
        let text = visible::line(&text);
        if self.initialize_request.is_none()
            || self.unanswered.is_some()
            || self.warned.len() >= MAX_WARNINGS
            || !self.warned.insert(text.clone())
        {
            return;
        }
        tracing::warn!("{text}");
        let level = self.level.as_ref().and_then(|raw| serde_json::from_str::<Fields>(raw.get()).ok());
        let level = level.and_then(|level| serde_json::from_str::<String>(level.get("level")?.get()).ok());
        if level.is_none_or(|level| !QUIET.contains(&level.as_str())) {
            let params = json!({ "level": "warning", "logger": "ironcurtain", "data": text });
            self.reply(notification_line("notifications/message", to_raw_value(&params).ok().as_deref()));
        }
    }
}

/// Returns the id of the task that a tool call created, or `None` if the result is not a task.
fn made_task(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Made {
        task: Task,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Task {
        task_id: String,
    }
    serde_json::from_str::<Made>(result.get()).ok().map(|made| made.task.task_id)
}

/// Returns the `message` of a JSON-RPC error, or the whole error if it has no message.
fn error_text(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Error {
        message: String,
    }
    serde_json::from_str::<Error>(error.get()).map_or_else(|_| error.get().to_owned(), |error| error.message)
}
