//! Answers to the client's requests: IronCurtain's own, and the server's responses.
//!
//! - Each request is answered only once. A response to a cancelled request is dropped.

use super::Session;
use super::in_flight::Ticket;
use super::pinned_tools::{is_first_page, lists_tools};
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
        self.echo.lock().unwrap_or_else(PoisonError::into_inner).sent(&line);
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

    /// Sends a request to the server, and forwards the response to the client.
    pub(super) fn pass_to(
        self: &Arc<Self>,
        connection: &ServerConnection,
        ticket: Ticket,
        request: ServerRequest,
        budget: MemoryShare,
    ) {
        let of_task = TaskRequest::of(request.method(), request.params());
        let (session, answered) = (Arc::downgrade(self), ticket.clone());
        let asked = request.clone();
        let place = connection.ask(request, budget, move |answer, held| {
            if let Some(session) = session.upgrade() {
                if let Some(request) = of_task {
                    session.tasks.handle_response(&request, &answer);
                }
                session.issued.track_list(&asked, &answer);
                if lists_tools(&asked, &answer) {
                    let is_first = is_first_page(&asked);
                    tokio::spawn(async move {
                        session.pass_on_tools(&answered, (answer, is_first), held).await;
                    });
                } else {
                    session.pass_on(&answered, answer, held);
                }
            }
        });
        self.forwarded(&ticket, place);
    }

    /// Answers a request for the tool list after comparing the tools with their pinned definitions.
    async fn pass_on_tools(
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
                self.pass_on(ticket, answer, held);
                return;
            }
        };
        match pinned {
            Ok(result) => {
                let answer = ServerAnswer::Response(Response::Result(result));
                self.pass_on(ticket, answer, held);
            }
            Err(problem) => self.fail(ticket, ErrorCode::INTERNAL_ERROR, &problem.to_string()),
        }
    }

    /// Answers a request with the server's response. Returns `false` if the client has cancelled the request.
    pub(super) fn pass_on(&self, ticket: &Ticket, answered: ServerAnswer, held: MemoryShare) -> bool {
        if !self.in_flight.finish(ticket) {
            return false;
        }
        match answered {
            ServerAnswer::Response(response) => self.send(response_parts(&ticket.id, response).holding(held)),
            ServerAnswer::Failed(why) => {
                let code = ErrorCode::INTERNAL_ERROR.0;
                self.reply(error_line(Some(&ticket.id), code, &why.to_string()));
            }
        }
        true
    }

    /// Spawns the task that handles a request. Cancelling the request aborts the task.
    pub(super) fn track(&self, ticket: &Ticket, wait: impl Future<Output = ()> + Send + 'static) {
        let _ =
            self.in_flight.update(ticket, |request| request.task = Some(tokio::spawn(wait).abort_handle()));
    }

    /// Stores the name of the tool that the request calls.
    pub(super) fn calls(&self, ticket: &Ticket, tool: &str) {
        let _ = self.in_flight.update(ticket, |request| request.tool = Some(tool.to_owned()));
    }

    /// Stores the handle of the request that was sent to the server.
    pub(super) fn forwarded(&self, ticket: &Ticket, at_server: RequestHandle) {
        let place = at_server.clone();
        if !self.in_flight.update(ticket, |request| request.at_server = Some(place)) {
            // The client cancelled the request while it was being sent. Cancels it at the server too, unless the server
            // has already answered it.
            at_server.cancel(None);
        }
    }
}
