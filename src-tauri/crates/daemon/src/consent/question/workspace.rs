//! A folder that an agent works in, proposed to the person at the beginning of its session. Pure.

use crate::consent::offers::tilde;
use crate::consent::principal::{Principal, shown_client};
use crate::consent::{Consequence, Lifetime, Offer, Piece, Question, Reach, Verb, visible};
use ironcurtain_paths::CanonicalPath;
use std::time::Duration;

/// The rule's name in questions about a workspace, which no rule of the policy asks.
pub const RULE: &str = "workspace";

/// A question about a workspace, in its parts.
#[derive(Debug)]
pub struct WorkspaceQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Who works there, with which server.
    pub principal: &'a Principal,
    /// The folder.
    pub folder: &'a CanonicalPath,
    /// The person's home.
    pub home: &'a CanonicalPath,
    /// Why it is taken for that, in words.
    pub why: &'static str,
    /// The time for which the question waits.
    pub deadline: Duration,
}

impl WorkspaceQuestion<'_> {
    /// The question, as the person sees it.
    #[must_use]
    pub fn build(self) -> Question {
        let client = shown_client(&self.principal.client_view());
        let server = visible::line(&self.principal.server);
        let folder = tilde(self.folder, self.home);
        let offer = |reach, verbs: &str| Offer {
            reach,
            label: format!("{folder}, to {verbs}"),
            sentence: format!(
                "{} may {verbs} everything in {folder} and below through the server {server}",
                client.name
            ),
            lifetimes: vec![Lifetime::Session, Lifetime::Always],
        };
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server_command: visible::line(&self.principal.server_command),
            sandboxed: self.principal.sandboxed,
            remote: self.principal.remote,
            tool: None,
            denial: format!("the proposal of {folder}"),
            consequences: vec![Consequence {
                verb: Verb::WorkIn,
                object: vec![Piece::Path(self.folder.as_str().to_owned())],
                note: None,
                asked_for: None,
                allowed: false,
            }],
            with: Vec::new(),
            also: vec![
                "A no is remembered, and listed with the grants; you can take it back there.".to_owned(),
            ],
            rule: RULE.to_owned(),
            reason: self.why.to_owned(),
            arguments: Vec::new(),
            preview: None,
            offers: vec![
                offer(Reach::ProjectToRead, "read"),
                offer(Reach::ProjectToChange, "read and write"),
            ],
            server,
            client,
            deadline: self.deadline,
        }
    }
}
