//! Interface between the trusted process and a front end that asks the user: the app's dialog, a terminal or a test.
//!
//! - Only [`Answer::Allow`] allows a call. A dropped [`AnswerSlot`], a timeout and a crash all deny it.
//! - [`Question`] contains everything that is shown, as plain text. A front end adds nothing and resolves nothing.
//! - The policy decides whether a call needs approval; this crate only asks.
//!
//! ```
//! use ironcurtain_consent::{Answer, Consent, DenialReach, Question, AnswerSlot, WithdrawalReason};
//!
//! struct DenyAll;
//!
//! impl Consent for DenyAll {
//!     fn ask(&self, _question: Question, slot: AnswerSlot) {
//!         slot.answer(Answer::Deny { note: None, reach: DenialReach::Call });
//!     }
//!
//!     fn withdraw(&self, _question: &str, _why: WithdrawalReason) {}
//! }
//! ```

mod answer;
mod binary;
mod broker;
mod comparison;
mod consequence;
pub mod definition;
mod exchange;
mod expired_questions;
pub mod found_paths;
mod grantable;
mod identical;
pub mod located_call;
mod not_approved;
mod offers;
mod preview;
mod principal;
mod question;
mod question_metrics;
mod rate;
mod received;
mod reopen;
mod showable;
mod shown_question;
mod side_effects;
mod stops;
mod terminal;
mod words;

pub use answer::{Answer, AnswerSlot, DenialReach, WithdrawalReason};
pub use broker::{Broker, OpenQuestion, QuestionOutcome};
pub use comparison::{FileComparison, file_state};
pub use exchange::{Approval, Exchange, ExchangeError};
pub use expired_questions::{ExpiredQuestion, ExpiredQuestionError, ExpiredQuestions, ExpiredState, Inquiry};
pub use grantable::{Grantable, RequestedAccess};
pub use identical::{AskGuard, QuestionKey};
pub use ironcurtain_grants::Lifetime;
pub use not_approved::{NotApproved, PAUSED};
pub use offers::{grants_of, may_last, offers};
pub use preview::Preview;
pub use principal::{Principal, shown_client};
pub use question::{
    CHANGED_TOOL_RULE, CallQuestion, ChangedToolQuestion, ConnectionQuestion, HOST_RULE, HostQuestion,
    SAMPLING_RULE, SIGNATURE_RULE, SIGNATURE_TOOL, SamplingQuestion, SignatureQuestion, SignedHost,
    SignedThing, WORKSPACE_RULE, WorkspaceQuestion, WorkspaceSource,
};
pub use question_metrics::QuestionMetrics;
pub use rate::{DeniedKey, QuestionLimits};
pub use received::{QuestionReceiver, ReceivedError};
pub use reopen::{ReopenContext, ReopenError};
pub use showable::TooLongToShow;
pub use shown_question::{Consequence, Offer, Question, Reach, TextPart};
pub use stops::{DenialScope, SessionDenial, Stop, StopState, Stops};
pub use terminal::{NoFrontEnd, Terminal, wrap_text};
pub use words::size;

pub use ironcurtain_policy::Verb;
use ironcurtain_protocol::PromptLocation;

/// Front end that asks the user.
pub trait Consent: Send + Sync + 'static {
    /// Shows the question and returns immediately. The front end later answers once through `slot`, from any thread.
    fn ask(&self, question: Question, slot: AnswerSlot);

    /// Removes a question that this front end has not answered, for the given reason.
    fn withdraw(&self, question: &str, why: WithdrawalReason);

    /// Shows the user a message that needs no answer, if possible.
    fn notify(&self, _notice: &str) {}

    /// Returns the kind of front end. The app may replace a daemon that returns [`PromptLocation::Nobody`].
    fn prompt_location(&self) -> PromptLocation {
        PromptLocation::App
    }
}

/// Warning that denying a call does not stop an unsandboxed server from acting on its own.
pub const UNSANDBOXED: &str = "This server is NOT SANDBOXED and has all your rights. Deny stops this call, but not what the server does on its own.";

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::ClientView;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    /// Returns a broker without active stops.
    pub(super) fn broker(consent: Arc<impl Consent>) -> Broker {
        Broker::new(consent, Stops::open(Path::new("/proc/self/nothing").to_path_buf()), None)
    }

    /// Returns the scope of a call that names no paths or addresses.
    pub(super) fn scope() -> DenialScope {
        DenialScope::of_call("t", &[], &[], |_| false)
    }

    /// Returns a question that can be allowed once.
    pub(super) fn question(id: &str) -> Question {
        Question {
            id: id.into(),
            session: "s".into(),
            client: ClientView {
                name: "claude".into(),
                exe: None,
                chain: vec![],
                cwd: None,
                claimed_name: None,
                label: None,
            },
            server: "filesystem".into(),
            server_command: "ironcurtain-filesystem".into(),
            sandboxed: true,
            remote: false,
            tool: Some("read_file".into()),
            consequences: vec![Consequence::new(Verb::Read, vec![TextPart::Path("/home/u/a.txt".into())])],
            with: vec![],
            also: vec![],
            rule: "ask".into(),
            reason: "because".into(),
            arguments: vec![],
            preview: None,
            offers: vec![Offer {
                reach: Reach::Paths,
                label: "this file".into(),
                sentence: "claude may read it".into(),
                lifetimes: vec![Lifetime::Once],
            }],
            denial: "read_file in /home/u".into(),
            fits_a_batch: true,
            deadline: Duration::from_secs(45),
            notice: None,
            host: None,
        }
    }
}
