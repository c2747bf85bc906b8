//! Offer to repeat a request that is not a tool call. Pure.

use super::ALL_LIFETIMES;
use crate::{Offer, Reach};
use ironcurtain_policy::{JudgedRequest, Role, ToolUse};
use ironcurtain_visible as visible;

/// Maximum length of a value within a label, in characters. The effect line shows more of it.
const MAX_LEN: usize = 200;

/// Returns the offer that lets `client` repeat the request at `server` with the same values.
pub(super) fn request_offer(client: &str, server: &str, (request, tool): (JudgedRequest, &ToolUse)) -> Offer {
    let value = |role: Role| {
        let bound = tool.values().iter().find(|bound| bound.role == role)?;
        Some(visible::quoted(&visible::line(&visible::head(&bound.value, MAX_LEN))))
    };
    let resource = || format!("the resource {}", value(Role::ResourceUri).unwrap_or_default());
    let prompt = || format!("the prompt {}", value(Role::PromptName).unwrap_or_default());
    let (label, may, rest) = match request {
        JudgedRequest::ReadResource => ("this resource", format!("read {}", resource()), ""),
        JudgedRequest::SubscribeResource => ("this resource", format!("follow {}", resource()), ""),
        JudgedRequest::GetPrompt => {
            ("this prompt, with any arguments", format!("use {}", prompt()), ", with any arguments")
        }
        JudgedRequest::Complete => {
            let of = if value(Role::PromptName).is_some() { prompt() } else { resource() };
            let argument = value(Role::PromptArgument).unwrap_or_default();
            let may = format!("complete the argument {argument} of {of}");
            ("this argument, with any text", may, ", with any text")
        }
    };
    Offer {
        reach: Reach::Tool,
        label: label.to_owned(),
        sentence: format!("{client} may {may} of the server {server}{rest}"),
        lifetimes: ALL_LIFETIMES.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_policy::BoundValue;

    fn offer(request: JudgedRequest, values: &[(Role, &str)]) -> (String, String) {
        let bound = |(role, value): &(Role, &str)| BoundValue {
            argument: "a".to_owned(),
            role: *role,
            value: (*value).to_owned(),
        };
        let tool = ToolUse::new(request.name().to_owned(), values.iter().map(bound).collect());
        let offer = request_offer("claude", "notes", (request, &tool));
        (offer.label, offer.sentence)
    }

    #[test]
    fn a_request_offer_names_fixed_values_and_free_arguments() {
        let (label, sentence) = offer(JudgedRequest::ReadResource, &[(Role::ResourceUri, "notes://1")]);
        assert_eq!(label, "this resource");
        assert_eq!(sentence, "claude may read the resource notes://1 of the server notes");
        let (_, sentence) = offer(JudgedRequest::GetPrompt, &[(Role::PromptName, "greet")]);
        assert_eq!(sentence, "claude may use the prompt greet of the server notes, with any arguments");
        let of = [(Role::PromptName, "greet"), (Role::PromptArgument, "who")];
        assert_eq!(
            offer(JudgedRequest::Complete, &of).1,
            "claude may complete the argument who of the prompt greet of the server notes, with any text"
        );
    }
}
