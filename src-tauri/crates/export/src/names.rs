//! Names of all exported data. Names from OpenTelemetry's semantic conventions are used where they exist.

/// Unique id of a record: the hash of the entry in the log.
pub const UID: &str = "log.record.uid";
/// Sequence number in the log.
pub const SEQ: &str = "ironcurtain.seq";
/// Method of the request.
pub const METHOD: &str = "mcp.method.name";
/// Id of the agent client's session.
pub const SESSION: &str = "mcp.session.id";
/// Name of the tool.
pub const TOOL: &str = "gen_ai.tool.name";
/// Operation: `execute_tool` for a tool call.
pub const OPERATION: &str = "gen_ai.operation.name";
/// Id shared by all entries about a call.
pub const CALL: &str = "gen_ai.tool.call.id";
/// Error class of a failed call.
pub const ERROR: &str = "error.type";
/// Host of a connection.
pub const HOST: &str = "server.address";
/// Port of the host.
pub const PORT: &str = "server.port";
/// Name of the agent client.
pub const CLIENT: &str = "ironcurtain.client.name";
/// Name of the server in the configuration.
pub const SERVER: &str = "ironcurtain.server.name";
/// Decision: `allow`, `escalate` or `deny`.
pub const DECISION: &str = "ironcurtain.decision";
/// Name of the rule that decided.
pub const RULE: &str = "ironcurtain.rule";
/// Kind of reason for the decision, such as a rule, a grant or an answer.
pub const GROUND: &str = "ironcurtain.decided_by";
/// Hash of the current policy, if it has changed since the previous decision.
pub const POLICY: &str = "ironcurtain.policy.hash";
/// Outcome of a question to the user.
pub const ANSWER: &str = "ironcurtain.answer";
/// Time until the user answered, in milliseconds.
pub const ANSWER_MS: &str = "ironcurtain.answer.duration_ms";
/// Outcome of an allowed call or connection.
pub const RESULT: &str = "ironcurtain.result";
/// Duration of the call in milliseconds.
pub const DURATION_MS: &str = "ironcurtain.duration_ms";
/// `true` if the server ran in a sandbox.
pub const SANDBOXED: &str = "ironcurtain.sandboxed";
/// Sequence number of the decision that an outcome belongs to.
pub const OF: &str = "ironcurtain.decision.seq";
/// Id of a question.
pub const QUESTION: &str = "ironcurtain.question.id";
/// Id of a grant.
pub const GRANT: &str = "ironcurtain.grant.id";
/// Affected paths, as configured: full, hashed or absent.
pub const PATHS: &str = "ironcurtain.paths";
/// Sequence number of the first lost entry.
pub const LOST_FIRST: &str = "ironcurtain.lost.first";
/// Sequence number of the last lost entry.
pub const LOST_LAST: &str = "ironcurtain.lost.last";
/// Hash of the entry before the first lost entry.
pub const LOST_AFTER: &str = "ironcurtain.lost.after";
/// Hash of the last lost entry.
pub const LOST_UNTIL: &str = "ironcurtain.lost.until";

/// Name of this program, a resource attribute.
pub const SERVICE: &str = "service.name";
/// Version of this program.
pub const SERVICE_VERSION: &str = "service.version";
/// Id of the device key that signs heads.
pub const INSTANCE: &str = "service.instance.id";

/// Prefix of all event names.
pub const EVENT_PREFIX: &str = "ironcurtain.";
/// Name of the event for a signed head.
pub const HEAD_EVENT: &str = "ironcurtain.head";
/// Name of the event for entries that were not exported.
pub const LOST_EVENT: &str = "ironcurtain.lost";

/// A metric whose exported name differs from the one in `ironcurtain metrics`.
#[derive(Debug)]
pub struct MetricName {
    /// Name in `ironcurtain metrics`.
    pub ours: &'static str,
    /// Exported name.
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Attributes added to every value.
    pub attributes: &'static [(&'static str, &'static str)],
}

/// Metrics that have a name in the semantic conventions.
pub const METRICS: [MetricName; 1] = [MetricName {
    ours: "ironcurtain_call_seconds",
    name: "mcp.server.operation.duration",
    unit: "s",
    attributes: &[(METHOD, "tools/call"), (OPERATION, "execute_tool")],
}];

#[cfg(test)]
mod tests {
    #[test]
    fn every_name_is_documented() {
        let page = include_str!("../../../../docs/reference/export-names.md");
        let source = include_str!("names.rs");
        let names = source.lines().filter_map(|line| line.strip_prefix("pub const ")?.split('"').nth(1));
        let missing: Vec<&str> = names.filter(|name| !page.contains(&format!("`{name}"))).collect();
        assert_eq!(missing, [""; 0]);
        let metrics = super::METRICS.iter().flat_map(|metric| [metric.ours, metric.name]);
        assert!(metrics.into_iter().all(|name| page.contains(&format!("`{name}`"))));
        // Events have no other attributes.
        let event = include_str!("event.rs");
        for call in ["text(\"", "id(\"", "number(\"", "push((\""] {
            assert!(!event.contains(call), "attributes are named by constants only");
        }
    }
}
