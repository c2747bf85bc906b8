//! Command-line arguments.

use std::ffi::OsString;

/// Parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub enum Invocation {
    /// Open a session.
    Run(ShimOptions),
    /// Print the help or version text and exit.
    Print(String),
}

/// Options for opening a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShimOptions {
    /// Value of `--server`: the name of a server in `mcp-servers.json`.
    pub server: Option<String>,
    /// Value of `--profile`: the name of a profile in `config.json`.
    pub profile: Option<String>,
    /// Name that the user gave to this entry in the client's configuration.
    pub label: Option<String>,
}

const USAGE: &str = "usage: ironcurtain-shim [--server NAME | --profile NAME] [--label TEXT]\n\n\
    Agent clients start this program as an MCP server on standard input and output. It passes every tool call through\n\
    IronCurtain, and starts IronCurtain if it is not running.\n\n\
    --server provides one server, --profile the servers of a profile in config.json, and neither option all enabled\n\
    servers. With several servers, tools are named server__tool.";

/// Invalid command line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentError {
    #[error("`{}` is not valid UTF-8", .0.display())]
    NotUtf8(OsString),
    #[error("unknown argument `{0}`\n{USAGE}")]
    Unknown(String),
    #[error("`{0}` requires a value")]
    NoValue(String),
    #[error("`--server` cannot be used with `--profile`; use one of them")]
    Both,
    #[error("`{0}` was given twice")]
    Twice(String),
}

/// Parses the command line.
pub fn parse(arguments: impl Iterator<Item = OsString>) -> Result<Invocation, ArgumentError> {
    let mut options = ShimOptions::default();
    let mut arguments = arguments.map(|a| a.into_string().map_err(ArgumentError::NotUtf8));
    while let Some(argument) = arguments.next() {
        let argument = argument?;
        let slot = match argument.as_str() {
            "--server" => &mut options.server,
            "--profile" => &mut options.profile,
            "--label" => &mut options.label,
            "--help" | "-h" => return Ok(Invocation::Print(USAGE.to_owned())),
            "--version" | "-V" => {
                return Ok(Invocation::Print(format!("ironcurtain-shim {}", env!("CARGO_PKG_VERSION"))));
            }
            other => return Err(ArgumentError::Unknown(other.to_owned())),
        };
        let value = arguments.next().ok_or_else(|| ArgumentError::NoValue(argument.clone()))??;
        if slot.replace(value).is_some() {
            return Err(ArgumentError::Twice(argument));
        }
    }
    if options.server.is_some() && options.profile.is_some() {
        return Err(ArgumentError::Both);
    }
    Ok(Invocation::Run(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &[&str]) -> Result<Invocation, String> {
        parse(line.iter().map(OsString::from)).map_err(|e| e.to_string())
    }

    #[test]
    fn parses_server_profile_and_label() {
        let options =
            ShimOptions { server: Some("filesystem".into()), profile: None, label: Some("Work".into()) };
        assert_eq!(parsed(&["--server", "filesystem", "--label", "Work"]), Ok(Invocation::Run(options)));
        let options = ShimOptions { profile: Some("work".into()), ..ShimOptions::default() };
        assert_eq!(parsed(&["--profile", "work"]), Ok(Invocation::Run(options)));
        assert_eq!(parsed(&[]), Ok(Invocation::Run(ShimOptions::default())));
    }

    #[test]
    fn errors_name_the_argument() {
        assert!(parsed(&["--sever", "x"]).unwrap_err().starts_with("unknown argument `--sever`"));
        assert_eq!(parsed(&["--server"]), Err("`--server` requires a value".into()));
        assert!(parsed(&["--server", "a", "--profile", "b"]).unwrap_err().contains("cannot be used with"));
        assert_eq!(parsed(&["--label", "a", "--label", "b"]), Err("`--label` was given twice".into()));
    }
}
