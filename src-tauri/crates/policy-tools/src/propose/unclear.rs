//! Proposes a meaning for arguments to which no other rule applies, based on the tool's subject. Prefers the stricter
//! meaning.
//!
//! - A string without any evidence is [`Confidence::Unknown`], and the user must review it before it is saved.

use super::clues::{OPAQUE, is_in, mentions_files};
use super::context::{Argument, Setting};
use super::found::Found;
use super::{Confidence, named};

/// Words that suggest the network in descriptions of tools and arguments.
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

/// Words that do not count as evidence in a description. At the end of an argument's name, they indicate that it does
/// not name a resource.
const VAGUE: &str = "name value string text character char data content body description title label symbol parameter \
    param arg argument start end option method header word id find";

/// Returns the meaning suggested by the words in the argument's description and in the tool's.
pub(super) fn of(setting: &Setting, argument: &Argument<'_>) -> Found {
    let mentions = |wanted: &[&str]| argument.description_has(wanted);
    if !setting.is_service() && setting.git.is_none() {
        if argument.description_words.iter().any(|word| mentions_files(word)) {
            return Found::path(Confidence::Low, "its description mentions files or documents");
        }
        if mentions(&NETWORK) {
            return address(setting, "its description mentions an address");
        }
    }
    if let Some(word) =
        argument.description_words.iter().find(|word| is_in(OPAQUE, word) && !is_in(VAGUE, word))
    {
        let reason = format!("its description mentions `{word}`, which does not name a judged resource");
        return Found::none(Confidence::Low, reason);
    }
    if !setting.is_service() && setting.git.is_none() {
        if setting.all_words.iter().any(|word| mentions_files(word)) {
            return Found::path(Confidence::Low, "unclear; the tool mentions files or documents");
        }
        if setting.all_words.iter().any(|word| NETWORK.contains(&word.as_str())) {
            return address(setting, "unclear; the tool mentions addresses");
        }
    }
    Found::none(Confidence::Unknown, "no evidence of its meaning; as plain text it would not be judged")
}

fn address(setting: &Setting, reason: &str) -> Found {
    Found::new(named::address_meaning(setting), Confidence::Low, reason)
}
