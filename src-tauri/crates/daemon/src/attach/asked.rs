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
pub(super) enum AskedAnswer {
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
    asked: ReceivedQuestion,
    withdrawn: oneshot::Receiver<()>,
    answers: mpsc::Sender<AskedAnswer>,
) {
    let ReceivedQuestion { host, id, digest, question } = asked;
    let working = || {
        // If the queue is full, this sign of activity is dropped. Another one follows while the user is active.
        let _ = answers.try_send(AskedAnswer::Working { id: id.clone() });
    };
    let outcome = outcome(&services, &host, question, withdrawn, working).await;
    let answer = match outcome {
        Ok(QuestionOutcome::TimedOut | QuestionOutcome::Settled) => AskedAnswer::Unanswered { id },
        Ok(QuestionOutcome::Closed) => AskedAnswer::Answered { id, digest, answer: None },
        Ok(QuestionOutcome::Allowed { offer, lifetime }) => {
            AskedAnswer::Answered { id, digest, answer: Some(Answer::Allow { offer, lifetime }) }
        }
        Ok(QuestionOutcome::Denied { note, reach }) => {
            AskedAnswer::Answered { id, digest, answer: Some(Answer::Deny { note, reach }) }
        }
        Ok(QuestionOutcome::Stopped(stop)) => unavailable(id, digest, stop.to_string()),
        Ok(QuestionOutcome::Unavailable(why)) => unavailable(id, digest, why),
        Err(problem) => unavailable(id, digest, problem.to_string()),
    };
    // Fails only if the connection has ended. The remote machine then denies the question.
    let _ = answers.send(answer).await;
}

fn unavailable(id: String, digest: QuestionDigest, why: String) -> AskedAnswer {
    AskedAnswer::Answered { id, digest, answer: Some(Answer::Unavailable { why }) }
}

/// Reason a question was not asked.
#[derive(Debug, thiserror::Error)]
enum NotAsked {
    #[error(transparent)]
    Received(#[from] ReceivedError),
    #[error(transparent)]
    Exchange(#[from] ironcurtain_consent::ExchangeError),
}

async fn outcome(
    services: &Services,
    host: &str,
    question: Result<Question, ReceivedError>,
    withdrawn: oneshot::Receiver<()>,
    working: impl Fn(),
) -> Result<QuestionOutcome, NotAsked> {
    let question = question?;
    let principal = Principal {
        session: host.to_owned(),
        // All agents on a remote machine share the same question limits.
        client: Client { key: format!("remote:{host}"), view: question.client.clone() },
        says_it_is: Arc::default(),
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
        identity: QuestionKey::alone(&question),
        call: DeniedKey::of(&principal, &question.id, &Map::new()),
        scope: DenialScope::of_remote(),
        entry,
        question,
    };
    let withdrawn = async { drop(withdrawn.await) };
    Ok(services.exchange(&principal).ask_remote(&inquiry, withdrawn, working).await?)
}
