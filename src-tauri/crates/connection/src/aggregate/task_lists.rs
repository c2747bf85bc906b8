//! Merges the task lists of all servers when the client requests `tasks/list`.
//!
//! - A server that does not respond in time does not delay the response: its tasks are omitted.
//! - INVARIANT: a task is listed only if its server created it for a call by this client.

use super::Aggregate;
use super::upstream::Phase;
use ironcurtain_mcp::aggregate::{ListEntries, OwnRequest};
use ironcurtain_mcp::wire::{Fields, Id, Response, result_line};
use rmcp::model::ErrorCode;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// MCP method that lists tasks.
pub(super) const METHOD: &str = "tasks/list";

/// Name of the response field that contains the tasks, and name of the task field that contains the task's id.
const SHAPE: (&str, &str) = ("tasks", "taskId");

/// Maximum time to wait for the servers' task lists. After this time, the response contains only the tasks received so
/// far.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of pending `tasks/list` requests per client.
const MAX_COUNT: usize = 8;

/// The client's pending `tasks/list` request, with the tasks received so far.
#[derive(Debug)]
pub(super) struct TaskList {
    pub(super) id: Id,
    /// Upstream numbers of the servers that have not responded yet.
    awaited: BTreeSet<u64>,
    deadline: Instant,
    tasks: Vec<Fields>,
}

impl Aggregate {
    /// Requests the tasks from every server that supports `tasks/list`.
    pub(super) fn list_tasks(&mut self, id: Id, params: Option<&RawValue>) {
        let params = params.and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
        if params.is_some_and(|params| params.get("cursor").is_some()) {
            let text = "unknown `params.cursor`; request the list from the start";
            return self.fail(&id, ErrorCode::INVALID_PARAMS, text);
        }
        if self.task_lists.len() >= MAX_COUNT {
            let text = format!("{MAX_COUNT} requests for the list of tasks are already in flight");
            return self.fail(&id, ErrorCode::INVALID_REQUEST, &text);
        }
        let with_list = self
            .upstreams
            .values()
            .filter(|upstream| upstream.phase == Phase::Running && upstream.lists_tasks());
        let awaited: BTreeSet<u64> = with_list.map(|upstream| upstream.number).collect();
        for number in &awaited {
            self.request_tasks(*number, &id, ListEntries::default(), None);
        }
        let deadline = Instant::now() + TIMEOUT;
        self.task_lists.push(TaskList { id, awaited, deadline, tasks: Vec::new() });
    }

    fn request_tasks(&mut self, number: u64, list: &Id, listed: ListEntries, cursor: Option<&RawValue>) {
        let params = cursor.map(|cursor| to_raw_value(&json!({ "cursor": cursor })));
        let own = OwnRequest::Tasks(list.clone(), Box::new(listed));
        self.send_request(number, own, METHOD, params.and_then(Result::ok).as_deref());
    }

    /// Adds a page of a server's tasks to the pending list and requests the next page.
    pub(super) fn handle_task_page(
        &mut self,
        number: u64,
        list: &Id,
        mut listed: ListEntries,
        answer: &Response,
    ) {
        let next = match answer {
            Response::Result(page) => listed.add_page_as(SHAPE, page).ok().flatten(),
            Response::Error(_) => None,
        };
        if let Some(cursor) = next {
            return self.request_tasks(number, list, listed, Some(&cursor));
        }
        let Some(server) = self.server(number) else { return };
        let Some(pending) = self.task_lists.iter_mut().find(|pending| pending.id == *list) else { return };
        pending.awaited.remove(&number);
        for (task, fields) in listed.entries {
            if self.tables.server_of_task(&task) == Some(&server) {
                pending.tasks.push(fields);
            }
        }
    }

    /// Stops waiting for the tasks of a closed server.
    pub(super) fn stop_waiting_for_tasks(&mut self, number: u64) {
        for list in &mut self.task_lists {
            list.awaited.remove(&number);
        }
    }

    /// Answers each request whose list is complete or has timed out.
    pub(super) fn answer_due_task_lists(&mut self) {
        let now = Instant::now();
        let is_due = |list: &mut TaskList| list.awaited.is_empty() || list.deadline <= now;
        for list in self.task_lists.extract_if(.., is_due).collect::<Vec<_>>() {
            self.reply(result_line(&list.id, &json!({ "tasks": list.tasks })));
        }
    }

    /// Returns the time at which the first pending request times out, or `None` if none is pending.
    pub(super) fn task_lists_deadline(&self) -> Option<Instant> {
        self.task_lists.iter().map(|list| list.deadline).min()
    }
}
