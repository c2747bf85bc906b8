//! Event streams: reading them, resuming them, and listening for unsolicited messages.
//!
//! - An interrupted stream with event ids is resumed after the last event.
//! - A stream of unsolicited messages ends with the login with which it was opened.

use super::{Awaited, Exchange};
use crate::remote::events::{Event, Events, Position};
use crate::remote::fault::Fault;
use crate::remote::http::Reply;
use crate::remote::login::LoginError;
use crate::remote::required_login::LoginId;
use crate::remote::response_head::{BodyFormat, body_format};
use hyper::Method;
use std::time::Duration;

/// Maximum number of consecutive failures to resume a stream. After that, the request fails.
const MAX_FAILURES: u32 = 5;

/// Duration for which a stream is still read after the awaited response has arrived.
const LINGER_AFTER_RESPONSE: Duration = Duration::from_secs(1);

/// Login with which a stream of unsolicited messages was opened. The stream of a request has no such login, because a
/// login that ends while the server carries out a request does not affect the response.
struct StreamLogin(LoginId);

impl Exchange {
    /// Listens for messages that belong to no request, if the server offers a stream for them.
    pub(in crate::remote) async fn listen(&self) {
        let mut position = Position::default();
        let mut failures = 0;
        loop {
            let session = self.session().clone();
            let login = StreamLogin(self.http.login_id().await);
            match self.open(&position).await {
                Ok(reply) => {
                    failures = 0;
                    let login = Some(&login);
                    if let Err(Fault::Closed) = self.read_events(reply, None, &mut position, login).await {
                        return;
                    }
                }
                // The authorization server or the store of logins may be unavailable for a while.
                Err(Fault::Login(problem)) if !matches!(problem, LoginError::Expired { .. }) => failures += 1,
                // The server offers no such stream.
                Err(Fault::Status { status: 405, .. } | Fault::NotFound) => return,
                Err(
                    fault @ (Fault::Unauthorized { .. }
                    | Fault::Login(_)
                    | Fault::WebPage
                    | Fault::BodyFormat(_)),
                ) => {
                    let text = format!("failed to listen for unsolicited messages: {fault}");
                    self.log(&text).await;
                    if !fault.needs_login() {
                        return;
                    }
                    self.status.login.refuse(login.0.clone());
                    // With the same login, the server would refuse again.
                    while self.http.login_id().await == login.0 {
                        self.status.login.until_accepted().await;
                    }
                }
                Err(Fault::SessionLost) => match self.renew(&session).await {
                    Ok(()) => position = Position::default(),
                    Err(_) => return self.close_lost_session(),
                },
                Err(Fault::Closed) => return,
                Err(_) => failures += 1,
            }
            tokio::time::sleep(position.retry_delay() * 2_u32.pow(failures.min(MAX_FAILURES))).await;
        }
    }

    /// Reads the event stream of a request, and resumes it until the response has arrived.
    pub(super) async fn read_stream(&self, reply: Reply, awaited: &mut Awaited<'_>) -> Result<(), Fault> {
        let mut position = Position::default();
        self.read_events(reply, Some(awaited), &mut position, None).await?;
        let mut failures = 0;
        while !awaited.is_answered {
            // Without an event id, a resumed stream would not belong to this request.
            if position.last_id.is_none() {
                return Err(Fault::Truncated);
            }
            tokio::time::sleep(position.retry_delay()).await;
            match self.open(&position).await {
                Ok(reply) => {
                    failures = 0;
                    self.read_events(reply, Some(awaited), &mut position, None).await?;
                }
                Err(fault @ (Fault::SessionLost | Fault::Closed)) => return Err(fault),
                Err(fault) if failures == MAX_FAILURES => return Err(fault),
                Err(_) => failures += 1,
            }
        }
        Ok(())
    }

    /// Opens an event stream that continues after the last event.
    async fn open(&self, position: &Position) -> Result<Reply, Fault> {
        let headers = self.session().resume_headers(position.last_id.as_deref());
        let reply = self.http.send(Method::GET, headers, Vec::new().into()).await?;
        let reply = self.check_reply(reply, None).await?.ok_or(Fault::Truncated)?;
        match body_format(reply.response.headers()) {
            BodyFormat::Events => Ok(reply),
            BodyFormat::WebPage => Err(Fault::WebPage),
            BodyFormat::Message => Err(Fault::BodyFormat("application/json".to_owned())),
            BodyFormat::Other(body_format) => Err(Fault::BodyFormat(body_format)),
        }
    }

    /// Forwards the events of a stream until the stream ends or `login` is no longer current. `login` is the login with
    /// which the stream was opened.
    async fn read_events(
        &self,
        reply: Reply,
        mut awaited: Option<&mut Awaited<'_>>,
        position: &mut Position,
        login: Option<&StreamLogin>,
    ) -> Result<(), Fault> {
        let (body, connection) = reply.body();
        let mut events = Events::new(body, self.memory.clone());
        loop {
            let is_answered = awaited.as_ref().is_some_and(|awaited| awaited.is_answered);
            let next = events.next(position);
            let next = if is_answered {
                match tokio::time::timeout(LINGER_AFTER_RESPONSE, next).await {
                    Ok(next) => next,
                    Err(_) => return Ok(()),
                }
            } else {
                next.await
            };
            if let Some(StreamLogin(opened)) = login
                && self.http.login_id().await != *opened
            {
                return Ok(());
            }
            match next {
                Ok(Some(Event::Message(text, share))) => {
                    self.deliver(text, awaited.as_deref_mut()).await?;
                    drop(share);
                }
                Ok(Some(skipped @ (Event::TooLong(_) | Event::NoMemory))) => {
                    let fault = if let Event::TooLong(length) = skipped {
                        Fault::TooLong(length)
                    } else {
                        Fault::NoMemory
                    };
                    // The skipped message may have been the awaited response. Otherwise, only a notification is lost.
                    if awaited.is_some() {
                        return Err(fault);
                    }
                    self.log(&fault.to_string()).await;
                }
                Ok(None) => {
                    self.http.recycle(connection).await;
                    return Ok(());
                }
                Err(_) => return Ok(()),
            }
        }
    }
}
