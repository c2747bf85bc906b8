//! Command line of `ironcurtain-sandbox`.

use std::path::PathBuf;

pub const HELP: &str = "\
usage: ironcurtain-sandbox [OPTIONS] -c COMMAND
       ironcurtain-sandbox [OPTIONS] [--] PROGRAM [ARGUMENT...]
       ironcurtain-sandbox --check [--json] [--allow-root]

Runs a command in a sandbox configured by an srt settings file, and exits with the command's status.

  -s, --settings FILE  settings file; default: ~/.srt-settings.json, or nothing allowed if that does not exist
  -c COMMAND           run this shell command line; PROGRAM is run without a shell
  --pass-env NAMES     also pass these environment variables, separated by commas; '*' passes all
                       (always passed: PATH, HOME, LANG, LC_*, TERM, USER and a few similar ones)
  --no-limits          do not limit memory, processes and open files
  --allow-root         run even as root, when some kernel files are protected by mounts only
  -d, --debug          log the sandbox's setup and its connections to standard error
  --check              check whether this machine can create sandboxes, and print how to fix what is missing
  -h, --help           print this help
  -V, --version        print the version

Exit status: 125 if the command was not run, 126 if it cannot be run, 127 if it was not found, 128 + n if signal n
terminated it.
";

/// Parsed command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandArguments {
    pub task: CommandTask,
    pub settings: Option<PathBuf>,
    pub pass_env: PassedVariables,
    pub limited: bool,
    pub allow_root: bool,
    pub debug: bool,
}

/// Task that the command line requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandTask {
    Help,
    Version,
    Run(CommandLine),
}
/// Command to run in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandLine {
    /// Command line for the shell.
    Line(String),
    /// Program with its arguments, run without a shell.
    Program(Vec<String>),
}

/// Environment variables to pass on in addition to the default ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassedVariables {
    Named(Vec<String>),
    All,
}

/// Reason a command line is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UsageError {
    #[error("unknown option `{0}`; run with `--help` to list the options")]
    UnknownOption(String),
    #[error("`{0}` requires a value")]
    MissingValue(String),
    #[error("`{0}` takes no value")]
    UnexpectedValue(String),
    #[error("no command given; use `-c COMMAND`, or a program and its arguments")]
    NoCommand,
    #[error("use either `-c COMMAND` or a program with arguments, not both")]
    CommandAndProgram,
    #[error("`--control-fd` is not supported: settings cannot change while the command runs")]
    ControlFd,
}

impl CommandArguments {
    /// Parses the arguments after the program name. The first argument that is not an option starts the command.
    pub fn parse(arguments: Vec<String>) -> Result<Self, UsageError> {
        let mut parsed = Self {
            task: CommandTask::Help,
            settings: None,
            pass_env: PassedVariables::Named(vec![]),
            limited: true,
            allow_root: false,
            debug: false,
        };
        let mut shell_line = None;
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next_if(|argument| argument.starts_with('-') && argument != "-")
        {
            if argument == "--" {
                break;
            }
            let (option, attached) = split_option(&argument);
            let mut value = || {
                attached.clone().or_else(|| arguments.next()).ok_or(UsageError::MissingValue(option.clone()))
            };
            match option.as_str() {
                "-s" | "--settings" => parsed.settings = Some(value()?.into()),
                "-c" => shell_line = Some(value()?),
                "--pass-env" => parsed.pass_env.add(&value()?),
                "--control-fd" => return Err(UsageError::ControlFd),
                _ if attached.is_some() => return Err(UsageError::UnexpectedValue(option)),
                "-h" | "--help" => return Ok(parsed),
                "-V" | "--version" => return Ok(Self { task: CommandTask::Version, ..parsed }),
                "--no-limits" => parsed.limited = false,
                "--allow-root" => parsed.allow_root = true,
                "-d" | "--debug" => parsed.debug = true,
                _ => return Err(UsageError::UnknownOption(option)),
            }
        }
        let program: Vec<String> = arguments.collect();
        parsed.task = match (shell_line, program) {
            (Some(shell_line), empty) if empty.is_empty() => CommandTask::Run(CommandLine::Line(shell_line)),
            (Some(_), _) => return Err(UsageError::CommandAndProgram),
            (None, empty) if empty.is_empty() => return Err(UsageError::NoCommand),
            (None, program) => CommandTask::Run(CommandLine::Program(program)),
        };
        Ok(parsed)
    }
}

