//! Handles messages from the servers' sessions and forwards them to the client with names and ids that are unique
//! across servers.

use super::upstream::Phase;
use super::{Aggregate, MAX_WARNINGS};
use ironcurtain_mcp::aggregate::{CatalogueKind, InitializeRequest, ListEntries, OwnRequest, RoutedRequest};
use ironcurtain_mcp::wire::{
    Fields, Id, Incoming, LineGuard, Outgoing, Response, error_line, notification_line, request_line,
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
    pub(super) fn handle_upstream_line(&mut self, number: u64, line: Outgoing) {
        let Some(server) = self.server(number) else { return };
        match Incoming::from_outgoing(line) {
            Ok((Incoming::Response { id, response }, permits)) => {
                match self.tables.take_own_request(number, &id) {
                    Some(own) => self.handle_own_response(number, own, response),
                    None => self.handle_response(number, &server, &id, response, permits),
                }
            }
            Ok((Incoming::Request { id, method, params }, permits)) => {
                self.forward_request_to_client(number, &server, id, &method, params, permits)
            }
            Ok((Incoming::Notification { method, params }, permits)) => {
                self.forward_notification(number, &server, &method, params, permits)
            }
            Err(_) => tracing::warn!(server, "dropped an invalid message"),
        }
    }

    /// Returns the name of the server with this upstream number.
    pub(super) fn server(&self, number: u64) -> Option<String> {
        self.upstreams.iter().find(|(_, upstream)| upstream.number == number).map(|(name, _)| name.clone())
    }

    fn handle_response(
        &mut self,
        number: u64,
        server: &str,
        id: &Id,
        response: Response,
        permits: LineGuard,
    ) {
        // If no request is found, the request was cancelled or belongs to another server.
        let Some(request) = self.tables.take_client_request(id, Some(number)) else { return };
        if let (RoutedRequest { creates_task: true, .. }, Response::Result(result)) = (&request, &response)
            && let Some(task) = created_task(result)
            && !self.tables.add_task(task, server)
        {
            let text = format!("the server `{server}` created a task with an id that is already in use");
            return self.fail(id, ErrorCode::INTERNAL_ERROR, &text);
        }
        if let (RoutedRequest { calls_tool: true, .. }, Response::Result(result)) = (&request, &response) {
            self.catalogue.add_links(server, result);
        }
        self.to_client.send(response_parts(id, response).with_guard(permits));
    }

    fn forward_request_to_client(
        &mut self,
        number: u64,
        server: &str,
        id: Id,
        method: &str,
        params: Option<Box<RawValue>>,
        permits: LineGuard,
    ) {
        let mut fields: Fields =
            params.as_ref().and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
        let original_id = id.clone();
        let Some(ours) = self.tables.add_server_request(number, id, &mut fields) else {
            let line = error_line(Some(&original_id), ErrorCode::INVALID_PARAMS.0, "invalid `params._meta`");
            return self.send_to_upstream(number, line, None);
        };
        if method == "elicitation/create"
            && let Some(message) =
                fields.get("message").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok())
            && let Ok(labelled) = to_raw_value(&format!("{server}: {message}"))
        {
            fields.set("message", labelled);
        }
        let params = params.and_then(|_| to_raw_value(&fields).ok());
        self.to_client.send(request_parts(&ours, method, params).with_guard(permits));
    }

    fn forward_notification(
        &mut self,
        number: u64,
        server: &str,
        method: &str,
        params: Option<Box<RawValue>>,
        permits: LineGuard,
    ) {
        let fields = params.as_ref().and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
        let raw = |name: &str| fields.as_ref().and_then(|fields| fields.get(name));
        let params = match method {
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                for kind in CatalogueKind::ALL.into_iter().filter(|kind| kind.change_notification() == method)
                {
                    self.fetch(number, kind);
                }
                return;
            }
            "notifications/progress" => {
                let is_own_token =
                    raw("progressToken").is_some_and(|token| self.tables.may_use_token(number, token));
                if is_own_token { params } else { return }
            }
            "notifications/cancelled" => {
                let id = raw("requestId").and_then(|raw| Id::try_from(raw).ok());
                let ours = id.and_then(|id| self.tables.cancel_server_request(number, &id));
                let (Some(ours), Some(mut fields)) = (ours, fields) else { return };
                let Ok(raw) = RawValue::from_string(ours.as_json().to_owned()) else { return };
                fields.set("requestId", raw);
                to_raw_value(&fields).ok()
            }
            "notifications/tasks/status" => {
                let task = raw("taskId").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
                let owner = task.as_deref().and_then(|task| self.tables.server_of_task(task));
                if owner == Some(server) { params } else { return }
            }
            "notifications/resources/updated" => {
                let uri = raw("uri").and_then(|raw| serde_json::from_str::<String>(raw.get()).ok());
                let address = uri.and_then(|uri| self.catalogue.client_uri(server, &uri));
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
        self.to_client.send(Outgoing::line(notification_line(method, params.as_deref())).with_guard(permits));
    }

    /// Sends an upstream a request that IronCurtain created.
    pub(super) fn send_request(
        &mut self,
        number: u64,
        own: OwnRequest,
        method: &str,
        params: Option<&RawValue>,
    ) {
        if let Some(id) = self.tables.add_own_request(number, own) {
            self.send_to_upstream(number, request_line(&id, method, params), None);
        }
    }

    /// Sends `initialize` to an upstream, if it has a session and the client has sent its own `initialize`.
    pub(super) fn initialize_upstream(&mut self, number: u64) {
        let Some(upstream) = self.upstreams.values_mut().find(|upstream| upstream.number == number) else {
            return;
        };
        let Some(params) = self.initialize_request.as_ref().map(|request| request.params.clone()) else {
            return;
        };
        if upstream.session.is_some() && upstream.phase != Phase::Running {
            self.send_request(number, OwnRequest::Initialize, "initialize", Some(&params));
        }
    }

    fn handle_own_response(&mut self, number: u64, own: OwnRequest, response: Response) {
        match (own, response) {
            (OwnRequest::Level, _) => {}
            (OwnRequest::Tasks(list, listed), response) => {
                self.handle_task_page(number, &list, *listed, &response);
            }
            (OwnRequest::Initialize, Response::Result(result)) => {
                self.handle_initialize_response(
                    number,
                    serde_json::from_str(result.get()).unwrap_or_default(),
                );
            }
            (OwnRequest::Initialize, Response::Error(error)) => self.mark_missing(number, error_text(&error)),
            (OwnRequest::List(kind, mut listed), Response::Result(page)) => {
                match listed.add_page(kind, &page) {
                    Ok(Some(cursor)) => self.request_page(number, kind, *listed, Some(&cursor)),
                    Ok(None) => self.store_list(number, kind, *listed, true),
                    Err(problem) => {
                        let server = self.server(number).unwrap_or_default();
                        self.warn(format!(
                            "failed to parse the `{}` response of the server `{server}`: {problem}",
                            kind.method()
                        ));
                        self.store_list(number, kind, *listed, false);
                    }
                }
            }
            (OwnRequest::List(kind, listed), Response::Error(_)) => {
                self.store_list(number, kind, *listed, false)
            }
        }
    }

    /// Marks a server as running and requests its lists.
    pub(super) fn mark_running(&mut self, number: u64, capabilities: Fields) {
        let Some(upstream) = self.upstreams.values_mut().find(|upstream| upstream.number == number) else {
            return;
        };
        upstream.mark_running(capabilities);
        let has = CatalogueKind::ALL.into_iter().filter(|kind| upstream.has(kind.capability()));
        let (has, has_log) = (has.collect::<Vec<_>>(), upstream.has("logging"));
        if has_log {
            self.send_log_level(number);
        }
        for kind in has {
            self.fetch(number, kind);
        }
        self.refresh();
    }

    /// Marks a server as missing, logs a warning and sends it to the client.
    pub(super) fn mark_missing(&mut self, number: u64, why: String) {
        let Some(upstream) = self.upstreams.values_mut().find(|upstream| upstream.number == number) else {
            return;
        };
        let server = upstream.config.name.clone();
        upstream.mark_missing(why.clone());
        self.warn(format!("the server `{server}` is missing: {why}"));
        self.refresh();
    }

    /// Requests the first page of a list from a server. If a request for the list is already in flight, marks it as
    /// outdated instead.
    fn fetch(&mut self, number: u64, kind: CatalogueKind) {
        let Some(upstream) = self.upstreams.values_mut().find(|upstream| upstream.number == number) else {
            return;
        };
        if upstream.phase != Phase::Running || !upstream.has(kind.capability()) {
            return;
        }
        if let Some(changed) = upstream.awaited.get_mut(&kind) {
            *changed = true;
            return;
        }
        upstream.awaited.insert(kind, false);
        self.request_page(number, kind, ListEntries::default(), None);
    }

    fn request_page(
        &mut self,
        number: u64,
        kind: CatalogueKind,
        listed: ListEntries,
        cursor: Option<&RawValue>,
    ) {
        let params =
            to_raw_value(&cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }))).ok();
        self.send_request(number, OwnRequest::List(kind, Box::new(listed)), kind.method(), params.as_deref());
    }

    /// Stores a list that was fetched. `is_whole` is `false` if the server failed to answer.
    fn store_list(&mut self, number: u64, kind: CatalogueKind, listed: ListEntries, is_whole: bool) {
        let Some(upstream) = self.upstreams.values_mut().find(|upstream| upstream.number == number) else {
            return;
        };
        if kind == CatalogueKind::Tools {
            upstream.compare_with_remembered(&listed);
        }
        upstream.lists.insert(kind, listed);
        if kind == CatalogueKind::Tools && is_whole {
            let instructions = self.host.instructions.get(&upstream.config.command_line()).flatten();
            let client = self.initialize_request.as_ref().map(InitializeRequest::client_key);
            let tools = upstream.tools_to_remember(instructions.as_deref());
            if let Some(client) = client.filter(|_| upstream.remembered != tools) {
                upstream.remembered.clone_from(&tools);
                (self.host.remember_tools)(upstream.config.identity(), client, tools);
            }
        }
        let has_changed = upstream.awaited.remove(&kind).unwrap_or_default();
        let (server, omitted) = (upstream.config.name.clone(), upstream.omitted_entries());
        if omitted > 0 {
            self.warn(format!(
                "left out {omitted} list entries of the server `{server}`, which are invalid or exceed the limit"
            ));
        }
        if has_changed {
            self.fetch(number, kind);
        }
        self.refresh();
    }

    /// Rebuilds all lists and notifies the client of each list that changed since the client last read it.
    pub(super) fn refresh(&mut self) {
        let listed_upstreams = self.upstreams.iter().filter(|(_, upstream)| upstream.is_listed());
        let with_resources = listed_upstreams
            .clone()
            .filter(|(_, upstream)| upstream.has("resources"))
            .map(|(name, _)| name.clone());
        let with_resources = with_resources.collect();
        let changed = self.catalogue.update(
            listed_upstreams.map(|(name, upstream)| (name.as_str(), &upstream.lists)),
            with_resources,
        );
        for kind in changed {
            if self.unchanged_since_read.remove(kind.change_notification()) {
                self.reply(notification_line(kind.change_notification(), None));
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
            || self.pending_initialize.is_some()
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
fn created_task(result: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct CreateTaskResult {
        task: Task,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Task {
        task_id: String,
    }
    serde_json::from_str::<CreateTaskResult>(result.get()).ok().map(|created| created.task.task_id)
}

/// Returns the `message` of a JSON-RPC error, or the whole error if it has no message.
fn error_text(error: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Error {
        message: String,
    }
    serde_json::from_str::<Error>(error.get()).map_or_else(|_| error.get().to_owned(), |error| error.message)
}
