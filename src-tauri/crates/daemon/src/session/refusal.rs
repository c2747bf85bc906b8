//! Reasons why a call is refused, written for the agent.

use super::pin_error::PinError;
use super::unusable_path::UnusablePath;
use ironcurtain_audit::AuditError;
use ironcurtain_consent::{ExchangeError, NotApproved, TooLongToShow};
use ironcurtain_egress::HostPort;
use ironcurtain_policy::{Denial, DeniedBy};
use ironcurtain_server::ServerError;
use rmcp::model::ContentBlock;
use serde_json::{Value, json};
use std::fmt::Display;

/// Prefixes a reason to mark it as a denial by IronCurtain.
pub(super) fn denied(why: impl Display) -> String {
    format!("DENIED: {why}")
}

/// Reason why a call is refused. The text is sent to the agent.
#[derive(Debug, thiserror::Error)]
pub(super) enum CallRefusal {
    /// The policy denies the call.
    #[error("{}", denial_text(.0))]
    Denied(Denial),
    /// The call names a host, but the server has no network access, so an approval would have no effect.
    #[error(
        "the server `{server}` has no network, so the user was not asked about `{host}`. To allow it, write `\"network\": {{ \"allowedDomains\": [\"{}\"] }}` into `sandbox` of its entry in `mcp-servers.json`.", .host.host
    )]
    NoNetwork {
        /// Name of the server.
        server: String,
        /// First host in the call.
        host: HostPort,
    },
    /// The call names a path that the server could not use even with an approval.
    #[error("{0}.")]
    UnusablePath(#[from] UnusablePath),
    /// The call contains more text than a question can show.
    #[error("{0}.")]
    TooLongToShow(#[from] TooLongToShow),
    /// The server changed the tool's definition, and the user has not decided on the change.
    #[error(
        "the server `{server}` changed its tool `{tool}`, so the tool is suspended. Please tell the user, who can decide under Servers in IronCurtain, or with: ironcurtain servers diff {server}"
    )]
    ToolChanged {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The server changed the tool's definition, and the user removed the tool.
    #[error("the user removed the tool `{tool}` of the server `{server}` after the server changed it.")]
    ToolRemoved {
        /// Name of the server.
        server: String,
        /// Name of the tool.
        tool: String,
    },
    /// The user has just accepted the tool's new definition, which the agent has not read.
    #[error(
        "The call was not sent, because the user has accepted a new definition of the tool `{tool}`. Read the list of tools again, then repeat the call if it still fits."
    )]
    ToolUpdated {
        /// Tool name.
        tool: String,
    },
    /// The pinned definitions could not be read.
    #[error("{0}.")]
    Pins(#[from] PinError),
    /// The user did not approve the call.
    #[error("{}", not_approved_text(.0))]
    NotApproved(NotApproved),
    /// The question could not be asked, or the resulting grant could not be stored.
    #[error("{0}")]
    Exchange(ExchangeError),
    /// The decision could not be recorded.
    #[error("{0}")]
    Audit(#[from] AuditError),
    /// The request for the server could not be serialized.
    #[error("{0}")]
    Serialize(#[from] serde_json::Error),
    /// The call's files or its permissions changed after the call was allowed.
    #[error(
        "the files named in this call, or the permissions for it, changed before the server got it. The same call can be tried again."
    )]
    Changed,
    /// The call's files changed while each question was pending.
    #[error("the files named in this call kept changing while the user was asked.")]
    KeptChanging,
    /// The call was allowed, but the server is not available.
    #[error("The call was allowed, but {0}.")]
    Server(#[from] ServerError),
}

impl From<NotApproved> for CallRefusal {
    fn from(why: NotApproved) -> Self {
        Self::NotApproved(why)
    }
}

impl From<ExchangeError> for CallRefusal {
    fn from(problem: ExchangeError) -> Self {
        match problem {
            ExchangeError::NotApproved(why) => Self::NotApproved(why),
            other @ (ExchangeError::QuestionId(_)
            | ExchangeError::NoOffer
            | ExchangeError::Audit(_)
            | ExchangeError::GrantId(_)
            | ExchangeError::Store(_)) => Self::Exchange(other),
        }
    }
}

impl CallRefusal {
    /// Returns a tool result that contains the refusal. It is valid in every protocol version with a handshake.
    pub(super) fn result(&self) -> Value {
        json!({ "content": [ContentBlock::text(self.text())], "isError": true })
    }

    /// Returns the text for the agent.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Denied(_)
            | Self::NoNetwork { .. }
            | Self::UnusablePath(_)
            | Self::TooLongToShow(_)
            | Self::ToolChanged { .. }
            | Self::ToolRemoved { .. }
            | Self::Pins(_)
            | Self::NotApproved(_)
            | Self::Exchange(_)
            | Self::Audit(_)
            | Self::Serialize(_)
            | Self::Changed
            | Self::KeptChanging => denied(self),
            // These are not denials.
            Self::Server(_) | Self::ToolUpdated { .. } => self.to_string(),
        }
    }
}

fn denial_text(denial: &Denial) -> String {
    match denial.by {
        // The user can change this, so the agent is not discouraged from trying again.
        DeniedBy::UnknownTool => denial.reason.to_string(),
        DeniedBy::ProtectedPath | DeniedBy::InvalidArgument | DeniedBy::Rule | DeniedBy::NoRule => {
            format!("{} (rule `{}`). Asking again will not change this.", denial.reason, denial.rule)
        }
    }
}

/// Returns the text for the agent, including advice on repeating the call.
fn not_approved_text(why: &NotApproved) -> String {
    match why {
        NotApproved::DeniedWithNote(note) => format!("the user denied this call with this note: {note}"),
        NotApproved::Denied => "the user denied this call.".to_owned(),
        NotApproved::Unavailable(why) => format!("{why}."),
        NotApproved::Closed => format!("{why}. The same call can be tried again."),
        NotApproved::TimedOut { .. } => {
            format!("{why}. The same call can be tried again when they are back.")
        }
        NotApproved::Stopped(_) | NotApproved::StillDenied { .. } => {
            format!("{why}. Trying again before then will not change this.")
        }
        NotApproved::TooMany { .. } => format!("{why}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_denials_and_server_failures_are_not() {
        let text = |refusal: CallRefusal| refusal.result()["content"][0]["text"].clone();
        assert_eq!(text(CallRefusal::NotApproved(NotApproved::Denied)), "DENIED: the user denied this call.");
        assert_eq!(
            text(CallRefusal::KeptChanging),
            "DENIED: the files named in this call kept changing while the user was asked."
        );
        assert_eq!(
            text(CallRefusal::Server(ServerError::SessionClosing)),
            "The call was allowed, but the session is closing."
        );
    }
}
