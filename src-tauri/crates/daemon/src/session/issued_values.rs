//! Tracks values that a server issued for use in later requests: list cursors and task ids.
//!
//! - INVARIANT: a client can send only cursors and task ids that the server issued in this session.
//! - Keeps only keyed hashes of the newest values. A client that uses an older cursor must restart its list.

use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::ServerAnswer;
use ironcurtain_mcp::wire::Response;
use serde::Deserialize;
use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Maximum number of values to keep.
const MAX_COUNT: usize = 4096;

/// Hashes of the values that a server issued.
#[derive(Debug, Default)]
pub(super) struct IssuedValues {
    key: RandomState,
    newest: Mutex<VecDeque<u64>>,
}

/// Purpose of a value. A cursor for one list is invalid for any other list.
#[derive(Debug, Clone, Copy, Hash, PartialEq, Eq)]
pub(super) enum Purpose<'a> {
    /// Cursor for the next page of the list that this method returns.
    Page(&'a str),
    Task,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct IssuedInResult {
    next_cursor: Option<String>,
    task: Option<Task>,
    #[serde(default)]
    tasks: Vec<Task>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Task {
    task_id: String,
}

impl IssuedValues {
    /// Returns `true` if the server issued this value for this purpose.
    pub(super) fn was_issued(&self, purpose: Purpose<'_>, value: &str) -> bool {
        let hash = self.key.hash_one((purpose, value));
        self.table().contains(&hash)
    }

    /// Stores the cursor and the task ids from the response to a list request.
    pub(super) fn track_list(&self, request: &ServerRequest, answer: &ServerAnswer) {
        let is_list = request.method().ends_with("/list");
        let Some(given) = parse_issued(answer).filter(|_| is_list) else { return };
        if let Some(cursor) = given.next_cursor {
            self.add(Purpose::Page(request.method()), &cursor);
        }
        // Only responses to `tasks/list` contain tasks.
        given.tasks.iter().for_each(|task| self.add(Purpose::Task, &task.task_id));
    }

    /// Stores the id of the task from the response to a call that created a task.
    pub(super) fn track_task(&self, answer: &ServerAnswer) {
        if let Some(task) = parse_issued(answer).and_then(|given| given.task) {
            self.add(Purpose::Task, &task.task_id);
        }
    }

    fn add(&self, purpose: Purpose<'_>, value: &str) {
        let hash = self.key.hash_one((purpose, value));
        let mut newest = self.table();
        if newest.contains(&hash) {
            return;
        }
        if newest.len() == MAX_COUNT {
            newest.pop_front();
        }
        newest.push_back(hash);
    }

    fn table(&self) -> MutexGuard<'_, VecDeque<u64>> {
        self.newest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn parse_issued(answer: &ServerAnswer) -> Option<IssuedInResult> {
    let ServerAnswer::Response(Response::Result(result)) = answer else { return None };
    serde_json::from_str(result.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_mcp::request::{RequestBody, RequestMeta};
    use serde_json::value::RawValue;

    fn list(issued: &IssuedValues, method: &'static str, result: &str) {
        let body = RequestBody::List { method, cursor: None };
        let request = ServerRequest::new(body, &RequestMeta::default()).unwrap();
        let result = RawValue::from_string(result.to_owned()).unwrap();
        issued.track_list(&request, &ServerAnswer::Response(Response::Result(result)));
    }

    #[test]
    fn a_cursor_is_valid_only_for_its_own_list() {
        let issued = IssuedValues::default();
        list(&issued, "tools/list", r#"{"tools":[{"name":"a"}],"nextCursor":"2"}"#);
        assert!(issued.was_issued(Purpose::Page("tools/list"), "2"));
        assert!(!issued.was_issued(Purpose::Page("prompts/list"), "2"));
        assert!(!issued.was_issued(Purpose::Page("tools/list"), "a secret"));
        assert!(!issued.was_issued(Purpose::Task, "2"));
    }

    #[test]
    fn the_tasks_of_a_list_and_of_a_call_are_known() {
        let issued = IssuedValues::default();
        list(&issued, "tasks/list", r#"{"tasks":[{"taskId":"a","status":"working"}]}"#);
        let made = RawValue::from_string(r#"{"task":{"taskId":"b","status":"working"}}"#.into()).unwrap();
        issued.track_task(&ServerAnswer::Response(Response::Result(made)));
        assert!(issued.was_issued(Purpose::Task, "a") && issued.was_issued(Purpose::Task, "b"));
        assert!(!issued.was_issued(Purpose::Task, "c"));
    }

    #[test]
    fn only_the_newest_values_are_kept() {
        let issued = IssuedValues::default();
        (0..=MAX_COUNT).for_each(|n| issued.add(Purpose::Task, &n.to_string()));
        assert!(!issued.was_issued(Purpose::Task, "0"));
        assert!(
            issued.was_issued(Purpose::Task, "1") && issued.was_issued(Purpose::Task, &MAX_COUNT.to_string())
        );
        assert_eq!(issued.table().len(), MAX_COUNT);
    }
}
