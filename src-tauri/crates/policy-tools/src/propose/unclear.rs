//! Arguments for which no rule applies: the subject of the tool decides, and in doubt the stricter meaning.
//!
//! - A string without any evidence is [`Confidence::Unknown`] and must be reviewed before it is written.

use super::clues::{OPAQUE, is_in, speaks_of_files};
use super::context::{Argument, Setting};
use super::found::Found;
use super::{Confidence, named};

/// Words for the network, in descriptions of tools and arguments.
const NETWORK: [&str; 14] = [
    "url",
    "uri",
    "href",
    "link",
    "site",
    "website",
    "webpage",
    "webhook",
    "web",
    "http",
    "https",
    "endpoint",
    "hyperlink",
    "lien",
];

/// Words without a resource at the end of a name, and without evidence in a description.
const VAGUE: &str = "name value string text character char data content body description title label symbol parameter \
    param arg argument start end option method header word id find";

/// Returns the meaning of an argument from the words around it.
pub(super) fn of(setting: &Setting, argument: &Argument<'_>) -> Found {
    let said = |wanted: &[&str]| argument.is_said(wanted);
    if !setting.is_service() && setting.git.is_none() {
        if argument.said.iter().any(|word| speaks_of_files(word)) {
            return Found::path(Confidence::Low, "what is said of it speaks of files or documents");
        }
        if said(&NETWORK) {
            return address(setting, "what is said of it speaks of an address");
        }
    }
    if let Some(word) = argument.said.iter().find(|word| is_in(OPAQUE, word) && !is_in(VAGUE, word)) {
        let reason = format!("what is said of it speaks of `{word}`, which names nothing that is judged");
        return Found::none(Confidence::Low, reason);
    }
    if !setting.is_service() && setting.git.is_none() {
        if setting.said.iter().any(|word| speaks_of_files(word)) {
            return Found::path(Confidence::Low, "not clear; the tool speaks of files or documents");
        }
        if setting.said.iter().any(|word| NETWORK.contains(&word.as_str())) {
            return address(setting, "not clear; the tool speaks of addresses");
        }
    }
    Found::none(Confidence::Unknown, "nothing tells what it is; as plain text it would not be judged")
}

fn address(setting: &Setting, reason: &str) -> Found {
    Found::new(named::address_meaning(setting), Confidence::Low, reason)
}
