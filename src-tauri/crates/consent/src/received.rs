//! Questions from remote machines, converted for this computer's dialog.
//!
//! - Nothing in such a question is trusted. This computer escapes and limits all strings itself, and shows the machine's
//!   name before the client's name.
//! - INVARIANT: a received question never looks like a local question: it names its host, contains no processes, gets
//!   its id and the prefix of its session id from this computer, and joins no batch.

use super::{Question, TextPart};
use ironcurtain_visible as visible;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::time::Duration;

/// Maximum number of effects and of offers in a received question.
const MAX_ITEMS: usize = 200;

/// Maximum length of a name in a received question, in characters.
const MAX_NAME_CHARS: usize = 80;

/// Maximum length of a string in a received question, in characters, except in [`LONG_FIELDS`] fields.
const MAX_TEXT_CHARS: usize = 4096;

/// Maximum total length of all strings in a received question, in bytes, excluding [`LONG_FIELDS`] fields.
const MAX_TEXTS_BYTES: usize = 256 * 1024;

/// Fields to which the limits for local calls apply instead.
const LONG_FIELDS: [&str; 4] = ["arguments", "preview", "server_command", "with"];

/// Maximum deadline of a received question.
const MAX_DEADLINE: Duration = Duration::from_secs(30 * 60);

/// Fields whose values may have several lines.
const MULTILINE_FIELDS: [&str; 3] = ["arguments", "preview", "with"];

/// Known values of [`TextPart::Fixed`]. Any other value is shown as untrusted text.
const KNOWN_TEXTS: [&str; 29] = [
    " ",
    " as ",
    " in ",
    " of ",
    " of the server ",
    " on GitHub",
    " on this computer, ",
    " to ",
    " with ",
    ", without arguments",
    ": ",
    "a git commit or tag",
    "a host of your known hosts, key ",
    "a host that cannot be determined",
    "a host that you do not know, key ",
    "a login as ",
    "a program that runs ",
    "a text for ",
    "anything that ",
    "anything that it can read to ",
    "at ",
    " at ",
    " lets your programs change",
    "the argument ",
    "the prompt ",
    "the resource ",
    "the server ",
    "to ",
    "who answers the remote machine's questions, with the code ",
];

/// Reason a received question is not shown.
#[derive(Debug, thiserror::Error)]
pub enum ReceivedError {
    /// The question is not JSON of the expected form.
    #[error("the question is malformed: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The question has no effects or offers, too many of either, or an offer without a lifetime.
    #[error("the question has no effects or offers, or more than {MAX_ITEMS}")]
    Items,
    /// A text or a list is too long.
    #[error(
        "the question is too long: a list of more than {MAX_ITEMS} items, a text of more than {MAX_TEXT_CHARS} \
         characters, or more than {} KiB of text", MAX_TEXTS_BYTES / 1024
    )]
    TooLong,
}

/// Parses and escapes questions received from a remote machine.
#[derive(Debug, Clone, Copy)]
pub struct QuestionReceiver<'a> {
    /// Name that the user gave to the machine.
    pub host: &'a str,
}

impl QuestionReceiver<'_> {
    /// Converts a question and assigns it this id.
    ///
    /// # Errors
    /// Returns [`ReceivedError`] if the question is malformed or exceeds a limit.
    pub fn question(self, json: &str, id: String) -> Result<Question, ReceivedError> {
        let mut value: Value = serde_json::from_str(json)?;
        let mut budget = MAX_TEXTS_BYTES;
        for (field, value) in value.as_object_mut().into_iter().flatten() {
            let field = field.as_str();
            if !LONG_FIELDS.contains(&field) {
                budget = remaining(value, budget).ok_or(ReceivedError::TooLong)?;
            }
            escape(value, MULTILINE_FIELDS.contains(&field));
        }
        let mut question: Question = serde_json::from_value(value)?;
        let is_answerable = question.offers.iter().all(|offer| !offer.lifetimes.is_empty());
        let counts = [question.consequences.len(), question.offers.len()];
        if !is_answerable || counts.iter().any(|count| !(1..=MAX_ITEMS).contains(count)) {
            return Err(ReceivedError::Items);
        }
        for offer in &mut question.offers {
            let mut seen = Vec::new();
            offer.lifetimes.retain(|lifetime| {
                let is_new = !seen.contains(lifetime);
                if is_new {
                    seen.push(*lifetime);
                }
                is_new
            });
        }
        if let Some(notice) = question.notice.take() {
            question.also.insert(0, format!("{}: {notice}", self.host));
        }
        let short = |text: &str| visible::head(text, MAX_NAME_CHARS);
        let client = &mut question.client;
        client.name = format!("{}: {}", self.host, short(&client.name));
        client.claimed_name = client.claimed_name.as_deref().map(short);
        client.label = client.label.as_deref().map(short);
        // The remote machine's processes must not be mistaken for local processes.
        client.chain.clear();
        question.session = format!("{}: {}", self.host, short(&question.session));
        question.server = short(&question.server);
        question.tool = question.tool.as_deref().map(short);
        question.deadline = question.deadline.min(MAX_DEADLINE);
        Ok(Question { id, host: Some(self.host.to_owned()), fits_a_batch: false, ..question })
    }
}

