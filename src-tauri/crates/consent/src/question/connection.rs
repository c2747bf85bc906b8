//! Builds the question shown when a sandboxed program connects to a host or a local service. Performs no I/O.

use super::known_service::{LOCAL_REASON, service_effects};
use crate::offers::ALL_LIFETIMES;
use crate::principal::{Principal, shown_client};
use crate::{Consequence, Lifetime, Offer, Question, Reach, TextPart, Verb};
use ironcurtain_egress::HostPort;
use ironcurtain_policy::{HostConnection, RuleReason};
use ironcurtain_visible as visible;
use std::time::Duration;

/// Data needed to build a question about a connection.
#[derive(Debug)]
pub struct ConnectionQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Principal of the sandboxed program.
    pub principal: &'a Principal,
    /// Host and port that the program connects to.
    pub target: &'a HostPort,
    /// Rule that requires the question.
    pub by: &'a RuleReason,
    /// Time without user activity after which the connection is denied.
    pub deadline: Duration,
}

impl ConnectionQuestion<'_> {
    /// Builds the question.
    #[must_use]
    pub fn build(self) -> Question {
        let client = shown_client(&self.principal.client_view());
        let target = visible::line(&self.target.to_string());
        let reason = if self.is_local() { LOCAL_REASON } else { &self.by.reason };
        let offers = vec![Offer {
            reach: Reach::Host,
            label: if self.is_local() { "this port" } else { "this host and port" }.to_owned(),
            sentence: format!("{} may connect to {target}", client.name),
            lifetimes: std::iter::once(Lifetime::Once).chain(ALL_LIFETIMES).collect(),
        }];
        let consequences = self.consequences(&target);
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server: visible::line(&self.principal.server),
            server_command: visible::line(&self.principal.server_command),
            sandboxed: true,
            remote: false,
            tool: Some(HostConnection::NAME.to_owned()),
            consequences,
            with: Vec::new(),
            also: Vec::new(),
            denial: format!("reaching {target}"),
            rule: visible::line(&self.by.rule),
            reason: visible::line(reason),
            arguments: Vec::new(),
            preview: None,
            offers,
            client,
            fits_a_batch: false,
            deadline: self.deadline,
            notice: None,
            host: None,
        }
    }

    /// Returns the effects of the connection, worst first.
    fn consequences(&self, target: &str) -> Vec<Consequence> {
        let host = || TextPart::Untrusted(target.to_owned());
        if self.is_local() {
            return service_effects(self.target.port, target);
        }
        vec![
            Consequence::new(Verb::Send, vec![TextPart::Fixed("anything that it can read to "), host()]),
            Consequence::new(Verb::Reach, vec![host()]),
        ]
    }

    /// Returns `true` if the target is a service on this computer.
    fn is_local(&self) -> bool {
        self.target.host.is_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::question;
    use ironcurtain_grants::Client;
    use std::sync::Arc;

    fn asked(target: &str) -> Question {
        ConnectionQuestion {
            id: "q".into(),
            principal: &Principal {
                session: "s".into(),
                client: Client { key: "k".into(), view: question("q").client },
                claimed_name: Arc::default(),
                server: "run:claude".into(),
                server_command: "claude".into(),
                sandboxed: true,
                remote: false,
                is_new: false,
            },
            target: &HostPort::parse(target, None).unwrap(),
            by: &RuleReason::new("ask-before-connecting", "Sends data to the internet."),
            deadline: Duration::from_secs(45),
        }
        .build()
    }

    #[test]
    fn a_local_service_is_named_by_its_usual_port() {
        let of = |target| {
            let question = asked(target);
            (question.consequences, question.reason, question.offers[0].sentence.clone())
        };
        let ours = TextPart::Fixed;
        let lines = |service: &'static str, target: &str| {
            let reached =
                vec![ours(service), ours(" on this computer, "), TextPart::Untrusted(target.into())];
            let lets = vec![ours("anything that "), ours(service), ours(" lets your programs change")];
            vec![Consequence::new(Verb::Change, lets), Consequence::new(Verb::Reach, reached)]
        };
        let sentence = "claude may connect to localhost:5432".to_owned();
        let expected = (lines("PostgreSQL", "localhost:5432"), LOCAL_REASON.to_owned(), sentence);
        assert_eq!(of("localhost:5432"), expected);
        assert_eq!(of("localhost:4321").0, lines("the service", "localhost:4321"));
    }

    #[test]
    fn what_can_be_sent_comes_first() {
        let got = asked("B\u{fc}cher.example:443");
        let host = || TextPart::Untrusted("xn--bcher-kva.example:443".into());
        let expected = Question {
            server: "run:claude".into(),
            server_command: "claude".into(),
            tool: Some("network/connect".into()),
            consequences: vec![
                Consequence::new(Verb::Send, vec![TextPart::Fixed("anything that it can read to "), host()]),
                Consequence::new(Verb::Reach, vec![host()]),
            ],
            denial: "reaching xn--bcher-kva.example:443".into(),
            fits_a_batch: false,
            rule: "ask-before-connecting".into(),
            reason: "Sends data to the internet.".into(),
            offers: vec![Offer {
                reach: Reach::Host,
                label: "this host and port".into(),
                sentence: "claude may connect to xn--bcher-kva.example:443".into(),
                lifetimes: [vec![Lifetime::Once], ALL_LIFETIMES.to_vec()].concat(),
            }],
            ..question("q")
        };
        assert_eq!(got, expected);
    }
}
