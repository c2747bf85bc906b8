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
    Unknown(String),
    #[error("`{0}` requires a value")]
    NoValue(String),
    #[error("`{0}` takes no value")]
    Value(String),
    #[error("no command given; use `-c COMMAND`, or a program and its arguments")]
    Nothing,
    #[error("use either `-c COMMAND` or a program with arguments, not both")]
    Both,
    #[error("`--control-fd` is not supported: settings cannot change while the command runs")]
    ControlFd,
}

impl CommandArguments {
    /// Parses the arguments after the program name. The first argument that is not an option starts the command.
    pub fn read(words: Vec<String>) -> Result<Self, UsageError> {
        let mut read = Self {
            task: CommandTask::Help,
            settings: None,
            pass_env: PassedVariables::Named(vec![]),
            limited: true,
            allow_root: false,
            debug: false,
        };
        let mut line = None;
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next_if(|word| word.starts_with('-') && word != "-") {
            if word == "--" {
                break;
            }
            let (option, attached) = split(&word);
            let mut value =
                || attached.clone().or_else(|| words.next()).ok_or(UsageError::NoValue(option.clone()));
            match option.as_str() {
                "-s" | "--settings" => read.settings = Some(value()?.into()),
                "-c" => line = Some(value()?),
                "--pass-env" => read.pass_env.add(&value()?),
                "--control-fd" => return Err(UsageError::ControlFd),
                _ if attached.is_some() => return Err(UsageError::Value(option)),
                "-h" | "--help" => return Ok(read),
                "-V" | "--version" => return Ok(Self { task: CommandTask::Version, ..read }),
                "--no-limits" => read.limited = false,
                "--allow-root" => read.allow_root = true,
                "-d" | "--debug" => read.debug = true,
                _ => return Err(UsageError::Unknown(option)),
            }
        }
        let program: Vec<String> = words.collect();
        read.task = match (line, program) {
            (Some(line), none) if none.is_empty() => CommandTask::Run(CommandLine::Line(line)),
            (Some(_), _) => return Err(UsageError::Both),
            (None, none) if none.is_empty() => return Err(UsageError::Nothing),
            (None, program) => CommandTask::Run(CommandLine::Program(program)),
        };
        Ok(read)
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
fn split(word: &str) -> (String, Option<String>) {
    let owned = |(option, value): (&str, &str)| (option.to_owned(), Some(value.to_owned()));
    if word.starts_with("--") {
        return word.split_once('=').map_or((word.to_owned(), None), owned);
    }
    match word.split_at_checked(2) {
        Some((option, value)) if !value.is_empty() => owned((option, value)),
        _ => (word.to_owned(), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<CommandArguments, UsageError> {
        CommandArguments::read(line.split(' ').map(str::to_owned).collect())
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

    fn texts(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn options_end_at_the_program() {
        let program = |words| plain(CommandTask::Run(CommandLine::Program(texts(words))));
        assert_eq!(read("curl -s x -- y"), Ok(program(&["curl", "-s", "x", "--", "y"])));
        assert_eq!(read("-- -d"), Ok(program(&["-d"])));
        let line = CommandTask::Run(CommandLine::Line("x".into()));
        for written in ["-s f -c x", "-sf -cx", "--settings=f -c x", "--settings f -c x"] {
            assert_eq!(
                read(written),
                Ok(CommandArguments { settings: Some("f".into()), ..plain(line.clone()) })
            );
        }
        let all = "-d --allow-root --no-limits --pass-env A,B --pass-env C -c x";
        let pass_env = PassedVariables::Named(texts(&["A", "B", "C"]));
        let expected = CommandArguments {
            debug: true,
            allow_root: true,
            limited: false,
            pass_env,
            ..plain(line.clone())
        };
        assert_eq!(read(all), Ok(expected));
        assert_eq!(
            read("--pass-env=* --pass-env A -c x"),
            Ok(CommandArguments { pass_env: PassedVariables::All, ..plain(line) })
        );
        assert_eq!(read("-d --version").map(|read| read.task), Ok(CommandTask::Version));
        assert_eq!(read("--help").map(|read| read.task), Ok(CommandTask::Help));
    }

    #[test]
    fn unknown_options_are_named() {
        assert_eq!(read("-x"), Err(UsageError::Unknown("-x".into())));
        assert_eq!(read("--debug=1 -c x"), Err(UsageError::Value("--debug".into())));
        assert_eq!(read("-c"), Err(UsageError::NoValue("-c".into())));
        assert_eq!(read("-d"), Err(UsageError::Nothing));
        assert_eq!(read("-c x y"), Err(UsageError::Both));
        assert_eq!(read("--control-fd 3 -c x"), Err(UsageError::ControlFd));
    }
}
