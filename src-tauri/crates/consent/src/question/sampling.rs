//! Builds the question about a server's `sampling/createMessage` request to the client. Pure.

use crate::principal::{Principal, shown_client};
use crate::{Consequence, Lifetime, Offer, Preview, Question, Reach, TextPart, Verb, binary};
use ironcurtain_visible as visible;
use serde_json::{Map, Value};
use std::time::Duration;

/// Rule name of these questions. No policy rule requires them, but the user is always asked.
pub const RULE: &str = "sampling";

/// Data needed to build a question about a sampling request.
#[derive(Debug)]
pub struct SamplingQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Server that sends the request and client that would run the model.
    pub principal: &'a Principal,
    /// Parameters of the `sampling/createMessage` request.
    pub params: &'a Map<String, Value>,
    /// Time without user activity after which the request is denied.
    pub deadline: Duration,
}

impl SamplingQuestion<'_> {
    /// Builds the question, which contains all text for the model.
    #[must_use]
    pub fn build(self) -> Question {
        let client = shown_client(&self.principal.client_view());
        let server = visible::line(&self.principal.server);
        let arguments = texts(self.params);
        let text: Vec<String> = arguments.iter().map(|(who, text)| format!("{who}: {text}")).collect();
        let offer = Offer {
            reach: Reach::Request,
            label: "this request".to_owned(),
            sentence: format!("{} may have its model answer this for the server {server}", client.name),
            lifetimes: vec![Lifetime::Once],
        };
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server_command: visible::line(&self.principal.server_command),
            sandboxed: self.principal.sandboxed,
            remote: self.principal.remote,
            tool: None,
            consequences: vec![Consequence::new(
                Verb::AskModel,
                vec![TextPart::Fixed("the server "), TextPart::Untrusted(server.clone())],
            )],
            with: Vec::new(),
            also: vec!["The server wrote this text and receives the model's answer.".to_owned()],
            denial: "sampling/createMessage".to_owned(),
            rule: RULE.to_owned(),
            reason: format!("the server {server} asks for this on its own"),
            preview: Some(Preview::Prompt(text.join("\n"))),
            arguments,
            offers: vec![offer],
            server,
            client,
            fits_a_batch: false,
            deadline: self.deadline,
            notice: None,
            host: None,
        }
    }
}

/// Returns the messages for the model with their roles, followed by the other parameters.
fn texts(params: &Map<String, Value>) -> Vec<(String, String)> {
    let mut all = Vec::new();
    if let Some(Value::String(system)) = params.get("systemPrompt") {
        all.push(("system".to_owned(), visible::lines(system)));
    }
    for message in params.get("messages").and_then(Value::as_array).into_iter().flatten() {
        let who = message.get("role").and_then(Value::as_str).unwrap_or("message");
        let content = message.get("content").unwrap_or(&Value::Null);
        let blocks = content.as_array().map_or_else(|| std::slice::from_ref(content), Vec::as_slice);
        all.extend(blocks.iter().map(|block| (visible::line(who), visible::lines(&block_text(block)))));
    }
    let shown = ["systemPrompt", "messages", "_meta"];
    let rest = params.iter().filter(|(name, _)| !shown.contains(&name.as_str()));
    all.extend(rest.map(|(name, value)| (visible::line(name), visible::lines(&value.to_string()))));
    all
}

/// Returns the text of a content block. For image or audio content, returns its claimed type, its size and its hash.
fn block_text(block: &Value) -> String {
    let text = |field: &str| block.get(field).and_then(Value::as_str);
    match (text("type"), text("text"), text("data")) {
        (Some("text"), Some(text), _) => text.to_owned(),
        (Some(kind), _, Some(data)) => {
            let claimed = format!("{kind}, {}", text("mimeType").unwrap_or("of no type"));
            binary::described_as(&claimed, data).unwrap_or_else(|| block.to_string())
        }
        _ => block.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::question;
    use ironcurtain_grants::Client;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn all_text_is_shown_with_its_role() {
        let long = "x".repeat(5000);
        let params = json!({
            "systemPrompt": "be\u{202e} good", "maxTokens": 10, "messages": [
                { "role": "user", "content": { "type": "text", "text": long } },
                { "role": "assistant", "content": [{ "type": "image", "mimeType": "image/png", "data": "iVBORw==" }] },
            ],
        });
        let principal = Principal {
            session: "s".into(),
            client: Client { key: "k".into(), view: question("q").client },
            claimed_name: Arc::default(),
            server: "notes".into(),
            server_command: "notes".into(),
            sandboxed: true,
            remote: false,
            is_new: false,
        };
        let got = SamplingQuestion {
            id: "q".into(),
            principal: &principal,
            params: params.as_object().unwrap(),
            deadline: Duration::from_secs(45),
        }
        .build();
        let shown: Vec<(&str, &str)> =
            got.arguments.iter().map(|(who, text)| (who.as_str(), text.as_str())).collect();
        let expected = [
            ("system", "be\\u{202e} good"),
            ("user", long.as_str()),
            (
                "assistant",
                "(image, image/png, 4 bytes, SHA-256 0f4636c78f65d3639ece5a064b5ae753e3408614a14fb18ab4d7540d2c248543)",
            ),
            ("maxTokens", "10"),
        ];
        assert_eq!(shown, expected);
        let Some(Preview::Prompt(text)) = &got.preview else { panic!() };
        assert!(text.contains(&long) && text.starts_with("system: be"));
        assert_eq!((got.tool, got.consequences[0].verb, got.offers.len()), (None, Verb::AskModel, 1));
        assert_eq!(got.offers[0].lifetimes, [Lifetime::Once]);
    }
}