impl PassedVariables {
    fn add(&mut self, names: &str) {
        match self {
            Self::All => {}
            Self::Named(_) if names.split(',').any(|name| name == "*") => *self = Self::All,
            Self::Named(known) => known.extend(names.split(',').map(str::to_owned)),
        }
    }
}

/// Splits an option from its attached value, as in `--name=value` and `-nvalue`.
fn split_option(argument: &str) -> (String, Option<String>) {
    let with_value = |(option, value): (&str, &str)| (option.to_owned(), Some(value.to_owned()));
    if argument.starts_with("--") {
        return argument.split_once('=').map_or((argument.to_owned(), None), with_value);
    }
    match argument.split_at_checked(2) {
        Some((option, value)) if !value.is_empty() => with_value((option, value)),
        _ => (argument.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(shell_line: &str) -> Result<CommandArguments, UsageError> {
        CommandArguments::parse(shell_line.split(' ').map(str::to_owned).collect())
    }

    fn plain(task: CommandTask) -> CommandArguments {
        CommandArguments {
            task,
            settings: None,
            pass_env: PassedVariables::Named(vec![]),
            limited: true,
            allow_root: false,
            debug: false,
        }
    }

    fn texts(arguments: &[&str]) -> Vec<String> {
        arguments.iter().map(|argument| (*argument).to_owned()).collect()
    }

    #[test]
    fn options_end_at_the_program() {
        let program = |arguments| plain(CommandTask::Run(CommandLine::Program(texts(arguments))));
        assert_eq!(parse("curl -s x -- y"), Ok(program(&["curl", "-s", "x", "--", "y"])));
        assert_eq!(parse("-- -d"), Ok(program(&["-d"])));
        let shell_line = CommandTask::Run(CommandLine::Line("x".into()));
        for written in ["-s f -c x", "-sf -cx", "--settings=f -c x", "--settings f -c x"] {
            assert_eq!(
                parse(written),
                Ok(CommandArguments { settings: Some("f".into()), ..plain(shell_line.clone()) })
            );
        }
        let all = "-d --allow-root --no-limits --pass-env A,B --pass-env C -c x";
        let pass_env = PassedVariables::Named(texts(&["A", "B", "C"]));
        let expected = CommandArguments {
            debug: true,
            allow_root: true,
            limited: false,
            pass_env,
            ..plain(shell_line.clone())
        };
        assert_eq!(parse(all), Ok(expected));
        assert_eq!(
            parse("--pass-env=* --pass-env A -c x"),
            Ok(CommandArguments { pass_env: PassedVariables::All, ..plain(shell_line) })
        );
        assert_eq!(parse("-d --version").map(|parsed| parsed.task), Ok(CommandTask::Version));
        assert_eq!(parse("--help").map(|parsed| parsed.task), Ok(CommandTask::Help));
    }

    #[test]
    fn unknown_options_are_named() {
        assert_eq!(parse("-x"), Err(UsageError::UnknownOption("-x".into())));
        assert_eq!(parse("--debug=1 -c x"), Err(UsageError::UnexpectedValue("--debug".into())));
        assert_eq!(parse("-c"), Err(UsageError::MissingValue("-c".into())));
        assert_eq!(parse("-d"), Err(UsageError::NoCommand));
        assert_eq!(parse("-c x y"), Err(UsageError::CommandAndProgram));
        assert_eq!(parse("--control-fd 3 -c x"), Err(UsageError::ControlFd));
    }
}
