//! A folder that an agent works in, or a file that it works with, proposed to the person at the beginning of its session. Pure.

use crate::offers::{limit, tilde};
use crate::principal::{Principal, shown_client};
use crate::{Consequence, Lifetime, Offer, Piece, Question, Reach, Verb};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::GrantKind;
use ironcurtain_visible as visible;
use std::time::Duration;

/// The rule's name in questions about a workspace, which no rule of the policy asks.
pub const RULE: &str = "workspace";

/// The reason that a path is taken for one that an agent works with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkspaceSource {
    /// The kernel tells that the client was started in this project.
    StartedIn,
    /// The client names it, and was started in it as the kernel tells.
    NamedAndStartedIn,
    /// The client names it, and nothing else says so.
    Named,
    /// The server's entry names it.
    Entry,
}

impl WorkspaceSource {
    /// The reason, in words.
    fn why(self) -> &'static str {
        match self {
            Self::StartedIn => "the agent was started in this project",
            Self::NamedAndStartedIn => "the agent says that it works in this folder, and was started there",
            Self::Named => "the agent says that it works in this folder; nothing else says so",
            Self::Entry => "the server is set up to work with this; it is shown it only if you say so",
        }
    }

    /// The summary of the question's entry in the record.
    #[must_use]
    pub fn on_record(self) -> &'static str {
        match self {
            Self::StartedIn | Self::NamedAndStartedIn | Self::Named => {
                "a folder that the agent works in was proposed to the person"
            }
            Self::Entry => "what the server's entry names was proposed to the person",
        }
    }
}

/// A question about a workspace, in its parts.
#[derive(Debug)]
pub struct WorkspaceQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Who works there, with which server.
    pub principal: &'a Principal,
    /// The folder or file.
    pub path: &'a CanonicalPath,
    /// Its kind: of a folder, all below it is meant.
    pub kind: GrantKind,
    /// The person's home.
    pub home: &'a CanonicalPath,
    /// The reason that it is taken for that.
    pub source: WorkspaceSource,
    /// The reaches that the person may choose among: of work in a project.
    pub offered: &'a [Reach],
    /// The time for which the question waits.
    pub deadline: Duration,
}

impl WorkspaceQuestion<'_> {
    /// The question, as the person sees it.
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
        let only_said = "Only the agent itself says so: say no unless you have opened this folder in it.";
        let remembered = "A no is remembered, and listed with the grants; you can take it back there.";
        let mut offers: Vec<Offer> = offered.map(offer).collect();
        limit(&mut offers, self.principal);
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server_command: visible::line(&self.principal.server_command),
            sandboxed: self.principal.sandboxed,
            remote: self.principal.remote,
            tool: None,
            denial: format!("the proposal of {path}"),
            consequences: vec![Consequence {
                note: is_only_said.then(|| "by the agent's own word".to_owned()),
                ..Consequence::new(Verb::WorkIn, vec![Piece::Path(self.path.as_str().to_owned())])
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
        }
    }
}
