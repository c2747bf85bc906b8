//! The reach of a server beyond its session, as far as judging needs it.
//!
//! - Found out by the caller, from what the server was started with and what it is shown at that moment.

/// The reach of a server beyond its session: a fact of the moment, like the target of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServerReach {
    /// It runs in a sandbox, has no network, and is shown nothing but its program, the session's folder and the folder
    /// that it keeps its own data in.
    Nothing,
    /// It is shown or may reach something else.
    Something,
    /// Nobody can say right now. No rule that allows rests on it.
    #[default]
    Unknown,
}
