//! Reasons why a host that no entry lists is reachable: a grant, an in-flight call, a policy rule, or the host list of
//! a run.
//!
//! The proxy stores them as grant ids. A real grant id contains no space; the others start with a keyword and a space.

/// Keyword before the request id of a call.
const CALL: &str = "call ";

/// Keyword before the name of a rule.
const RULE: &str = "rule ";

/// Keyword before a pattern of a run's host list.
const LIST: &str = "list ";

/// Reason why a host is reachable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis<'a> {
    /// A grant with this id.
    Grant(&'a str),
    /// An approval for the in-flight call with this request id.
    Call(&'a str),
    /// A policy rule with this name.
    Rule(&'a str),
    /// This pattern in the host list of a run.
    List(&'a str),
}

impl<'a> Basis<'a> {
    /// Parses an id from the proxy.
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
