//! Raises a question in advance, before the run's program opens the path. Only the user can answer it.

use super::Run;
use super::asking::{AskedByProgram, Together};
use super::judge::operation;
use ironcurtain_consent::ExchangeError;
use ironcurtain_paths::PathError;
use ironcurtain_policy::Verdict;
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use std::sync::Arc;

/// Reason why a question could not be raised.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RaiseError {
    /// The path cannot be resolved.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The policy denies the access, so there is nothing to ask.
    #[error("denied without a question: {0}")]
    Denied(Arc<str>),
    /// The access is already permitted. Contains the name of the operation.
    #[error("the run may already {0} this path")]
    Allowed(&'static str),
    /// The question was closed before the user saw it. Contains the reason.
    #[error("{0}")]
    Unasked(String),
}

impl Run {
    /// Raises the question. Returns once it is shown to the user.
    pub(crate) async fn raise(self: Arc<Self>, path: &str, write: bool) -> Result<(), RaiseError> {
        let path = self.resolver.resolve(path)?.path.as_str().to_owned();
        let wanted =
            PermittedAccess { path, access: if write { FileAccess::Write } else { FileAccess::Read } };
        let Some(judged) = self.judged(&wanted, &[]).await else {
            return Err(RaiseError::Unasked("IronCurtain is exiting".to_owned()));
        };
        let escalation = match &judged.verdict {
            Verdict::Allow(_) => return Err(RaiseError::Allowed(operation(wanted.access).name())),
            Verdict::Deny(denial) => return Err(RaiseError::Denied(denial.reason.clone())),
            Verdict::Escalate(escalation) => escalation.clone(),
        };
        let mut open = self.services.broker.open();
        let run = self.clone();
        let mut asking = tokio::spawn(async move {
            let asked = AskedByProgram { wanted, programs: Vec::new() };
            match run.question(&asked, &escalation, &judged, Together::Raised).await {
                Ok(_) => None,
                Err(problem @ (ExchangeError::NotApproved(_) | ExchangeError::NoOffer)) => {
                    Some(problem.to_string())
                }
                Err(problem) => {
                    tracing::error!(%problem, "failed to ask about a file");
                    Some(problem.to_string())
                }
            }
        });
        loop {
            let shown = self.services.broker.open_questions();
            if shown.iter().any(|open| open.question.session == self.id) {
                return Ok(());
            }
            tokio::select! {
                ended = &mut asking => {
                    return match ended.ok().flatten() {
                        Some(why) => Err(RaiseError::Unasked(why)),
                        None => Ok(()),
                    };
                }
                // Ignore the result: the broker exists as long as this process.
                _ = open.changed() => {}
            }
        }
    }
}
