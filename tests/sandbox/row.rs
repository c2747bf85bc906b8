//! A row of the table: a way out of a sandbox, its permitted twin, and the effect that the host observes.
//!
//! Commands are shell scripts with these variables, and with those of the listeners module:
//!
//! - `S`: the scene's directory. It contains `W`, the session sandbox directory, which is also the working directory;
//!   `G`, another writable root; `R`, a readable directory; `O`, a directory that is readable or missing; `D`, a denied
//!   directory; and `H`, the home directory.
//! - `L`: the names of all autostart files. `K`: the names of autostart files that run from any folder.
//! - `P`: the probe program.
//! - `M`: the text that an attack writes. `T`: the text that a twin writes.
//! - `C`: the file in which an attack claims success.
//! - `into`: a function that creates the directory of a file.
//! - `V`: the victim's process id. `A`: the address of its secret. `N`: its message queue.

use crate::scene::Scene;

/// Rows of a group, and the parts of the scene that all of them need.
pub(crate) struct Group {
    pub(crate) name: &'static str,
    /// `true` if the rows need a host process that must not be affected.
    pub(crate) victim: bool,
    /// `true` if the rows need host sockets that must receive nothing.
    pub(crate) listeners: bool,
    /// `true` if the rows need a proxy and servers in the suite's own network.
    pub(crate) proxied: bool,
    /// `true` if the rows need autostart files in the writable directories.
    pub(crate) persistence: bool,
    pub(crate) rows: &'static [Row],
}

impl Group {
    /// Creates a group that needs only a sandbox.
    pub(crate) const fn new(name: &'static str, rows: &'static [Row]) -> Self {
        Self { name, victim: false, listeners: false, proxied: false, persistence: false, rows }
    }
}

/// A way out of the sandbox, and its permitted twin.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) attack: &'static str,
    pub(crate) twin: &'static str,
    pub(crate) works: Sign,
    pub(crate) bare: Bare,
    /// Minimum number of breaches that the attack causes without a sandbox.
    pub(crate) ways: usize,
    pub(crate) views: Views,
    /// `true` if a sandbox that may have its own unix sockets permits the attack by design.
    pub(crate) is_own_socket: bool,
    pub(crate) terminal: bool,
    pub(crate) also: Option<fn(&Scene) -> Option<String>>,
}

/// Evidence on the host that a twin had its effect.
#[derive(Clone, Copy)]
pub(crate) enum Sign {
    /// The twin printed the non-secret token, which only `$R/secret` contains.
    Said,
    /// This file of the scene contains the twin's text.
    Wrote(&'static str),
    /// This function returns `true`.
    Seen(fn(&Scene) -> bool),
}

/// Expected result of the attack without a sandbox, which shows that the attack works.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bare {
    /// The attack succeeds.
    Breaks,
    /// The attack has no effect, because an ordinary user lacks permission or this system lacks the feature.
    Holds,
    /// The attack succeeds only on systems that support it.
    Differs,
    /// The attack is not run, because it would harm the machine or the suite.
    Untried,
}

/// File system views for which the row is meaningful.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Views {
    Both,
    HostRead,
    Roots,
}

impl Row {
    /// Creates a row with the usual expectations.
    pub(crate) const fn new(
        name: &'static str,
        attack: &'static str,
        twin: &'static str,
        works: Sign,
    ) -> Self {
        let (bare, views) = (Bare::Breaks, Views::Both);
        Self {
            name,
            attack,
            twin,
            works,
            bare,
            ways: 1,
            views,
            is_own_socket: false,
            terminal: false,
            also: None,
        }
    }

    pub(crate) const fn bare(mut self, bare: Bare) -> Self {
        self.bare = bare;
        self
    }

    /// Sets the number of methods that the attack tries. All of them succeed without a sandbox.
    pub(crate) const fn ways(mut self, ways: usize) -> Self {
        self.ways = ways;
        self
    }

    pub(crate) const fn only(mut self, views: Views) -> Self {
        self.views = views;
        self
    }

    /// Excludes sandboxes that may have their own unix sockets in folders that only they can write to.
    pub(crate) const fn own_socket(mut self) -> Self {
        self.is_own_socket = true;
        self
    }

    /// Runs the row in a terminal.
    pub(crate) const fn in_terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Adds a check on the host that returns a breach if it finds one.
    pub(crate) const fn also(mut self, look: fn(&Scene) -> Option<String>) -> Self {
        self.also = Some(look);
        self
    }
}
