//! Verbs that describe a call's action in prompts.
//!
//! - Verbs are ordered by harm, least harmful first. A prompt shows a call's most harmful verb.
//! - The role registry assigns a verb to each role. A tool's name can imply a more specific verb.

use crate::words;

/// Action of a call, ordered from least to most harmful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// Lists the names in a folder.
    List,
    /// Reads content.
    Read,
    /// Subscribes to a resource's changes.
    Follow,
    /// Fetches data from the network.
    Fetch,
    /// Opens connections to a host.
    Reach,
    /// Requests a completion from the agent's model.
    AskModel,
    /// Requests completions for a partial value.
    Complete,
    /// Reads and writes a folder for the duration of the call.
    WorkIn,
    /// Creates a new file, folder or other object.
    Create,
    /// Writes a file or folder.
    Write,
    /// Changes parts of an existing file or object.
    Change,
    /// Changes a repository's history or references.
    Record,
    /// Adds a commit.
    Commit,
    /// Moves or renames a file or folder.
    Move,
    /// Uses a prompt or tool whose name does not reveal its effect.
    Use,
    /// Replaces existing content.
    Overwrite,
    /// Deletes a file, folder or other object.
    Delete,
    /// Removes references or commits from a repository.
    Forget,
    /// Publishes content to other people.
    Publish,
    /// Sends commits to a remote.
    Push,
    /// Sends commits to a remote and overwrites its history.
    ForcePush,
    /// Shares content with other people.
    Share,
    /// Sends a message to a recipient.
    Send,
    /// Signs with one of the user's keys.
    Sign,
    /// Writes an autostart file, which the user's programs run outside every sandbox.
    Plant,
    /// Runs a command or program.
    Run,
    /// Performs an unknown action, which may be harmful.
    Call,
}

/// Words in tool names that imply a verb.
const VERB_WORDS: [(Verb, &str); 12] = [
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

/// Words in tool names that are nouns as often as verbs. Used only if no word in `VERB_WORDS` matches.
const AMBIGUOUS_WORDS: [(Verb, &str); 6] = [
    (Verb::List, "tree"),
    (Verb::Read, "log diff status blame history"),
    (Verb::Commit, "commit"),
    (Verb::Publish, "post release comment"),
    (Verb::Share, "share invite"),
    (Verb::Send, "mail email message"),
];

impl Verb {
    /// Returns the verb as shown in prompts.
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
            Self::ForcePush => "force-push",
            Self::Share => "share",
            Self::Send => "send",
            Self::Sign => "sign",
            Self::Run => "run",
            Self::Use | Self::Call => "call",
        }
    }

    /// Returns the verb with the separator that precedes its object: "run: ", "read ".
    #[must_use]
    pub fn prefix(self) -> String {
        let separator = if self == Self::Run { ":" } else { "" };
        format!("{}{separator} ", self.word())
    }

    /// Returns the most harmful verb that a tool's name implies, or `None`.
    #[must_use]
    pub fn from_tool_name(name: &str) -> Option<Self> {
        let words = words::split_name(name);
        let strongest = |word_lists: &[(Self, &str)]| {
            let contains_word =
                |list: &str| list.split_ascii_whitespace().any(|known| words.iter().any(|w| w == known));
            word_lists.iter().filter(|(_, list)| contains_word(list)).map(|(verb, _)| *verb).max()
        };
        strongest(&VERB_WORDS).or_else(|| strongest(&AMBIGUOUS_WORDS))
    }

    /// Returns `true` if the verb changes nothing.
    #[must_use]
    pub fn is_read_only(self) -> bool {
        self <= Self::Fetch
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_name_gives_its_most_harmful_verb() {
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
            assert_eq!(Verb::from_tool_name(name), verb, "{name}");
        }
    }

    #[test]
    fn running_is_the_most_harmful_known_verb() {
        assert!(Verb::Run > Verb::Plant && Verb::Plant > Verb::Send && Verb::Call > Verb::Run);
        assert_eq!([Verb::Run.prefix(), Verb::Read.prefix()], ["run: ", "read "]);
    }

    #[test]
    fn reaching_others_is_more_harmful_than_staying_local() {
        let mut all =
            [Verb::Read, Verb::Send, Verb::Write, Verb::Delete, Verb::Push, Verb::Publish, Verb::Overwrite];
        all.sort_by_key(|verb| std::cmp::Reverse(*verb));
        let words: Vec<&str> = all.iter().map(|verb| verb.word()).collect();
        assert_eq!(words, ["send", "push", "publish", "delete", "replace", "write", "read"]);
    }
}
