//! The verbs of a question: what a call does to what it names, in the words that people read.
//!
//! - Ordered by harm, the least first. A call is shown by its worst.
//! - The registry of roles gives each role its verb; the name of a tool can say which of several it is.

use crate::words;

/// An action of a call, the least harmful first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Looks what names there are.
    List,
    /// Looks into it.
    Read,
    /// Is told when it changes.
    Follow,
    /// Takes it from the network.
    Fetch,
    /// Opens connections to a host.
    Reach,
    /// Has the agent's model answer.
    AskModel,
    /// Sends the beginning of a text, to be told how it may go on.
    Complete,
    /// Reads and writes there for as long as it works.
    WorkIn,
    /// Makes something that was not there.
    Create,
    /// Writes it.
    Write,
    /// Changes parts of it.
    Change,
    /// Changes the history of a repository.
    Record,
    /// Adds a commit to it.
    Commit,
    /// Takes it from where it is to another place.
    Move,
    /// Does what only the tool itself knows.
    Use,
    /// Puts something else in its place.
    Overwrite,
    /// Takes it away.
    Delete,
    /// Takes away from the history of a repository.
    Forget,
    /// Puts it where others see it.
    Publish,
    /// Sends commits to a remote.
    Push,
    /// Lets somebody else have it.
    Share,
    /// Sends it to somebody.
    Send,
    /// Writes a file that the user's own programs run, outside every sandbox.
    Plant,
    /// Runs it as a command or as a program.
    Run,
    /// Does what nobody has said: perhaps the worst.
    Call,
}

/// Words of names of tools, and what they say.
const SAID: [(Verb, &str); 12] = [
    (Verb::List, "list ls"),
    (
        Verb::Read,
        "read get show view search find stat info describe count query lookup browse grep glob inspect compare check \
        verify",
    ),
    (Verb::Fetch, "fetch pull clone download retrieve"),
    (Verb::Create, "create make mkdir new add init touch generate"),
    (Verb::Write, "write save put copy cp export dump extract"),
    (Verb::Change, "edit update append modify insert change apply patch refactor fix prepend set merge"),
    (Verb::Move, "move mv rename relocate"),
    (Verb::Overwrite, "overwrite replace truncate restore reset"),
    (
        Verb::Delete,
        "delete remove rm rmdir purge unlink trash erase wipe prune drop destroy discard clear clean",
    ),
    (Verb::Publish, "publish upload submit deploy attach"),
    (Verb::Push, "push"),
    (Verb::Send, "send reply forward notify"),
];

/// Words that name things as often as deeds: heard only where no other is.
const PERHAPS: [(Verb, &str); 6] = [
    (Verb::List, "tree"),
    (Verb::Read, "log diff status blame history"),
    (Verb::Commit, "commit"),
    (Verb::Publish, "post release comment"),
    (Verb::Share, "share invite"),
    (Verb::Send, "mail email message"),
];

impl Verb {
    /// The word people read.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::List => "list the names in",
            Self::Read => "read",
            Self::Follow => "follow",
            Self::Fetch => "fetch",
            Self::Reach => "reach",
            Self::AskModel => "ask its model for",
            Self::Complete => "complete",
            Self::WorkIn => "work in",
            Self::Create => "create",
            Self::Write | Self::Plant => "write",
            Self::Change => "change",
            Self::Record => "update git's records in",
            Self::Commit => "commit",
            Self::Move => "move",
            Self::Overwrite => "replace",
            Self::Delete => "delete",
            Self::Forget => "delete from the history of",
            Self::Publish => "publish",
            Self::Push => "push",
            Self::Share => "share",
            Self::Send => "send",
            Self::Run => "run",
            Self::Use | Self::Call => "call",
        }
    }

    /// The word with what joins it to its object: "run: ", "read ".
    #[must_use]
    pub fn lead(self) -> String {
        let joint = if self == Self::Run { ":" } else { "" };
        format!("{}{joint} ", self.word())
    }

    /// The action that the name of a tool tells of: the worst, where it tells of several.
    #[must_use]
    pub fn of_tool(name: &str) -> Option<Self> {
        let words = words::of(name);
        let heard = |said: &[(Self, &str)]| {
            let known =
                |list: &str| list.split_ascii_whitespace().any(|known| words.iter().any(|w| w == known));
            said.iter().filter(|(_, list)| known(list)).map(|(verb, _)| *verb).max()
        };
        heard(&SAID).or_else(|| heard(&PERHAPS))
    }

    /// Returns `true` if it changes nothing.
    #[must_use]
    pub fn only_looks(self) -> bool {
        self <= Self::Fetch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_tool_says_the_worst_of_what_it_says() {
        for (name, verb) in [
            ("git_push", Some(Verb::Push)),
            ("git_commit", Some(Verb::Commit)),
            ("git_pull", Some(Verb::Fetch)),
            ("list_commits", Some(Verb::List)),
            ("get_release", Some(Verb::Read)),
            ("moveFile", Some(Verb::Move)),
            ("edit_file", Some(Verb::Change)),
            ("find_and_delete", Some(Verb::Delete)),
            ("send_email", Some(Verb::Send)),
            ("share_document", Some(Verb::Share)),
            ("create_pull_request", Some(Verb::Create)),
            ("frobnicate", None),
        ] {
            assert_eq!(Verb::of_tool(name), verb, "{name}");
        }
    }

    #[test]
    fn what_runs_is_the_worst_that_is_known() {
        assert!(Verb::Run > Verb::Plant && Verb::Plant > Verb::Send && Verb::Call > Verb::Run);
        assert_eq!([Verb::Run.lead(), Verb::Read.lead()], ["run: ", "read "]);
    }

    #[test]
    fn what_reaches_others_is_worse_than_what_stays_here() {
        let mut all =
            [Verb::Read, Verb::Send, Verb::Write, Verb::Delete, Verb::Push, Verb::Publish, Verb::Overwrite];
        all.sort_by_key(|verb| std::cmp::Reverse(*verb));
        let words: Vec<&str> = all.iter().map(|verb| verb.word()).collect();
        assert_eq!(words, ["send", "push", "publish", "delete", "replace", "write", "read"]);
    }
}
