//! Replaces an HTTP session that the server has forgotten.
//!
//! - Only a request that the server refused because of its session is sent again, once, in the new session.
//! - A session with state at the server, such as subscriptions, is not replaced. The connection closes, and its owner
//!   restores the state in the next connection.

use super::events::{Event, Events, Position};
use super::exchange::Exchange;
use super::fault::Fault;
use super::headers::HttpSession;
use super::http::Reply;
use super::response_head::{BodyFormat, body_format};
use crate::wire::{Id, Incoming, Line, Lines, MAX_LINE_BYTES, Response, notification_line};
use hyper::Method;
use hyper::body::Bytes;

impl Exchange {
    /// Replaces a session that the server has forgotten, unless another request has already replaced it.
    ///
    /// # Errors
    /// Returns [`Fault::SessionLost`] if the session cannot be replaced.
    pub(super) async fn renew(&self, forgotten: &HttpSession) -> Result<(), Fault> {
        let _lock = self.session.renewal_lock.lock().await;
        if !self.session.current().has_same_session(forgotten) {
            return Ok(());
        }
        let (id, line) = self.session.initialize().clone().ok_or(Fault::SessionLost)?;
        let renewed = self.reinitialize(&id, line, forgotten).await.ok_or(Fault::SessionLost)?;
        *self.session.current() = renewed;
        self.log("the server had forgotten the session; a new one was started").await;
        Ok(())
    }

    /// Sends `initialize` again. Returns the new session, or `None` if the request fails or the server chooses a
    /// different protocol version.
    async fn reinitialize(&self, id: &Id, line: Bytes, before: &HttpSession) -> Option<HttpSession> {
        let message = Incoming::parse(&line).ok()?;
        let mut session = HttpSession::default();
        let reply = self.http.send(Method::POST, session.headers_for(&message), line).await.ok()?;
        if !reply.response.status().is_success() {
            return None;
        }
        session.set_session(reply.response.headers());
        let Some(Response::Result(result)) = self.read_response(reply, id).await else { return None };
        session.set_version(&result);
        if !session.has_same_version(before) {
            return None;
        }
        let ready = notification_line("notifications/initialized", None);
        let message = Incoming::parse(&ready).ok()?;
        let reply = self.http.send(Method::POST, session.headers_for(&message), ready.into()).await.ok()?;
        reply.response.status().is_success().then_some(session)
    }

    /// Reads the response to our own request.
    async fn read_response(&self, reply: Reply, wanted: &Id) -> Option<Response> {
        let wanted_response = |text: &[u8]| match Incoming::parse(text) {
            Ok(Incoming::Response { id, response }) if id == *wanted => Some(response),
            Ok(_) | Err(_) => None,
        };
        match body_format(reply.response.headers()) {
            BodyFormat::Message => {
                let (body, connection) = reply.body_as_line();
                let mut lines = Lines::with_allowance(self.memory.clone(), body, MAX_LINE_BYTES);
                let Ok(Some(Line::Whole(text, _))) = lines.next().await else { return None };
                self.http.recycle(connection).await;
                wanted_response(&text)
            }
            BodyFormat::Events => {
                let (body, _) = reply.body();
                let mut events = Events::new(body, self.memory.clone());
                let mut position = Position::default();
                while let Ok(Some(event)) = events.next(&mut position).await {
                    if let Event::Message(text, _) = event
                        && let Some(response) = wanted_response(&text)
                    {
                        return Some(response);
                    }
                }
                None
            }
            BodyFormat::WebPage | BodyFormat::Other(_) => None,
        }
    }
}
