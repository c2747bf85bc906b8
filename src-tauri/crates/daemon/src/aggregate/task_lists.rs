//! The tasks of all servers, as one list, put together when the client asks for it.
//!
//! - A server that does not answer in time costs the others nothing: its tasks are missing from that answer.
//! - INVARIANT: a task is listed only by the server that has made it for a call of this client.

use super::Aggregate;
use super::upstream::Phase;
use ironcurtain_mcp::aggregate::ListEntries;
use ironcurtain_mcp::aggregate::OwnRequest;
use ironcurtain_mcp::wire::{Fields, Id, Response, result_line};
use rmcp::model::ErrorCode;
use serde_json::json;
use serde_json::value::{RawValue, to_raw_value};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

/// The request.
pub(super) const METHOD: &str = "tasks/list";

/// The field of an answer that has the tasks, and the field of a task that names it.
const SHAPE: (&str, &str) = ("tasks", "taskId");

/// The time that servers may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// The number of such requests of the client at once.
const MOST: usize = 8;

/// A list that is put together.
#[derive(Debug)]
pub(super) struct TaskList {
    pub(super) id: Id,
    /// The servers that have not answered.
    awaited: BTreeSet<u64>,
    until: Instant,
    tasks: Vec<Fields>,
}

impl Aggregate {
    /// Asks every server that keeps a list of tasks.
    pub(super) fn list_tasks(&mut self, id: Id, params: Option<&RawValue>) {
        let params = params.and_then(|params| serde_json::from_str::<Fields>(params.get()).ok());
        if params.is_some_and(|params| params.get("cursor").is_some()) {
            let text = "`params.cursor` is none of those that were given";
            return self.fail(&id, ErrorCode::INVALID_PARAMS, text);
        }
        if self.task_lists.len() >= MOST {
            let text = format!("{MOST} requests for the list of tasks have no answer yet");
            return self.fail(&id, ErrorCode::INVALID_REQUEST, &text);
        }
        let with_list = self.upstreams.values().filter(|of| of.phase == Phase::Up && of.lists_tasks());
        let awaited: BTreeSet<u64> = with_list.map(|of| of.number).collect();
        for upstream in &awaited {
            self.ask_for_tasks(*upstream, &id, ListEntries::default(), None);
        }
        let until = Instant::now() + PATIENCE;
        self.task_lists.push(TaskList { id, awaited, until, tasks: Vec::new() });
    }

    fn ask_for_tasks(&mut self, upstream: u64, list: &Id, listed: ListEntries, cursor: Option<&RawValue>) {
        let params = cursor.map(|cursor| to_raw_value(&json!({ "cursor": cursor })));
        let own = OwnRequest::Tasks(list.clone(), Box::new(listed));
        self.ask_upstream(upstream, own, METHOD, params.and_then(Result::ok).as_deref());
    }

    /// Takes a server's answer.
    pub(super) fn tasks_listed(
        &mut self,
        upstream: u64,
        list: &Id,
        mut listed: ListEntries,
        answer: &Response,
    ) {
        let next = match answer {
            Response::Result(page) => listed.take_as(SHAPE, page).ok().flatten(),
            Response::Error(_) => None,
        };
        if let Some(cursor) = next {
            return self.ask_for_tasks(upstream, list, listed, Some(&cursor));
        }
        let Some(server) = self.server(upstream) else { return };
        let Some(of) = self.task_lists.iter_mut().find(|of| of.id == *list) else { return };
        of.awaited.remove(&upstream);
        for (task, fields) in listed.entries {
            if self.tables.server_of_task(&task) == Some(&server) {
                of.tasks.push(fields);
            }
        }
    }

    /// A server is gone: nobody waits for it.
    pub(super) fn awaits_no_tasks_of(&mut self, upstream: u64) {
        for list in &mut self.task_lists {
            list.awaited.remove(&upstream);
        }
    }

    /// Answers the lists for which everybody has answered, or that have waited long enough.
    pub(super) fn settle_task_lists(&mut self) {
        let now = Instant::now();
        let is_due = |list: &mut TaskList| list.awaited.is_empty() || list.until <= now;
        for list in self.task_lists.extract_if(.., is_due).collect::<Vec<_>>() {
            self.reply(result_line(&list.id, &json!({ "tasks": list.tasks })));
        }
    }

    /// The time at which the first list waits no longer.
    pub(super) fn task_lists_wait_until(&self) -> Option<Instant> {
        self.task_lists.iter().map(|list| list.until).min()
    }
}
