//! Converts pending questions, missed questions and denials for display.

use ironcurtain_audit::clock::boot_ms;
use ironcurtain_consent::{
    Broker, Consequence, MissedQuestion, MissedState, OpenQuestion, Piece, Question, SessionDenial,
};
use ironcurtain_protocol::{DenialView, QuestionState, QuestionView, QuestionsView};
use ironcurtain_visible as visible;

/// Maximum number of pending questions to return. The same limit applies to denials.
const MAX_COUNT: usize = 200;

/// Maximum number of lines to list per question. The dialog shows all lines.
const MAX_LINES: usize = 20;

/// Maximum length of a line, in characters.
const MAX_LINE_LEN: usize = 400;

/// Returns the pending and missed questions, and the denials that apply for the rest of a session.
pub(crate) fn questions(broker: &Broker) -> QuestionsView {
    let now = boot_ms();
    QuestionsView {
        waiting: broker.open_questions().iter().take(MAX_COUNT).map(waiting).collect(),
        missed: broker.missed().list(now).iter().map(|one| missed(one, now)).collect(),
        denied: broker.stops().now().denials.iter().take(MAX_COUNT).map(denied).collect(),
    }
}

fn waiting(put: &OpenQuestion) -> QuestionView {
    QuestionView { since_ms: Some(put.since_ms), ..question(&put.question, QuestionState::Waiting) }
}

fn missed(missed: &MissedQuestion, now_boot_ms: u64) -> QuestionView {
    let state = match missed.state {
        MissedState::Open => QuestionState::Missed,
        MissedState::Shown => QuestionState::ShownAgain,
        MissedState::Allowed => QuestionState::AllowedLate,
    };
    let kept = missed.until_boot_ms.saturating_sub(now_boot_ms) / 1000;
    QuestionView { kept_seconds: Some(kept), ..question(&missed.inquiry.question, state) }
}

/// Converts a question for display. Its texts are already escaped.
fn question(question: &Question, state: QuestionState) -> QuestionView {
    QuestionView {
        id: question.id.clone(),
        session: question.session.clone(),
        client: question.client.name.clone(),
        server: super::name(&question.server),
        tool: question.tool.as_deref().map(super::name),
        lines: question.consequences.iter().take(MAX_LINES).map(effect).collect(),
        rule: visible::head(&question.rule, MAX_LINE_LEN),
        reason: visible::head(&question.reason, MAX_LINE_LEN),
        since_ms: None,
        kept_seconds: None,
        state,
    }
}

/// Describes an effect on one line of bounded length.
pub(crate) fn effect(consequence: &Consequence) -> String {
    let piece = |piece: &Piece| match piece {
        Piece::Ours(words) => (*words).to_owned(),
        Piece::Path(path) => visible::path(path),
        Piece::Foreign(text) => visible::quoted(&visible::line(text)),
    };
    let object: String = consequence.object.iter().map(piece).collect();
    visible::ends(&format!("{}{object}", consequence.verb.lead()), MAX_LINE_LEN)
}

fn denied(denial: &SessionDenial) -> DenialView {
    DenialView {
        id: denial.id.clone(),
        session: denial.session.clone(),
        client: denial.client.clone(),
        server: super::name(&denial.server),
        what: visible::path(&denial.words),
        note: denial.note.as_deref().map(visible::line),
        time_ms: denial.at_ms,
    }
}
