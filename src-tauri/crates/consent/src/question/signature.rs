//! Builds the question about a signature by the user's ssh agent. Pure.

use crate::principal::{Principal, shown_client};
use crate::{Consequence, Lifetime, Offer, Question, Reach, TextPart, Verb};
use ironcurtain_visible as visible;
use std::time::Duration;

/// Rule name of these questions. No policy rule requires them.
pub const RULE: &str = "ssh-signature";

/// Tool name that these questions show.
pub const TOOL: &str = "ssh/sign";

/// Data needed to build a question about a signature.
#[derive(Debug)]
pub struct SignatureQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Program that requests the signature.
    pub principal: &'a Principal,
    /// The user's name for the key.
    pub key: &'a str,
    /// Fingerprint of the key.
    pub fingerprint: &'a str,
    /// Purpose of the signature.
    pub signed: SignedThing<'a>,
    /// Time without user activity after which the signature is denied.
    pub deadline: Duration,
}

/// Purpose of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedThing<'a> {
    /// Login to a host.
    Login {
        /// Account on the host.
        user: &'a str,
        /// Host to log in to.
        host: SignedHost<'a>,
    },
    /// Commit, file or other data, signed in this namespace.
    File(&'a str),
}

/// Host of a login, as far as it can be determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SignedHost<'a> {
    /// Host with these names in the user's `known_hosts` file.
    Named(&'a str),
    /// Host whose name is hashed in the user's `known_hosts` file. Contains the fingerprint of the host's key.
    Hashed(&'a str),
    /// Host that is not in the user's `known_hosts` file. Contains the fingerprint of the host's key.
    Stranger(&'a str),
    /// Unknown host. The signature can be used for any host that accepts the key.
    Unknown,
}

impl SignatureQuestion<'_> {
    /// Builds the question.
    #[must_use]
    pub fn build(self) -> Question {
        let client = shown_client(&self.principal.client_view());
        let key = visible::line(self.key);
        let (object, also) = self.signed.words();
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server: visible::line(&self.principal.server),
            server_command: visible::line(&self.principal.server_command),
            sandboxed: self.principal.sandboxed,
            remote: false,
            tool: Some(TOOL.to_owned()),
            consequences: vec![Consequence::new(Verb::Sign, object)],
            with: vec![("key".to_owned(), format!("{key} ({})", visible::line(self.fingerprint)))],
            also: vec![also.to_owned()],
            denial: "signatures of your ssh agent".to_owned(),
            rule: RULE.to_owned(),
            reason: "It is made by your ssh agent. The program cannot read the key.".to_owned(),
            preview: None,
            arguments: Vec::new(),
            offers: vec![Offer {
                reach: Reach::Request,
                label: "this signature".to_owned(),
                sentence: format!("{} may have this signed with the key {key}", client.name),
                lifetimes: vec![Lifetime::Once],
            }],
            client,
            fits_a_batch: false,
            deadline: self.deadline,
            notice: None,
            host: None,
        }
    }
}

impl SignedThing<'_> {
    /// Returns the object of the headline, and a sentence about the effect of the signature.
    fn words(self) -> (Vec<TextPart>, &'static str) {
        let foreign = |text: &str| TextPart::Untrusted(visible::line(text));
        match self {
            Self::Login { user, host } => {
                let mut object = vec![TextPart::Fixed("a login as "), foreign(user), TextPart::Fixed(" at ")];
                let also = match host {
                    SignedHost::Named(names) => {
                        object.push(foreign(names));
                        "The program can do anything there that this account can."
                    }
                    SignedHost::Hashed(key) => {
                        object.extend([TextPart::Fixed("a host of your known hosts, key "), foreign(key)]);
                        "The program can do anything there that this account can. The name of the host is hashed in your known hosts."
                    }
                    SignedHost::Stranger(key) => {
                        object.extend([TextPart::Fixed("a host that you do not know, key "), foreign(key)]);
                        "The key of this host is not in your known hosts: it may not be the host that the program names."
                    }
                    SignedHost::Unknown => {
                        object.push(TextPart::Fixed("a host that cannot be determined"));
                        "Any host that accepts your key may be meant."
                    }
                };
                (object, also)
            }
            Self::File("git") => (
                vec![TextPart::Fixed("a git commit or tag")],
                "It will carry your name. Its content cannot be shown.",
            ),
            Self::File(namespace) => (
                vec![TextPart::Fixed("a text for "), foreign(namespace)],
                "It will carry your name. Its content cannot be shown.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::question;
    use ironcurtain_grants::Client;
    use std::sync::Arc;

    #[test]
    fn the_key_and_the_host_are_named_and_only_one_signature_is_offered() {
        let principal = Principal {
            session: "s".into(),
            client: Client { key: "k".into(), view: question("q").client },
            claimed_name: Arc::default(),
            server: "run:claude".into(),
            server_command: "claude".into(),
            sandboxed: true,
            remote: false,
            is_new: false,
        };
        let asked = |signed| {
            let question = SignatureQuestion {
                id: "q".into(),
                principal: &principal,
                key: "me@\u{202e}home",
                fingerprint: "SHA256:abc",
                signed,
                deadline: Duration::from_secs(45),
            }
            .build();
            assert_eq!(question.with, [("key".to_owned(), "me@\\u{202e}home (SHA256:abc)".to_owned())]);
            assert_eq!((question.offers.len(), &*question.offers[0].lifetimes), (1, &[Lifetime::Once][..]));
            assert_eq!(question.consequences[0].verb, Verb::Sign);
            question.consequences[0].object.clone()
        };
        let login = |host| SignedThing::Login { user: "git", host };
        let at = |rest: Vec<TextPart>| {
            [
                vec![
                    TextPart::Fixed("a login as "),
                    TextPart::Untrusted("git".into()),
                    TextPart::Fixed(" at "),
                ],
                rest,
            ]
            .concat()
        };
        assert_eq!(
            asked(login(SignedHost::Named("a.example"))),
            at(vec![TextPart::Untrusted("a.example".into())])
        );
        let stranger = vec![
            TextPart::Fixed("a host that you do not know, key "),
            TextPart::Untrusted("SHA256:x".into()),
        ];
        assert_eq!(asked(login(SignedHost::Stranger("SHA256:x"))), at(stranger));
        let unknown = vec![TextPart::Fixed("a host that cannot be determined")];
        assert_eq!(asked(login(SignedHost::Unknown)), at(unknown));
        assert_eq!(asked(SignedThing::File("git")), [TextPart::Fixed("a git commit or tag")]);
        let file = [TextPart::Fixed("a text for "), TextPart::Untrusted("file".into())];
        assert_eq!(asked(SignedThing::File("file")), file);
    }
}
