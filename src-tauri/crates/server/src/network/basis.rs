//! Reasons why a host is reachable although no server entry lists it: a grant, an in-flight call, a policy rule, or a
//! run's host list.
//!
//! The proxy stores a reason as a grant id. Real grant ids contain no space; ids for the other reasons start with a
//! keyword and a space.

/// Keyword before the request id of a call.
const CALL: &str = "call ";

/// Keyword before the name of a rule.
const RULE: &str = "rule ";

/// Keyword before a pattern from a run's host list.
const LIST: &str = "list ";

/// Reason why a host is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis<'a> {
    /// Grant with this id.
    Grant(&'a str),
    /// Approval for the in-flight call with this request id.
    Call(&'a str),
    /// Policy rule with this name.
    Rule(&'a str),
    /// Pattern in a run's host list.
    List(&'a str),
}

impl<'a> Basis<'a> {
    /// Parses an id that the proxy stored.
    pub(super) fn of(id: &'a str) -> Self {
        let prefixed = |prefix, basis: fn(&'a str) -> Self| id.strip_prefix(prefix).map(basis);
        prefixed(CALL, Self::Call)
            .or_else(|| prefixed(RULE, Self::Rule))
            .or_else(|| prefixed(LIST, Self::List))
            .unwrap_or(Self::Grant(id))
    }

    /// Returns the id under which the proxy stores this reason.
    pub(super) fn id(self) -> String {
        match self {
            Self::Grant(id) => id.to_owned(),
            Self::Call(request) => format!("{CALL}{request}"),
            Self::Rule(name) => format!("{RULE}{name}"),
            Self::List(pattern) => format!("{LIST}{pattern}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_returns_what_it_was_made_from() {
        for basis in [Basis::Grant("a1b2"), Basis::Call("7"), Basis::Rule("r"), Basis::List("*.x.test:8443")]
        {
            assert_eq!(Basis::of(&basis.id()), basis);
        }
    }
}
