//! Builds the question about a host that a server wants to reach, and the offer for the hosts that a call names. Pure.

use super::known_service::{LOCAL_REASON, service_effects};
use crate::offers::{ALL_LIFETIMES, join_words};
use crate::principal::{Principal, shown_client};
use crate::{Consequence, Lifetime, Offer, Question, Reach, TextPart, Verb};
use ironcurtain_egress::HostPort;
use ironcurtain_visible as visible;
use std::time::Duration;

/// Rule name of these questions. The network settings require them, not a policy rule.
pub const RULE: &str = "network.askUnknown";

/// Data needed to build a question about a host.
#[derive(Debug)]
pub struct HostQuestion<'a> {
    /// Question id.
    pub id: String,
    /// Server that wants to reach the host, with its client.
    pub principal: &'a Principal,
    /// Host and port that the server wants to reach.
    pub target: &'a HostPort,
    /// Time without user activity after which the connection is denied.
    pub deadline: Duration,
}

impl HostQuestion<'_> {
    /// Builds the question.
    #[must_use]
    pub fn build(self) -> Question {
        let client = shown_client(&self.principal.client_view());
        let server = visible::line(&self.principal.server);
        let target = visible::line(&self.target.to_string());
        let hosts = std::slice::from_ref(self.target);
        let mut offers: Vec<Offer> = standing(&client.name, &server, hosts).into_iter().collect();
        for offer in &mut offers {
            offer.lifetimes.insert(0, Lifetime::Once);
        }
        let (consequences, reason) = match self.target.host.is_local() {
            true => (service_effects(self.target.port, &target), LOCAL_REASON.to_owned()),
            false => (
                vec![Consequence::new(Verb::Reach, vec![TextPart::Untrusted(target.clone())])],
                format!("this host is not yet allowed for the server {server}"),
            ),
        };
        Question {
            id: self.id,
            session: self.principal.session.clone(),
            server_command: visible::line(&self.principal.server_command),
            // Only sandboxed servers use the proxy that asks this question.
            sandboxed: true,
            remote: false,
            tool: None,
            consequences,
            with: Vec::new(),
            also: Vec::new(),
            denial: format!("reaching {target}"),
            rule: RULE.to_owned(),
            reason,
            arguments: Vec::new(),
            preview: None,
            offers,
            server,
            client,
            fits_a_batch: false,
            deadline: self.deadline,
            notice: None,
            host: None,
        }
    }
}

/// Returns the offer that lets `server` reach the hosts for longer than one call. Returns `None` if there are no
/// hosts.
#[must_use]
pub fn standing(client: &str, server: &str, hosts: &[HostPort]) -> Option<Offer> {
    let mut names: Vec<String> = hosts.iter().map(|host| visible::line(&host.to_string())).collect();
    names.dedup();
    let label = match names.len() {
        0 => return None,
        1 => "this host and port".to_owned(),
        n => format!("these {n} hosts"),
    };
    Some(Offer {
        reach: Reach::Host,
        label,
        sentence: format!("{client} may reach {} through the server {server}", join_words(&names)),
        lifetimes: ALL_LIFETIMES.to_vec(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::question;
    use ironcurtain_grants::Client;
    use std::sync::Arc;

    #[test]
    fn a_host_question_names_the_host_client_and_server() {
        let got = HostQuestion {
            id: "q".into(),
            principal: &Principal {
                session: "s".into(),
                client: Client { key: "k".into(), view: question("q").client },
                claimed_name: Arc::default(),
                server: "fetch".into(),
                server_command: "npx fetch".into(),
                sandboxed: true,
                remote: false,
                is_new: false,
            },
            target: &HostPort::parse("B\u{fc}cher.example:443", None).unwrap(),
            deadline: Duration::from_secs(45),
        }
        .build();
        let expected = Question {
            server: "fetch".into(),
            server_command: "npx fetch".into(),
            tool: None,
            consequences: vec![Consequence {
                verb: Verb::Reach,
                object: vec![TextPart::Untrusted("xn--bcher-kva.example:443".into())],
                ..question("q").consequences[0].clone()
            }],
            denial: "reaching xn--bcher-kva.example:443".into(),
            fits_a_batch: false,
            rule: "network.askUnknown".into(),
            reason: "this host is not yet allowed for the server fetch".into(),
            offers: vec![Offer {
                reach: Reach::Host,
                label: "this host and port".into(),
                sentence: "claude may reach xn--bcher-kva.example:443 through the server fetch".into(),
                lifetimes: [vec![Lifetime::Once], ALL_LIFETIMES.to_vec()].concat(),
            }],
            ..question("q")
        };
        assert_eq!(got, expected);
    }

    #[test]
    fn hosts_of_a_call_can_be_offered_for_longer() {
        let hosts = ["a.test:443", "b.test:80"].map(|text| HostPort::parse(text, None).unwrap());
        assert_eq!(standing("claude", "fetch", &[]), None);
        let expected = Offer {
            reach: Reach::Host,
            label: "these 2 hosts".into(),
            sentence: "claude may reach a.test:443 and b.test:80 through the server fetch".into(),
            lifetimes: ALL_LIFETIMES.to_vec(),
        };
        assert_eq!(standing("claude", "fetch", &hosts), Some(expected));
    }
}
