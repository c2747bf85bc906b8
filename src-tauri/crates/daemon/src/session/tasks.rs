//! Tasks: calls whose results the client fetches later (`tasks/get`, `tasks/result`).
//!
//! - A call that creates a task is judged, approved and recorded like any other call. Each session has its own server
//!   process, so other sessions cannot use its tasks.
//! - INVARIANT: access that was added for such a call is removed when a response reports that the task has finished,
//!   when the policy denies the call, when the user revokes the approval, or after [`MAX_DURATION`] at the latest.

use super::Session;
use super::authorize::Authorization;
use super::one_time::MAX_DURATION;
use super::tool_call::ToolCall;
use ironcurtain_mcp::server::ServerAnswer;
use ironcurtain_mcp::wire::{Fields, Response};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;

/// A session's unfinished tasks whose calls still have access, keyed by task id.
#[derive(Debug, Default)]
pub(super) struct Tasks(Mutex<HashMap<String, Vec<Arc<Notify>>>>);

/// Request that concerns a task.
#[derive(Debug)]
pub(super) struct TaskRequest {
    task: String,
    /// `true` if a response to this request always means that the task has finished.
    is_last: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TaskState {
    task_id: String,
    status: String,
}

impl TaskState {
    fn is_finished(&self) -> bool {
        ["completed", "failed", "cancelled"].contains(&self.status.as_str())
    }
}

impl TaskRequest {
    /// Parses a request's parameters. Returns `None` if the request does not concern a task.
    pub(super) fn parse(method: &str, params: Option<&RawValue>) -> Option<Self> {
        let is_last = match method {
            "tasks/get" | "tasks/cancel" => false,
            "tasks/result" => true,
            _ => return None,
        };
        let params: Fields = serde_json::from_str(params?.get()).ok()?;
        let task = serde_json::from_str(params.get("taskId")?.get()).ok()?;
        Some(Self { task, is_last })
    }

    fn is_finished(&self, answered: &ServerAnswer) -> bool {
        match answered {
            ServerAnswer::Response(Response::Result(result)) => {
                self.is_last
                    || serde_json::from_str(result.get()).is_ok_and(|state: TaskState| state.is_finished())
            }
            // The server has exited or no longer knows the task.
            ServerAnswer::Response(Response::Error(_)) | ServerAnswer::Failed(_) => true,
        }
    }
}

impl Tasks {
    /// Handles the response to a request that concerns a task. Ends the task's access if the task has finished.
    pub(super) fn handle_response(&self, request: &TaskRequest, answered: &ServerAnswer) {
        if request.is_finished(answered) {
            let finished = self.table().remove(&request.task).unwrap_or_default();
            finished.iter().for_each(|finished| finished.notify_one());
        }
    }

    /// Starts tracking a task. If the server returns the same id for two calls, both finish together.
    pub(super) fn track(&self, name: String) -> OpenTask {
        let finished = Arc::new(Notify::new());
        self.table().entry(name.clone()).or_default().push(Arc::clone(&finished));
        OpenTask { name, finished }
    }

    fn remove(&self, task: &OpenTask) {
        let mut table = self.table();
        if let Some(waiters) = table.get_mut(&task.name) {
            waiters.retain(|finished| !Arc::ptr_eq(finished, &task.finished));
            if waiters.is_empty() {
                table.remove(&task.name);
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<String, Vec<Arc<Notify>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tracked task whose call still has access.
pub(super) struct OpenTask {
    name: String,
    finished: Arc<Notify>,
}

/// Returns the id of the task that a response creates. Returns `None` if the response creates no task or the task has
/// already finished.
pub(super) fn created_task(answered: &ServerAnswer) -> Option<String> {
    #[derive(Deserialize)]
    struct CreateTaskResult {
        task: TaskState,
    }
    let ServerAnswer::Response(Response::Result(result)) = answered else { return None };
    let CreateTaskResult { task } = serde_json::from_str(result.get()).ok()?;
    (!task.is_finished()).then_some(task.task_id)
}

impl Session {
    /// Completes when the access for a task's call must be removed. Returns the reason, or `None` if the task has
    /// finished or the session is closing.
    pub(super) async fn wait_for_task(
        &self,
        task: OpenTask,
        (tool, authorization): (&ToolCall, &Authorization),
        revoked: impl Future<Output = ()>,
    ) -> Option<&'static str> {
        let why = tokio::select! {
            () = task.finished.notified() => None,
            () = self.end.cancelled() => None,
            () = self.wait_until_denied(tool, authorization) => Some("a rule now forbids it"),
            () = revoked => Some("it was revoked or has expired"),
            () = tokio::time::sleep(MAX_DURATION) => Some("it has expired"),
        };
        self.tasks.remove(&task);
        why
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> ServerAnswer {
        ServerAnswer::Response(Response::Result(RawValue::from_string(text.to_owned()).unwrap()))
    }

    fn request(method: &str) -> Option<TaskRequest> {
        TaskRequest::parse(method, Some(&RawValue::from_string(r#"{"taskId":"t"}"#.to_owned()).unwrap()))
    }

    #[test]
    fn only_unfinished_tasks_are_tracked() {
        let task = |status: &str| {
            created_task(&result(&format!(r#"{{"task":{{"taskId":"t","status":"{status}"}}}}"#)))
        };
        assert_eq!(task("working").as_deref(), Some("t"));
        assert_eq!(task("input_required").as_deref(), Some("t"));
        assert_eq!(task("completed"), None);
        assert_eq!(created_task(&result(r#"{"content":[]}"#)), None);
    }

    #[test]
    fn a_task_is_over_after_its_result_a_final_state_or_an_error() {
        let get = request("tasks/get").unwrap();
        assert!(!get.is_finished(&result(r#"{"taskId":"t","status":"working"}"#)));
        assert!(get.is_finished(&result(r#"{"taskId":"t","status":"failed"}"#)));
        assert!(get.is_finished(&ServerAnswer::Response(Response::Error(
            RawValue::from_string("{}".into()).unwrap()
        ))));
        assert!(request("tasks/result").unwrap().is_finished(&result(r#"{"content":[]}"#)));
        assert!(request("tasks/list").is_none() && request("tools/call").is_none());
    }

    #[tokio::test]
    async fn the_end_of_a_task_notifies_every_call_that_shares_it() {
        let tasks = Tasks::default();
        let (one, other, gone) = (tasks.track("t".into()), tasks.track("t".into()), tasks.track("t".into()));
        tasks.remove(&gone);
        tasks.handle_response(&request("tasks/result").unwrap(), &result("{}"));
        one.finished.notified().await;
        other.finished.notified().await;
        assert!(tasks.table().is_empty());
    }

    #[tokio::test]
    async fn a_waiter_is_notified_only_of_its_own_task() {
        let tasks = Tasks::default();
        let (one, other) = (tasks.track("t".into()), tasks.track("u".into()));
        tasks.handle_response(&request("tasks/result").unwrap(), &result("{}"));
        one.finished.notified().await;
        assert!(
            tokio::time::timeout(std::time::Duration::from_millis(20), other.finished.notified())
                .await
                .is_err()
        );
        assert_eq!(tasks.table().len(), 1);
    }
}
