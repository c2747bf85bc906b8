//! The command line.

use std::ffi::OsString;

/// The command line, understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Open a session.
    Run(ShimOptions),
    /// Print this and stop.
    Say(String),
}

/// The session wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShimOptions {
    /// Name of the server in `mcp-servers.json`.
    pub server: Option<String>,
    /// Name of the profile in `config.json`.
    pub profile: Option<String>,
    /// The person's name for this entry.
    pub label: Option<String>,
}

const USAGE: &str = "usage: ironcurtain-shim [--server NAME | --profile NAME] [--label TEXT]\n\n\
    With --server the client has that server, with --profile those of a profile in config.json, and with neither all that\n\
    are enabled; the tools of several are called server__tool.\n\n\
    Launched by an agent client as an MCP server on standard input and output.\n\
    Every tool call goes through IronCurtain, which must be running or able to start.";

/// Why the command line is not understood.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    /// A word is no text.
    #[error("`{}` is not UTF-8", .0.display())]
    NotUtf8(OsString),
    /// A word is no argument.
    #[error("unknown argument `{0}`\n{USAGE}")]
    Unknown(String),
    /// An argument stands alone.
    #[error("`{0}` needs a value")]
    NoValue(String),
    /// A server and a profile are wanted.
    #[error("`--server` is one server and `--profile` several; write one of the two")]
    Both,
    /// An argument stands there again.
    #[error("`{0}` was given twice")]
    Twice(String),
}

/// Reads the command line.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, ArgumentError> {
    let mut wanted = ShimOptions::default();
    let mut arguments = arguments.map(|a| a.into_string().map_err(ArgumentError::NotUtf8));
    while let Some(argument) = arguments.next() {
        let argument = argument?;
        let slot = match argument.as_str() {
            "--server" => &mut wanted.server,
            "--profile" => &mut wanted.profile,
            "--label" => &mut wanted.label,
            "--help" | "-h" => return Ok(Invocation::Say(USAGE.to_owned())),
            "--version" | "-V" => {
                return Ok(Invocation::Say(format!("ironcurtain-shim {}", env!("CARGO_PKG_VERSION"))));
            }
            other => return Err(ArgumentError::Unknown(other.to_owned())),
        };
        let value = arguments.next().ok_or_else(|| ArgumentError::NoValue(argument.clone()))??;
        if slot.replace(value).is_some() {
            return Err(ArgumentError::Twice(argument));
        }
    }
    if wanted.server.is_some() && wanted.profile.is_some() {
        return Err(ArgumentError::Both);
    }
    Ok(Invocation::Run(wanted))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Invocation, String> {
        parse(line.iter().map(OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn names_a_server_and_a_label() {
        let wanted =
            ShimOptions { server: Some("filesystem".into()), profile: None, label: Some("Work".into()) };
        assert_eq!(parsed(&["--server", "filesystem", "--label", "Work"]), Ok(Invocation::Run(wanted)));
        let wanted = ShimOptions { profile: Some("work".into()), ..ShimOptions::default() };
        assert_eq!(parsed(&["--profile", "work"]), Ok(Invocation::Run(wanted)));
        assert_eq!(parsed(&[]), Ok(Invocation::Run(ShimOptions::default())));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        assert!(parsed(&["--sever", "x"]).unwrap_err().starts_with("unknown argument `--sever`"));
        assert_eq!(parsed(&["--server"]), Err("`--server` needs a value".into()));
        assert!(parsed(&["--server", "a", "--profile", "b"]).unwrap_err().contains("write one of the two"));
        assert_eq!(parsed(&["--label", "a", "--label", "b"]), Err("`--label` was given twice".into()));
    }
}
