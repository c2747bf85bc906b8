//! Answers to the client's requests: IronCurtain's own, and the server's responses.
//!
//! - Each request is answered only once. A response to a cancelled request is dropped.

use super::Session;
use super::in_flight::Ticket;
use super::pinned_tools::{is_first_page, is_tool_list};
use super::tasks::TaskRequest;
use ironcurtain_mcp::request::ServerRequest;
use ironcurtain_mcp::server::{MemoryShare, RequestHandle, ServerAnswer, ServerConnection};
use ironcurtain_mcp::wire::{Outgoing, Response, error_line, response_parts};
use rmcp::model::ErrorCode;
use std::sync::{Arc, PoisonError};

impl Session {
    /// Sends the client a message that IronCurtain itself created.
    pub(super) fn reply(&self, line: Vec<u8>) {
        let unread = self.unread.clone().try_acquire_owned().ok();
        self.send(Outgoing::line(line).holding(unread));
    }

    fn send(&self, line: Outgoing) {
        self.echo.lock().unwrap_or_else(PoisonError::into_inner).record_sent(&line);
        self.to_client.send(line);
    }

    /// Answers a request with an error.
    pub(super) fn fail(&self, ticket: &Ticket, code: ErrorCode, text: &str) {
        self.finish(ticket, error_line(Some(&ticket.id), code.0, text));
    }

    /// Answers a request, unless the client has cancelled it.
    pub(super) fn finish(&self, ticket: &Ticket, line: Vec<u8>) {
        if self.in_flight.finish(ticket) {
            self.reply(line);
        }
    }

    /// Sends a request to the server and forwards the response to the client.
    pub(super) fn forward_to_server(
        self: &Arc<Self>,
        connection: &ServerConnection,
        ticket: Ticket,
        request: ServerRequest,
        budget: MemoryShare,
    ) {
        let task_request = TaskRequest::parse(request.method(), request.params());
        let (session, sent_ticket) = (Arc::downgrade(self), ticket.clone());
        let sent = request.clone();
        let handle = connection.forward_request(request, budget, move |answer, held| {
            if let Some(session) = session.upgrade() {
                if let Some(request) = task_request {
                    session.tasks.handle_response(&request, &answer);
                }
                session.issued.track_list(&sent, &answer);
                if is_tool_list(&sent, &answer) {
                    let is_first = is_first_page(&sent);
                    tokio::spawn(async move {
                        session.respond_with_tools(&sent_ticket, (answer, is_first), held).await;
                    });
                } else {
                    session.respond(&sent_ticket, answer, held);
                }
            }
        });
        self.set_server_request(&ticket, handle);
    }

    /// Answers a request for the tool list after comparing the tools with their pinned definitions.
    async fn respond_with_tools(
        &self,
        ticket: &Ticket,
        (answer, is_first_page): (ServerAnswer, bool),
        held: MemoryShare,
    ) {
        let pinned = match &answer {
            ServerAnswer::Response(Response::Result(result)) => {
                self.with_pinned_tools(result, is_first_page).await
            }
            ServerAnswer::Response(Response::Error(_)) | ServerAnswer::Failed(_) => {
                self.respond(ticket, answer, held);
                return;
            }
        };
        match pinned {
            Ok(result) => {
                let answer = ServerAnswer::Response(Response::Result(result));
                self.respond(ticket, answer, held);
            }
            Err(problem) => self.fail(ticket, ErrorCode::INTERNAL_ERROR, &problem.to_string()),
        }
    }

    /// Answers a request with the server's response. Returns `false` if the client has cancelled the request.
    pub(super) fn respond(&self, ticket: &Ticket, answer: ServerAnswer, held: MemoryShare) -> bool {
        if !self.in_flight.finish(ticket) {
            return false;
        }
        match answer {
            ServerAnswer::Response(response) => self.send(response_parts(&ticket.id, response).holding(held)),
            ServerAnswer::Failed(why) => {
                let code = ErrorCode::INTERNAL_ERROR.0;
                self.reply(error_line(Some(&ticket.id), code, &why.to_string()));
            }
        }
        true
    }

    /// Spawns the task that handles a request. Cancelling the request aborts the task.
    pub(super) fn spawn_tracked(&self, ticket: &Ticket, wait: impl Future<Output = ()> + Send + 'static) {
        let _ =
            self.in_flight.update(ticket, |request| request.task = Some(tokio::spawn(wait).abort_handle()));
    }

    /// Stores the name of the tool that the request calls.
    pub(super) fn set_tool(&self, ticket: &Ticket, tool: &str) {
        let _ = self.in_flight.update(ticket, |request| request.tool = Some(tool.to_owned()));
    }

    /// Stores the handle of the request that was sent to the server.
    pub(super) fn set_server_request(&self, ticket: &Ticket, handle: RequestHandle) {
        let stored = handle.clone();
        if !self.in_flight.update(ticket, |request| request.at_server = Some(stored)) {
            // The client cancelled the request while it was being sent. Cancels it at the server too, unless the server
            // has already answered it.
            handle.cancel(None);
        }
    }
}
