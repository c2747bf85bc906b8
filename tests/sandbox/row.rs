//! The table's terms: one row is one way out of a sandbox, its permitted twin, and the visible effect on the host.
//!
//! Commands are shell scripts with these variables: `S` the scene's directory, which contains `W` the session sandbox
//! directory (also the working directory), `G` another writable root, `R` readable, `O` readable or missing, `D`
//! denied, and `H` the home; `L` the names of all autostart files, `K` of those that run from any folder; `P` the probe
//! program; `M` the text an attack writes, `T` the text a twin writes; `C` the claim; `V` and `A` the victim and the
//! address of its secret, `N` its message queue; and the variables of the listeners module.

use crate::scene::Scene;

/// The rows of a group and the environment that all of them need.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// A host process that must not be affected.
    pub(crate) victim: bool,
    /// Host sockets that must not be contacted.
    pub(crate) listeners: bool,
    /// A proxy with servers outside, in the suite's own network.
    pub(crate) proxied: bool,
    /// Autostart files in the writable directories.
    pub(crate) persistence: bool,
    pub(crate) rows: &'static [Row],
}

impl Group {
    /// Returns a group that needs nothing but its sandbox.
    pub(crate) const fn new(name: &'static str, rows: &'static [Row]) -> Self {
        Self { name, victim: false, listeners: false, proxied: false, persistence: false, rows }
    }
}

/// One way out and its permitted twin.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) attack: &'static str,
    pub(crate) twin: &'static str,
    pub(crate) works: Sign,
    pub(crate) bare: Bare,
    /// Minimum number of breaches without a sandbox.
    pub(crate) ways: usize,
    pub(crate) views: Views,
    pub(crate) terminal: bool,
    pub(crate) also: Option<fn(&Scene) -> Option<String>>,
}

/// The trace from which the host knows that a twin worked.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    /// The open secret, which only `$R/secret` contains, was printed.
    Said,
    /// A file in the scene contains the twin's mark.
    Wrote(&'static str),
    /// A custom check passes.
    Seen(fn(&Scene) -> bool),
}

/// The outcome of the attack without any sandbox, which proves that it works.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// It succeeds.
    Breaks,
    /// An ordinary user is not permitted to do this, or this system lacks the feature: the host sees no effect.
    Holds,
    /// It succeeds on systems that support it, and has no effect on others.
    Differs,
    /// It would harm the machine or the suite itself.
    Untried,
}

/// File system views in which the row makes sense.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Views {
    Both,
    HostRead,
    Roots,
}

impl Row {
    /// Creates a row with the usual terms.
    pub(crate) const fn new(
        name: &'static str,
        attack: &'static str,
        twin: &'static str,
        works: Sign,
    ) -> Self {
        let (bare, views) = (Bare::Breaks, Views::Both);
        Self { name, attack, twin, works, bare, ways: 1, views, terminal: false, also: None }
    }

    pub(crate) const fn bare(mut self, bare: Bare) -> Self {
        self.bare = bare;
        self
    }

    /// Sets the number of ways an attack tries, all of which work without a sandbox.
    pub(crate) const fn ways(mut self, ways: usize) -> Self {
        self.ways = ways;
        self
    }

    pub(crate) const fn only(mut self, views: Views) -> Self {
        self.views = views;
        self
    }

    /// Launches the row from a terminal.
    pub(crate) const fn in_terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Adds a check of the host that returns a breach, if any.
    pub(crate) const fn also(mut self, look: fn(&Scene) -> Option<String>) -> Self {
        self.also = Some(look);
        self
    }
}
