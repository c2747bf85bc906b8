//! Grounds on which a host is open without a list entry: a grant, a call in flight, a rule, or the list of a run.
//!
//! The proxy knows only ids. A grant's id has no space; the ids of the others begin with a word and a space.

/// Prefix of a call's id.
const CALL: &str = "call ";

/// Prefix of a rule's name.
const RULE: &str = "rule ";

/// Prefix of a pattern.
const LIST: &str = "list ";

/// Ground on which a host is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis<'a> {
    /// The grant with this id.
    Grant(&'a str),
    /// An approved call with this request id, while it is in flight.
    Call(&'a str),
    /// The policy rule with this name.
    Rule(&'a str),
    /// This pattern in the list of a run.
    List(&'a str),
}

impl<'a> Basis<'a> {
    /// Parses the id that the proxy knows.
    pub(super) fn of(id: &'a str) -> Self {
        let prefixed = |prefix, basis: fn(&'a str) -> Self| id.strip_prefix(prefix).map(basis);
        prefixed(CALL, Self::Call)
            .or_else(|| prefixed(RULE, Self::Rule))
            .or_else(|| prefixed(LIST, Self::List))
            .unwrap_or(Self::Grant(id))
    }

    /// Returns the id for the proxy.
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
