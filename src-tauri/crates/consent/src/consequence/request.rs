//! Builds the effect line for a request that is neither a tool call nor about a file.

use super::{CallEffects, ConsequenceLines, untrusted};
use crate::{Consequence, TextPart};
use ironcurtain_policy::{JudgedRequest, Resource, Role, Verb};

impl<'a> CallEffects<'a> {
    pub(super) fn request(&self, output: &mut ConsequenceLines<'a>) {
        let Some(request) = self.call.request() else { return };
        let mut text = |role: Role| {
            let given = self.call.values(role).next()?;
            let Resource::Text(text) = &given.value else { return None };
            output.arguments.push(self.call.argument(given));
            Some(untrusted(text))
        };
        let of_server = || [TextPart::Fixed(" of the server "), untrusted(self.call.server())];
        let (prompt, resource) = (text(Role::PromptName), text(Role::ResourceUri));
        let named = match (prompt, resource) {
            (Some(prompt), _) => [TextPart::Fixed("the prompt "), prompt],
            (None, Some(resource)) => [TextPart::Fixed("the resource "), resource],
            (None, None) => return,
        };
        let object: Vec<TextPart> = match (request, text(Role::PromptArgument)) {
            (JudgedRequest::Complete, Some(argument)) => {
                let argument = [TextPart::Fixed("the argument "), argument, TextPart::Fixed(" of ")];
                argument.into_iter().chain(named).chain(of_server()).collect()
            }
            (_, _) => named.into_iter().chain(of_server()).collect(),
        };
        output.lines.push(Consequence::new(verb(request), object));
    }
}

fn verb(request: JudgedRequest) -> Verb {
    match request {
        JudgedRequest::ReadResource => Verb::Read,
        JudgedRequest::SubscribeResource => Verb::Follow,
        JudgedRequest::GetPrompt => Verb::Use,
        JudgedRequest::Complete => Verb::Complete,
    }
}
