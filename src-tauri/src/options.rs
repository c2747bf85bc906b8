//! Command line of the app.

use crate::window::ARGUMENT;
use std::ffi::OsString;

/// Text printed by `--help`.
pub(crate) const HELP: &str = "\
IronCurtain: agents ask, you decide, the kernel enforces, and you can revoke it

Usage: ironcurtain-desktop [--background] [--allow-root]

  --background   start in the tray, without opening the window
  --allow-root   run as root, where sandboxes are weaker
  --version      print the version
  --help         print this text
";

/// Options of the app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppOptions {
    /// `true` to start without opening the window.
    pub background: bool,
    /// `true` to run even as root.
    pub allow_root: bool,
}

/// Parsed command line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    App(AppOptions),
    /// Run as the process of the settings window. Only the app itself requests this.
    Window,
    Help,
    Version,
}

/// Unknown command-line argument.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown option `{0}`; try `--help`")]
pub(crate) struct OptionError(String);

/// Parses the arguments after the program name.
pub(crate) fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Invocation, OptionError> {
    let mut options = AppOptions::default();
    for argument in arguments {
        match argument.to_str() {
            Some("--background") => options.background = true,
            Some("--allow-root") => options.allow_root = true,
            Some(ARGUMENT) => return Ok(Invocation::Window),
            Some("--help" | "-h") => return Ok(Invocation::Help),
            Some("--version" | "-V") => return Ok(Invocation::Version),
            Some(_) | None => return Err(OptionError(argument.to_string_lossy().into_owned())),
        }
    }
    Ok(Invocation::App(options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_options_and_rejects_unknown_arguments() {
        let given = |all: &[&str]| read(all.iter().map(OsString::from));
        assert_eq!(given(&[]), Ok(Invocation::App(AppOptions { background: false, allow_root: false })));
        assert_eq!(
            given(&["--background", "--allow-root"]),
            Ok(Invocation::App(AppOptions { background: true, allow_root: true }))
        );
        assert_eq!(given(&["--help"]), Ok(Invocation::Help));
        assert_eq!(given(&["--window"]), Ok(Invocation::Window));
        assert_eq!(given(&["-V"]), Ok(Invocation::Version));
        assert_eq!(given(&["--backgroud"]), Err(OptionError("--backgroud".into())));
    }
}
