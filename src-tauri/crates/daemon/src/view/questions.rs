//! Converts pending questions, missed questions and denials for display.

use ironcurtain_audit::clock::boot_ms;
use ironcurtain_consent::{
    Broker, Consequence, ExpiredQuestion, ExpiredState, OpenQuestion, Question, SessionDenial, TextPart,
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
        missed: broker.expired_questions().list(now).iter().map(|one| missed(one, now)).collect(),
        denied: broker.stops().now().denials.iter().take(MAX_COUNT).map(denied).collect(),
    }
}

fn waiting(open: &OpenQuestion) -> QuestionView {
    QuestionView { since_ms: Some(open.since_ms), ..question(&open.question, QuestionState::Waiting) }
}

fn missed(missed: &ExpiredQuestion, now_boot_ms: u64) -> QuestionView {
    let state = match missed.state {
        ExpiredState::Open => QuestionState::Missed,
        ExpiredState::Shown => QuestionState::ShownAgain,
        ExpiredState::Allowed => QuestionState::AllowedLate,
    };
    let remaining = missed.until_boot_ms.saturating_sub(now_boot_ms) / 1000;
    QuestionView { kept_seconds: Some(remaining), ..question(&missed.inquiry.question, state) }
}

/// Converts a question for display. Its strings are already escaped.
fn question(question: &Question, state: QuestionState) -> QuestionView {
    QuestionView {
        id: question.id.clone(),
        session: question.session.clone(),
        client: question.client.name.clone(),
        server: super::display_name(&question.server),
        tool: question.tool.as_deref().map(super::display_name),
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
    let piece = |piece: &TextPart| match piece {
        TextPart::Fixed(words) => (*words).to_owned(),
        TextPart::Path(path) => visible::path(path),
        TextPart::Untrusted(text) => visible::quoted(&visible::line(text)),
    };
    let object: String = consequence.object.iter().map(piece).collect();
    visible::head_and_tail(&format!("{}{object}", consequence.verb.prefix()), MAX_LINE_LEN)
}

fn denied(denial: &SessionDenial) -> DenialView {
    DenialView {
        id: denial.id.clone(),
        session: denial.session.clone(),
        client: denial.client.clone(),
        server: super::display_name(&denial.server),
        what: visible::path(&denial.description),
        note: denial.note.as_deref().map(visible::line),
        time_ms: denial.at_ms,
    }
}
