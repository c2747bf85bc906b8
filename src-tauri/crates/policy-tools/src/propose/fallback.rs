//! Proposes a meaning for arguments to which no other rule applies, based on the tool's subject. Prefers the stricter
//! meaning.
//!
//! - A string without any evidence is [`Confidence::Unknown`], and the user must review it before it is saved.

use super::clues::{OPAQUE_WORDS, contains_word, mentions_files};
use super::context::{Argument, ToolContext};
use super::inference::Inference;
use super::{Confidence, by_name};

/// Words that suggest the network in descriptions of tools and arguments.
const NETWORK_WORDS: [&str; 14] = [
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
const VAGUE_WORDS: &str = "name value string text character char data content body description title label symbol parameter \
    param arg argument start end option method header word id find";

/// Returns the meaning suggested by the words in the argument's description and in the tool's.
pub(super) fn infer(context: &ToolContext, argument: &Argument<'_>) -> Inference {
    let mentions = |wanted: &[&str]| argument.description_has(wanted);
    if !context.is_service() && context.git.is_none() {
        if argument.description_words.iter().any(|word| mentions_files(word)) {
            return Inference::path(Confidence::Low, "its description mentions files or documents");
        }
        if mentions(&NETWORK_WORDS) {
            return address(context, "its description mentions an address");
        }
    }
    if let Some(word) = argument
        .description_words
        .iter()
        .find(|word| contains_word(OPAQUE_WORDS, word) && !contains_word(VAGUE_WORDS, word))
    {
        let reason = format!("its description mentions `{word}`, which does not name a judged resource");
        return Inference::none(Confidence::Low, reason);
    }
    if !context.is_service() && context.git.is_none() {
        if context.all_words.iter().any(|word| mentions_files(word)) {
            return Inference::path(Confidence::Low, "unclear; the tool mentions files or documents");
        }
        if context.all_words.iter().any(|word| NETWORK_WORDS.contains(&word.as_str())) {
            return address(context, "unclear; the tool mentions addresses");
        }
    }
    Inference::none(Confidence::Unknown, "no evidence of its meaning; as plain text it would not be judged")
}

fn address(context: &ToolContext, reason: &str) -> Inference {
    Inference::new(by_name::address_meaning(context), Confidence::Low, reason)
}
