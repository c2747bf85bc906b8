//! Builds the question about a folder or file that the agent works with. The user is asked when the session starts.
//! Pure.

use crate::offers::tilde;
use crate::principal::{Principal, shown_client};
use crate::{Consequence, Lifetime, Offer, Question, Reach, TextPart, Verb};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::GrantKind;
use ironcurtain_visible as visible;
use std::time::Duration;

/// Rule name of these questions. No policy rule requires them.
pub const RULE: &str = "workspace";

/// Evidence that the agent works with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceSource {
    /// The client's working directory, as reported by the kernel, is in this project.
    StartedIn,
    /// The client names the path, and the kernel confirms that the client's working directory is there.
    NamedAndStartedIn,
    /// The client names the path, but the kernel does not confirm it.
    Named,
    /// The server's entry in the client's settings names the path.
    Entry,
}

impl WorkspaceSource {
    /// Returns the reason displayed in the question.
    fn why(self) -> &'static str {
        match self {
            Self::StartedIn => "the agent was started in this project",
            Self::NamedAndStartedIn => "the agent says it works in this folder, and was started there",
            Self::Named => "the agent says it works in this folder; IronCurtain cannot confirm it",
            Self::Entry => "the server is configured to use this, but cannot see it unless you allow it",
        }
    }

    /// Returns the summary for the question's audit entry.
    #[must_use]
    pub fn on_record(self) -> &'static str {
        match self {
            Self::StartedIn | Self::NamedAndStartedIn | Self::Named => {
                "the user was asked about a folder that the agent works in"
            }
            Self::Entry => "the user was asked about a path in the server's entry",
        }
    }
}

/// Data needed to build a question about a workspace.
#[derive(Debug)]
pub struct WorkspaceQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Client that works with the path, and the client's server.
    pub principal: &'a Principal,
    /// Folder or file that the agent works with.
    pub path: &'a CanonicalPath,
    /// Kind of grant. A grant for a folder includes everything below it.
    pub kind: GrantKind,
    /// The user's home directory.
    pub home: &'a CanonicalPath,
    /// Evidence that the agent works with the path.
    pub source: WorkspaceSource,
    /// Offers for the project, in addition to the offers for the path.
    pub offered: &'a [Reach],
    /// Time without user activity after which access is denied.
    pub deadline: Duration,
}

impl WorkspaceQuestion<'_> {
    /// Builds the question.
    #[must_use]
    pub fn build(self) -> Question {
        let client = shown_client(&self.principal.client_view());
        let server = visible::line(&self.principal.server);
        let path = tilde(self.path, self.home);
        let all_of_it = match self.kind {
            GrantKind::Tree => format!("everything in {path} and below"),
            GrantKind::File => path.clone(),
        };
        let offer = |(reach, verbs): (Reach, &str)| Offer {
            reach,
            label: format!("{path}, to {verbs}"),
            sentence: format!("{} may {verbs} {all_of_it} through the server {server}", client.name),
            lifetimes: vec![Lifetime::Session, Lifetime::Always],
        };
        let all = [(Reach::ProjectToRead, "read"), (Reach::ProjectToChange, "read and write")];
        let offered = all.into_iter().filter(|(reach, _)| self.offered.contains(reach));
        let is_only_said = self.source == WorkspaceSource::Named;
        let only_said = "Only the agent says so. Deny unless you opened this folder in it.";
        let remembered = "If you deny, you are not asked again. You can undo it in the list of permissions.";
        let offers: Vec<Offer> = offered.map(offer).collect();
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server_command: visible::line(&self.principal.server_command),
            sandboxed: self.principal.sandboxed,
            remote: self.principal.remote,
            tool: None,
            denial: format!("working in {path}"),
            consequences: vec![Consequence {
                note: is_only_said.then(|| "unverified, only the agent says so".to_owned()),
                ..Consequence::new(Verb::WorkIn, vec![TextPart::Path(self.path.as_str().to_owned())])
            }],
            with: Vec::new(),
            also: is_only_said
                .then_some(only_said)
                .into_iter()
                .chain([remembered])
                .map(str::to_owned)
                .collect(),
            rule: RULE.to_owned(),
            reason: self.source.why().to_owned(),
            arguments: Vec::new(),
            preview: None,
            offers,
            server,
            client,
            fits_a_batch: false,
            deadline: self.deadline,
            notice: None,
            host: None,
        }
    }
}
