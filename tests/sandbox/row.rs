//! The table's terms: one row is one way out of a sandbox, its allowed twin, and what is to be seen on the host.
//!
//! Commands are shell scripts. They find these variables: `S` the scene's directory, and in it `W` the session sandbox
//! directory (also the working directory), `G` another writable root, `R` readable, `O` readable or not there at all,
//! `D` denied, `H` the home; `L` the names of all files that run later, `K` of those that do so in any folder; `P` the probe program; `M` what an attack writes, `T` what a twin writes; `C` the claim;
//! `V` and `A` the victim and where it keeps its secret, `N` its message queue; and the listeners', see there.

use crate::scene::Scene;

/// The rows of a group, and the surroundings that all of them need.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// A process of the host's that is not to be touched.
    pub(crate) victim: bool,
    /// Sockets of the host's that are not to hear anything.
    pub(crate) listeners: bool,
    /// A proxy, with servers outside. In a network of the suite's own.
    pub(crate) proxied: bool,
    /// Persistence files in the writable directories.
    pub(crate) persistence: bool,
    pub(crate) rows: &'static [Row],
}

/// One way out, and its allowed twin.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) attack: &'static str,
    pub(crate) twin: &'static str,
    pub(crate) works: Sign,
    pub(crate) bare: Bare,
    /// The number of breaches it makes without a sandbox at least.
    pub(crate) ways: usize,
    pub(crate) views: Views,
    pub(crate) terminal: bool,
    pub(crate) also: Option<fn(&Scene) -> Option<String>>,
}

/// The trace by which the host sees that a twin has worked.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    /// The open secret, which only `$R/secret` has, came out.
    Said,
    /// A file below the scene has the twin's mark in it.
    Wrote(&'static str),
    /// Something else.
    Seen(fn(&Scene) -> bool),
}

/// The outcome of the attack without any sandbox, which shows that it is one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// It gets through.
    Breaks,
    /// An ordinary user may not do this anyway, or this system has no such thing: the host sees nothing of it either.
    Holds,
    /// It gets through where the system offers it; where not, the host sees nothing of it. Distributions differ.
    Differs,
    /// It would harm the machine or the suite itself.
    Untried,
}

/// In which views of the file system the row makes sense.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Views {
    Both,
    HostRead,
    Roots,
}

impl Row {
    /// A row with the usual terms.
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

    /// An attack that tries so many things, all of which work without a sandbox.
    pub(crate) const fn ways(mut self, ways: usize) -> Self {
        self.ways = ways;
        self
    }

    pub(crate) const fn only(mut self, views: Views) -> Self {
        self.views = views;
        self
    }

    /// Launched from a terminal.
    pub(crate) const fn in_terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// A further look at the host: what is wrong there, if anything.
    pub(crate) const fn also(mut self, look: fn(&Scene) -> Option<String>) -> Self {
        self.also = Some(look);
        self
    }
}
