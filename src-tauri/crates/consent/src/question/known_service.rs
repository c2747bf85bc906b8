//! Names the services on this computer by their default ports, and describes the effects of connecting to them. Pure.

use crate::{Consequence, TextPart, Verb};

/// Reason shown in questions about a service on this computer.
pub(super) const LOCAL_REASON: &str = "This service runs outside the sandbox, with your rights.";

/// Default ports of services on a developer's computer.
const KNOWN: &[(u16, &str)] = &[
    (22, "the ssh server"),
    (631, "the print server"),
    (1433, "SQL Server"),
    (2375, "Docker"),
    (3306, "MySQL"),
    (5432, "PostgreSQL"),
    (5672, "RabbitMQ"),
    (6379, "Redis"),
    (6443, "Kubernetes"),
    (8888, "Jupyter"),
    (9200, "Elasticsearch"),
    (9222, "a browser's remote control"),
    (11211, "memcached"),
    (11434, "Ollama"),
    (27017, "MongoDB"),
];

/// Returns the name of the service that uses this port by default, or a generic name.
fn usual_service(port: u16) -> &'static str {
    KNOWN.iter().find(|(known, _)| *known == port).map_or("the service", |(_, name)| name)
}

/// Returns the effects of connecting to the service at a port, the worst first. `target` is the host and port as shown.
pub(super) fn service_effects(port: u16, target: &str) -> Vec<Consequence> {
    let service = TextPart::Fixed(usual_service(port));
    let lets =
        [TextPart::Fixed("anything that "), service.clone(), TextPart::Fixed(" lets your programs change")];
    let reached = [service, TextPart::Fixed(" on this computer, "), TextPart::Untrusted(target.to_owned())];
    vec![Consequence::new(Verb::Change, lets.into()), Consequence::new(Verb::Reach, reached.into())]
}
