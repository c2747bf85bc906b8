//! Command-line arguments of `daemon`.

use clap::{Args, ValueEnum};

/// Options of `daemon`.
#[derive(Debug, Args)]
pub struct DaemonArguments {
    /// Choose how you are asked about calls that no rule decides.
    #[arg(long, value_enum, default_value_t = Ask::Deny)]
    pub ask: Ask,
    /// Run even as root, for example in a container.
    #[arg(long)]
    pub allow_root: bool,
    /// Run in the background: return once IronCurtain is ready, and keep it running when the terminal is closed.
    #[arg(long)]
    pub detach: bool,
    /// Set when another program starts this one in the background and reads startup errors from standard error.
    #[arg(long, hide = true, conflicts_with = "detach")]
    pub background: bool,
}

/// Value of `daemon --ask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ask {
    /// Ask on this terminal.
    Terminal,
    /// Start the desktop app instead, which asks in a dialog. Without a desktop session, deny.
    Desktop,
    /// Do not ask: deny.
    Deny,
}
