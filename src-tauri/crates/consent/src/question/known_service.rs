//! Names of services, by the port that they use by default. Pure.

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
pub(super) fn usual_service(port: u16) -> &'static str {
    KNOWN.iter().find(|(known, _)| *known == port).map_or("the service", |(_, name)| name)
}
