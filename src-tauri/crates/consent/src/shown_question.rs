//! A question as the user sees it: the effects of the call, its arguments, and the offers.
//!
//! - All text is plain and complete. A front end adds nothing and resolves nothing.

use crate::Preview;
use ironcurtain_grants::Lifetime;
use ironcurtain_policy::Verb;
use ironcurtain_protocol::ClientView;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One question as plain text, ready to show. Control and bidirectional characters are already escaped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// Question id.
    pub id: String,
    /// Name of the remote machine that asks, or `None` if the question is about this computer.
    pub host: Option<String>,
    /// Session id.
    pub session: String,
    /// Client whose call the question is about.
    pub client: ClientView,
    /// Server that would perform the call. Empty if the question is about no server.
    pub server: String,
    /// Command line of the server, shown in the details.
    pub server_command: String,
    /// `true` if the server runs in an OS sandbox.
    pub sandboxed: bool,
    /// `true` if the server is remote. A remote server is not sandboxed, and the call's data leaves this computer.
    pub remote: bool,
    /// Name of the tool, or `None` if the server makes the request itself.
    pub tool: Option<String>,
    /// Effects of the call, the worst first. The first effect is the headline. Never empty.
    pub consequences: Vec<Consequence>,
    /// Names and full values of the arguments that appear in no effect.
    pub with: Vec<(String, String)>,
    /// Additional effects of allowing the call, one sentence each, such as opening a folder to create a file. Never
    /// shortened.
    pub also: Vec<String>,
    /// Name of the rule that requires approval.
    pub rule: String,
    /// Reason that the rule gives.
    pub reason: String,
    /// All arguments as text, in order and in full, as they would be sent. Binary content is described.
    pub arguments: Vec<(String, String)>,
    /// The content that would be written, if any.
    pub preview: Option<Preview>,
    /// Offers that the user can choose from, the narrowest first. Never empty.
    pub offers: Vec<Offer>,
    /// Describes the calls to which a session-long denial would apply, such as "read_file in ~/docs".
    pub denial: String,
    /// `true` if the question can be allowed as part of a batch: the call is sandboxed, only reads or changes
    /// existing files, and needs no other access.
    pub fits_a_batch: bool,
    /// Time until the question is denied. Restarts while the user is active in the dialog.
    pub deadline: Duration,
    /// Warning that this daemon does not use the settings of the user's account, or `None`. Set by the broker.
    pub notice: Option<String>,
}

impl Question {
    /// Returns `true` if the question is about a server, or `false` if it is about a different desktop.
    #[must_use]
    pub fn has_server(&self) -> bool {
        !self.server.is_empty()
    }

    /// Returns `true` if both questions are about the same agent process, possibly with different servers.
    #[must_use]
    pub fn is_of_same_agent(&self, other: &Self) -> bool {
        let chain = &self.client.chain;
        self.session == other.session || !chain.is_empty() && *chain == other.client.chain
    }

    /// Returns `true` if this question can be allowed together with all questions in `batch`. Questions that change the
    /// same file cannot be allowed together, because each diff is against the current file.
    #[must_use]
    pub fn joins<'a>(&self, mut batch: impl Iterator<Item = &'a Self>) -> bool {
        let changes_the_same =
            |other: &Self| other.changed().any(|path| self.changed().any(|own| own == path));
        self.fits_a_batch
            && batch
                .all(|other| other.fits_a_batch && self.is_of_same_agent(other) && !changes_the_same(other))
    }

    fn changed(&self) -> impl Iterator<Item = &TextPart> {
        self.consequences
            .iter()
            .filter(|effect| effect.verb == Verb::Change)
            .flat_map(|effect| &effect.object)
    }
}

/// One effect of a call, such as "**push** main to `https://evil.example/x`".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consequence {
    /// First word of the line.
    pub verb: Verb,
    /// Object of the verb. Must not be shortened for display.
    pub object: Vec<TextPart>,
    /// State of the target before or after the call, such as "new file" or "replaces 12 kB".
    pub note: Option<String>,
    /// Path or name as the agent wrote it, if a symlink or a remote's name led to a different object.
    pub asked_for: Option<String>,
    /// Folder that a symlink in the path leads out of, or `None`.
    pub out_of: Option<String>,
    /// `true` if this effect does not need the user's approval.
    pub allowed: bool,
}

impl Consequence {
    /// Creates an effect without notes that needs the user's approval.
    #[must_use]
    pub fn new(verb: Verb, object: Vec<TextPart>) -> Self {
        Self { verb, object, note: None, asked_for: None, out_of: None, allowed: false }
    }
}

/// Part of a line. Only [`TextPart::Fixed`] is IronCurtain's own text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "text")]
pub enum TextPart {
    /// IronCurtain's own words, with surrounding spaces.
    #[serde(rename = "ours")]
    Fixed(&'static str),
    /// Canonical path, in full.
    Path(String),
    /// Text from the agent, such as an address, a name or a title.
    #[serde(rename = "foreign")]
    Untrusted(String),
}

/// Permission that the user can choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Offer {
    /// Extent of the offer.
    pub reach: Reach,
    /// Label, such as "this file" or "~/Documents/tax and below".
    pub label: String,
    /// Effect in one sentence, without the lifetime, such as "Claude Code may read everything in ~/Documents/tax".
    pub sentence: String,
    /// Available lifetimes, the shortest first. Never empty.
    pub lifetimes: Vec<Lifetime>,
}

/// Extent of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reach {
    /// Exactly the call's paths.
    Paths,
    /// The folders that contain the paths, and everything below them.
    Folders,
    /// The surrounding project, for reading.
    ProjectToRead,
    /// The surrounding project, for reading and changing.
    ProjectToChange,
    /// The surrounding folder, for changing. The folder is already open for reading.
    OpenFolderToChange,
    /// A host with a port.
    Host,
    /// A tool with fixed values for its meaningful arguments.
    Tool,
    /// A tool with any arguments.
    AnyUse,
    /// All of the server's tools that only read.
    ReadingTools,
    /// All of the server's tools.
    AllTools,
    /// Exactly this request to the server.
    Request,
    /// The new definition of a tool that its server changed.
    NewDefinition,
    /// The definition that the tool had before.
    OldDefinition,
    /// No definition: the tool is removed.
    NoDefinition,
}

impl Reach {
    /// Returns `true` for a decision about a tool's definition. Such a decision holds until the user changes it, and
    /// grants nothing.
    #[must_use]
    pub fn is_decision(self) -> bool {
        matches!(self, Self::NewDefinition | Self::OldDefinition | Self::NoDefinition)
    }
}
