//! Raises a question before the run's program opens the path. Only the user can answer the question.

use super::ServedFiles;
use super::asking::{AskedByProgram, QuestionSubject};
use super::judge::operation;
use ironcurtain_consent::{ExchangeError, NotApproved};
use ironcurtain_paths::PathError;
use ironcurtain_policy::{Denial, Verdict};
use ironcurtain_protocol::RunAsk;
use ironcurtain_sandbox::file_access::{FileAccess, PermittedAccess};
use std::sync::Arc;

/// Error returned when a question cannot be raised or a request is not approved.
#[derive(Debug, thiserror::Error)]
pub enum AccessRequestError {
    /// The path cannot be resolved.
    #[error(transparent)]
    Path(#[from] PathError),
    /// The policy denies the access, so the user is not asked.
    #[error("denied without a question: {0}")]
    Denied(Arc<str>),
    /// The access is already permitted. Contains the name of the operation.
    #[error("the run may already {0} this path")]
    Allowed(&'static str),
    /// The question was closed before the user saw it. Contains the reason.
    #[error("{0}")]
    Unasked(String),
    /// The user did not approve.
    #[error(transparent)]
    NotApproved(#[from] NotApproved),
    /// Asking failed.
    #[error(transparent)]
    Exchange(ExchangeError),
    /// Rules and grants changed too often.
    #[error("the rules changed too often")]
    Changing,
}

impl From<ExchangeError> for AccessRequestError {
    fn from(problem: ExchangeError) -> Self {
        match problem {
            ExchangeError::NotApproved(why) => Self::NotApproved(why),
            problem @ (ExchangeError::QuestionId(_)
            | ExchangeError::NoOffer
            | ExchangeError::Audit(_)
            | ExchangeError::GrantId(_)
            | ExchangeError::Store(_)) => Self::Exchange(problem),
        }
    }
}

/// Reason that no question is raised.
const EXITING_REASON: &str = "IronCurtain is exiting";

/// Maximum number of times that a requested access is judged.
const MAX_ROUNDS: usize = 20;

impl ServedFiles {
    /// Asks about a path that the agent requests. Returns once the run's programs are allowed to use the path.
    ///
    /// # Errors
    /// Returns [`AccessRequestError`] if the access is denied or the user cannot be asked.
    pub async fn request(
        self: &Arc<Self>,
        path: &str,
        access: FileAccess,
        why: &str,
    ) -> Result<PermittedAccess, AccessRequestError> {
        let wanted = PermittedAccess { path: self.resolved(path).await?, access };
        for _ in 0..MAX_ROUNDS {
            let Some(judged) = self.judged(&wanted, &[]).await else { break };
            let escalation = match &judged.verdict {
                Verdict::Allow(_) => return Ok(wanted),
                Verdict::Deny(denial) => {
                    self.record_denial(&wanted, denial, &judged).await;
                    return Err(AccessRequestError::Denied(denial.reason.clone()));
                }
                Verdict::Escalate(escalation) => escalation,
            };
            if self.notes.ask() == RunAsk::Deny {
                let denial = Denial::invalid("the run was started with `--deny`");
                self.record_denial(&wanted, &denial, &judged).await;
                return Err(NotApproved::Unavailable("the run was started with `--deny`".to_owned()).into());
            }
            let asked = AskedByProgram { wanted: wanted.clone(), programs: Vec::new() };
            let together = QuestionSubject::BeforeAccess(Some(why.to_owned()));
            self.question(&asked, escalation, &judged, together).await?;
        }
        Err(AccessRequestError::Changing)
    }

    /// Resolves a path on a blocking thread, because its file system may not answer.
    async fn resolved(self: &Arc<Self>, path: &str) -> Result<String, AccessRequestError> {
        let (files, path) = (self.clone(), path.to_owned());
        let resolved = tokio::task::spawn_blocking(move || files.resolver.resolve(&path)).await;
        let resolved = resolved.map_err(|_| AccessRequestError::Unasked(EXITING_REASON.to_owned()))?;
        Ok(resolved?.path.as_str().to_owned())
    }

    /// Raises the question. Returns once it is shown to the user.
    ///
    /// # Errors
    /// Returns [`AccessRequestError`] if the question is not raised.
    pub async fn raise(self: Arc<Self>, path: &str, write: bool) -> Result<(), AccessRequestError> {
        let path = self.resolved(path).await?;
        let wanted =
            PermittedAccess { path, access: if write { FileAccess::Write } else { FileAccess::Read } };
        let Some(judged) = self.judged(&wanted, &[]).await else {
            return Err(AccessRequestError::Unasked(EXITING_REASON.to_owned()));
        };
        let escalation = match &judged.verdict {
            Verdict::Allow(_) => return Err(AccessRequestError::Allowed(operation(wanted.access).name())),
            Verdict::Deny(denial) => {
                self.record_denial(&wanted, denial, &judged).await;
                return Err(AccessRequestError::Denied(denial.reason.clone()));
            }
            Verdict::Escalate(escalation) => escalation.clone(),
        };
        let mut open = self.services.broker.open();
        let files = self.clone();
        let mut asking = tokio::spawn(async move {
            let asked = AskedByProgram { wanted, programs: Vec::new() };
            match files.question(&asked, &escalation, &judged, QuestionSubject::BeforeAccess(None)).await {
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
                        Some(why) => Err(AccessRequestError::Unasked(why)),
                        None => Ok(()),
                    };
                }
                // Ignore the result: the broker exists as long as this process.
                _ = open.changed() => {}
            }
        }
    }
}