/// Returns the number of bytes left of `budget` after a value's strings, or `None` if the value is too long.
fn remaining(value: &Value, budget: usize) -> Option<usize> {
    match value {
        Value::String(text) if text.chars().count() > MAX_TEXT_CHARS => None,
        Value::String(text) => budget.checked_sub(text.len()),
        Value::Array(items) if items.len() > MAX_ITEMS => None,
        Value::Array(items) => items.iter().try_fold(budget, |budget, item| remaining(item, budget)),
        Value::Object(fields) => fields.values().try_fold(budget, |budget, field| remaining(field, budget)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Some(budget),
    }
}

/// Escapes all strings in a value.
fn escape(value: &mut Value, has_lines: bool) {
    match value {
        Value::String(text) => {
            *text = if has_lines { visible::lines(text) } else { visible::line(text) };
        }
        Value::Array(items) => items.iter_mut().for_each(|item| escape(item, has_lines)),
        Value::Object(fields) => fields.values_mut().for_each(|field| escape(field, has_lines)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A [`TextPart`] as received.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", tag = "is", content = "text")]
enum ReceivedPart {
    #[serde(rename = "ours")]
    Fixed(String),
    Path(String),
    #[serde(rename = "foreign")]
    Untrusted(String),
}

impl<'de> Deserialize<'de> for TextPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match ReceivedPart::deserialize(deserializer)? {
            ReceivedPart::Fixed(text) => match KNOWN_TEXTS.iter().find(|known| **known == text) {
                Some(known) => Self::Fixed(known),
                None => Self::Untrusted(text),
            },
            ReceivedPart::Path(path) => Self::Path(path),
            ReceivedPart::Untrusted(text) => Self::Untrusted(text),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::question;
    use ironcurtain_protocol::ProcessView;
    use serde_json::json;

    const DEVBOX: QuestionReceiver<'_> = QuestionReceiver { host: "devbox" };

    fn received(value: &Value) -> Result<Question, ReceivedError> {
        DEVBOX.question(&value.to_string(), "local".to_owned())
    }

    #[test]
    fn an_honest_question_arrives_with_its_machine() {
        let sent = question("q1");
        let got = received(&serde_json::to_value(&sent).unwrap()).unwrap();
        let mut expected = Question {
            id: "local".to_owned(),
            host: Some("devbox".to_owned()),
            session: "devbox: s".to_owned(),
            fits_a_batch: false,
            ..sent
        };
        expected.client.name = "devbox: claude".to_owned();
        assert_eq!(got, expected);
    }

    #[test]
    fn a_hostile_question_cannot_pass_for_one_of_this_computer() {
        let ours = question("local question");
        let mut value = serde_json::to_value(&ours).unwrap();
        value["host"] = Value::Null;
        value["id"] = "local question".into();
        value["client"]["name"] = format!("\u{202e}\n{}", "x".repeat(500)).into();
        value["client"]["chain"] = json!([ProcessView { pid: 1, exe: None, name: "claude".into() }]);
        value["notice"] = "all is well".into();
        value["consequences"][0]["object"] =
            json!([{ "is": "ours", "text": "nothing \u{200b}at all" }, { "is": "ours", "text": " to " }]);
        value["offers"][0]["sentence"] = "yes\nreally".into();
        value["preview"] = json!({ "kind": "content", "text": "a\n\u{1b}[2Kb" });
        value["deadline"] = json!({ "secs": u64::MAX, "nanos": 0 });
        let got = received(&value).unwrap();
        assert_eq!(got.host.as_deref(), Some("devbox"));
        assert_eq!((got.id.as_str(), got.session.as_str()), ("local", "devbox: s"));
        assert!(got.client.name.starts_with("devbox: \\u{202e}\\u{a}xxx"), "{}", got.client.name);
        assert!(got.client.name.chars().count() < 130);
        assert!(got.client.chain.is_empty() && !got.is_of_same_agent(&ours));
        assert!(!got.joins([&ours].into_iter()) && !ours.joins([&got].into_iter()));
        assert_eq!((got.notice, got.also[0].as_str()), (None, "devbox: all is well"));
        let shown = [TextPart::Untrusted("nothing \\u{200b}at all".to_owned()), TextPart::Fixed(" to ")];
        assert_eq!(got.consequences[0].object, shown);
        assert_eq!(got.offers[0].sentence, "yes\\u{a}really");
        assert_eq!(got.preview.unwrap().text(), "a\n\\u{1b}[2Kb");
        assert_eq!(got.deadline, MAX_DEADLINE);
    }

    #[test]
    fn a_question_that_cannot_be_answered_is_refused() {
        let value = serde_json::to_value(question("q")).unwrap();
        let with = |field: &str, to: Value| {
            let mut value = value.clone();
            value[field] = to;
            received(&value).unwrap_err().to_string()
        };
        let items = ReceivedError::Items.to_string();
        assert_eq!(with("offers", json!([])), items);
        assert_eq!(with("consequences", json!([])), items);
        let many = vec![value["offers"][0].clone(); MAX_ITEMS + 1];
        assert_eq!(with("offers", many.into()), ReceivedError::TooLong.to_string());
        let mut empty = value["offers"][0].clone();
        empty["lifetimes"] = json!([]);
        assert_eq!(with("offers", json!([empty])), items);
        assert!(with("unknown", json!(1)).contains("unknown field `unknown`"));
    }

    #[test]
    fn a_question_that_is_too_long_is_refused() {
        let value = serde_json::to_value(question("q")).unwrap();
        let with = |field: &str, to: Value| {
            let mut value = value.clone();
            value[field] = to;
            received(&value)
        };
        let refused = |field: &str, to: Value| {
            assert!(matches!(with(field, to), Err(ReceivedError::TooLong)), "{field}");
        };
        let text = |length: usize| Value::from("x".repeat(length));
        assert!(with("also", vec![""; MAX_ITEMS].into()).is_ok());
        refused("also", vec![""; MAX_ITEMS + 1].into());
        assert!(with("reason", text(MAX_TEXT_CHARS)).is_ok());
        refused("reason", text(MAX_TEXT_CHARS + 1));
        refused("also", vec![text(MAX_TEXT_CHARS); MAX_TEXTS_BYTES / MAX_TEXT_CHARS].into());
        assert!(
            with("also", vec![text(MAX_TEXT_CHARS); MAX_TEXTS_BYTES / MAX_TEXT_CHARS / 2].into()).is_ok()
        );
        assert!(with("arguments", json!([["content", text(MAX_TEXT_CHARS + 1)]])).is_ok());
        let mut offer = value["offers"][0].clone();
        let lifetime = offer["lifetimes"][0].clone();
        offer["lifetimes"] = vec![lifetime.clone(); MAX_ITEMS].into();
        assert_eq!(with("offers", json!([offer])).unwrap().offers[0].lifetimes.len(), 1);
        offer["lifetimes"] = vec![lifetime; MAX_ITEMS + 1].into();
        refused("offers", json!([offer]));
    }

    #[test]
    fn every_text_of_ours_is_known() {
        let sources = [
            include_str!("consequence.rs"),
            include_str!("consequence/called.rs"),
            include_str!("consequence/request.rs"),
            include_str!("question/connection.rs"),
            include_str!("question/known_service.rs"),
            include_str!("question/sampling.rs"),
            include_str!("question/signature.rs"),
        ];
        let texts = sources.iter().flat_map(|source| source.split("TextPart::Fixed(\"").skip(1));
        let texts: Vec<&str> = texts.map(|rest| rest.split('"').next().unwrap()).collect();
        assert!(texts.len() > 20);
        let unknown: Vec<&&str> = texts.iter().filter(|text| !KNOWN_TEXTS.contains(text)).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }
}
