//! Shows a question from a remote machine on this desktop.

use crate::view::effect;
use ironcurtain_audit::Event;
use ironcurtain_consent::{
    Answer, DenialScope, DeniedKey, Inquiry, Principal, Question, QuestionKey, QuestionOutcome, ReceivedError,
};
use ironcurtain_grants::Client;
use ironcurtain_remote::QuestionDigest;
use ironcurtain_services::Services;
use serde_json::Map;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Question received from a remote machine.
pub(super) struct ReceivedQuestion {
    pub(super) host: String,
    /// Id that the remote machine gave to the question.
    pub(super) id: String,
    pub(super) digest: QuestionDigest,
    /// Question to show on this computer, or the reason why it is not shown.
    pub(super) question: Result<Question, ReceivedError>,
}

/// Result of a question, or a sign that the user is active in its dialog.
#[derive(Debug)]
pub(super) enum QuestionEvent {
    Working {
        id: String,
    },
    /// The question expired or was withdrawn.
    Unanswered {
        id: String,
    },
    Answered {
        id: String,
        digest: QuestionDigest,
        answer: Option<Answer>,
    },
}

/// Asks the question and sends the answer. Dropping the sender of `withdrawn` withdraws the question.
pub(super) async fn ask(
    services: Services,
    received: ReceivedQuestion,
    withdrawn: oneshot::Receiver<()>,
    answers: mpsc::Sender<QuestionEvent>,
) {
    let ReceivedQuestion { host, id, digest, question } = received;
    let report_activity = || {
        // If the queue is full, this sign of activity is dropped. Another one follows while the user is active.
        let _ = answers.try_send(QuestionEvent::Working { id: id.clone() });
    };
    let outcome = ask_user(&services, &host, question, withdrawn, report_activity).await;
    let answer = match outcome {
        Ok(QuestionOutcome::TimedOut | QuestionOutcome::Settled) => QuestionEvent::Unanswered { id },
        Ok(QuestionOutcome::Closed) => QuestionEvent::Answered { id, digest, answer: None },
        Ok(QuestionOutcome::Allowed { offer, lifetime }) => {
            QuestionEvent::Answered { id, digest, answer: Some(Answer::Allow { offer, lifetime }) }
        }
        Ok(QuestionOutcome::Denied { note, reach }) => {
            QuestionEvent::Answered { id, digest, answer: Some(Answer::Deny { note, reach }) }
        }
        Ok(QuestionOutcome::Stopped(stop)) => unavailable(id, digest, stop.to_string()),
        Ok(QuestionOutcome::Unavailable(why)) => unavailable(id, digest, why),
        Err(problem) => unavailable(id, digest, problem.to_string()),
    };
    // Fails only if the connection has ended. The remote machine then denies the question.
    let _ = answers.send(answer).await;
}

fn unavailable(id: String, digest: QuestionDigest, why: String) -> QuestionEvent {
    QuestionEvent::Answered { id, digest, answer: Some(Answer::Unavailable { why }) }
}

/// Reason a question was not asked.
#[derive(Debug, thiserror::Error)]
enum AskError {
    #[error(transparent)]
    Received(#[from] ReceivedError),
    #[error(transparent)]
    Exchange(#[from] ironcurtain_consent::ExchangeError),
}

async fn ask_user(
    services: &Services,
    host: &str,
    question: Result<Question, ReceivedError>,
    withdrawn: oneshot::Receiver<()>,
    report_activity: impl Fn(),
) -> Result<QuestionOutcome, AskError> {
    let question = question?;
    let principal = Principal {
        session: host.to_owned(),
        // All agents on a remote machine share the same question limits.
        client: Client { key: format!("remote:{host}"), view: question.client.clone() },
        claimed_name: Arc::default(),
        server: question.server.clone(),
        server_command: question.server_command.clone(),
        sandboxed: question.sandboxed,
        remote: question.remote,
        is_new: true,
    };
    let mut entry = principal.entry(Event::Question, String::new());
    let effect = question.consequences.first().map(effect).unwrap_or_default();
    entry.summary = format!("a question of {host}: {effect}");
    entry.tool_name = question.tool.clone();
    let inquiry = Inquiry {
        identity: QuestionKey::unique(&question),
        call: DeniedKey::of(&principal, &question.id, &Map::new()),
        scope: DenialScope::of_remote(),
        entry,
        question,
    };
    let withdrawn = async { drop(withdrawn.await) };
    Ok(services.exchange(&principal).ask_remote(&inquiry, withdrawn, report_activity).await?)
}
