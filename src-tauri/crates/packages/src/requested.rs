//! Parses the package runner's command line in an entry of `mcp-servers.json`. No I/O.
//!
//! - An unknown option is an error that names it.
//! - A package must come from a registry: a path, a URL or a repository is an error.

use ironcurtain_config::Server;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Package that an entry requests, and the program to run from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestedPackage {
    /// Registry that publishes the package.
    pub registry: Registry,
    /// Package name in the registry, with the scope or the extras.
    pub package: String,
    /// Exact version, or `None` for the newest version at installation time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Program to run, or `None` for the package's default program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// Additional requirements (`uvx --with`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
}

/// Package registry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Registry {
    /// npm registry.
    Npm,
    /// Python Package Index.
    Pypi,
}

/// Parsed command line of a package runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunnerCommand {
    /// Package that the command line requests.
    pub requested: RequestedPackage,
    /// Index of the argument that names the package, or `None` if that argument cannot be replaced.
    pub position: Option<usize>,
    /// Arguments that the runner passes to the program.
    pub rest: Vec<String>,
}

/// Failure to parse a package runner's command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// The option is the last argument, so its package name is missing.
    #[error("the option `{0}` requires a package name")]
    OptionWithoutPackage(String),
    /// The option is not supported.
    #[error("the option `{option}` of `{runner}` is not supported (argument {number})")]
    UnknownOption {
        /// Option as written.
        option: String,
        /// Name of the package runner.
        runner: &'static str,
        /// Position of the argument, counted from 1.
        number: usize,
    },
    /// An option names the package, but no argument names the program.
    #[error("the command line of `{0}` names a package, but no program to run from it")]
    NoProgram(&'static str),
    /// No argument names a package.
    #[error("the command line of `{0}` names no package")]
    NoPackage(&'static str),
    /// The argument is a path, a URL, a repository or a version range.
    #[error("`{}` is not the name of a package in a registry, with or without a version", .0.escape_default())]
    NotAPackage(String),
    /// The value of `--with` is not a requirement.
    #[error("invalid requirement `{}`; expected a package name with version bounds, such as `mcp<2`", .0.escape_default())]
    NotARequirement(String),
    /// The program name contains a character other than letters, digits, `-`, `_` and `.`, or starts with `-` or `.`.
    #[error("invalid program name `{}`", .0.escape_default())]
    NotAProgram(String),
}

impl Registry {
    /// Returns the registry's name as used in paths and messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::Pypi => "pypi",
        }
    }
}

impl RequestedPackage {
    /// Returns the package name with `version`, as its runner expects it (`NAME@VERSION` or `NAME==VERSION`).
    #[must_use]
    pub fn package_spec(&self, version: Option<&str>) -> String {
        match (self.registry, version) {
            (_, None) => self.package.clone(),
            (Registry::Npm, Some(version)) => format!("{}@{version}", self.package),
            (Registry::Pypi, Some(version)) => format!("{}=={version}", self.package),
        }
    }
}

impl fmt::Display for RequestedPackage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.package_spec(self.version.as_deref()))
    }
}

impl RunnerCommand {
    /// Parses the command line of an entry. Returns `None` if the command is not a package runner.
    ///
    /// # Errors
    /// Returns a [`RequestError`] if an argument is not supported.
    pub fn parse(server: &Server) -> Result<Option<Self>, RequestError> {
        let program = server.command.rsplit('/').next().unwrap_or_default();
        let args = server.args.iter().map(String::as_str).enumerate().collect::<Vec<_>>();
        match (program, args.as_slice()) {
            ("npx", args) => npx(args).map(Some),
            ("uvx", args) | ("uv", [(_, "tool"), (_, "run"), args @ ..]) => uvx(args).map(Some),
            _ => Ok(None),
        }
    }
}

type Arguments<'a> = [(usize, &'a str)];

fn npx(args: &Arguments<'_>) -> Result<RunnerCommand, RequestError> {
    let line = parse_runner_line("npx", args, &["-y", "--yes", "-q", "--quiet"], &["-p", "--package"], &[])?;
    let (name, version) = npm_package(line.package)?;
    line.into_command(Registry::Npm, name, version)
}

fn uvx(args: &Arguments<'_>) -> Result<RunnerCommand, RequestError> {
    let line = parse_runner_line("uvx", args, &["-q", "--quiet"], &["--from"], &["--with"])?;
    let (package, version) = python_package(line.package)?;
    line.into_command(Registry::Pypi, package, version)
}

/// A package runner's arguments, sorted by meaning but not yet validated.
struct RunnerLine<'a> {
    package: &'a str,
    position: Option<usize>,
    program: Option<&'a str>,
    with: Vec<String>,
    rest: Vec<String>,
}

impl RunnerLine<'_> {
    fn into_command(
        self,
        registry: Registry,
        package: String,
        version: Option<String>,
    ) -> Result<RunnerCommand, RequestError> {
        let program = self.program.map(program_name).transpose()?;
        let requested = RequestedPackage { registry, package, version, program, with: self.with };
        Ok(RunnerCommand { requested, position: self.position, rest: self.rest })
    }
}

fn parse_runner_line<'a>(
    runner: &'static str,
    args: &Arguments<'a>,
    flags: &[&str],
    package_options: &[&str],
    with_options: &[&str],
) -> Result<RunnerLine<'a>, RequestError> {
    let mut package_argument = None;
    let mut with = Vec::new();
    let mut remaining = args;
    while let [(at, word), rest_of_arguments @ ..] = remaining {
        if flags.contains(word) {
            remaining = rest_of_arguments;
        } else if let Some(package) =
            package_options.iter().find_map(|option| word.strip_prefix(option)?.strip_prefix('='))
        {
            // The option itself contains the package, so the package cannot be replaced.
            (package_argument, remaining) = (Some((None, package)), rest_of_arguments);
        } else if package_options.contains(word) {
            let [(at, package), rest_of_arguments @ ..] = rest_of_arguments else {
                return Err(RequestError::OptionWithoutPackage((*word).to_owned()));
            };
            (package_argument, remaining) = (Some((Some(*at), *package)), rest_of_arguments);
        } else if with_options.contains(word) {
            let [(_, requirement_text), rest_of_arguments @ ..] = rest_of_arguments else {
                return Err(RequestError::OptionWithoutPackage((*word).to_owned()));
            };
            with.push(requirement(requirement_text)?);
            remaining = rest_of_arguments;
        } else if *word == "--" {
            remaining = rest_of_arguments;
            break;
        } else if word.starts_with('-') {
            return Err(RequestError::UnknownOption { option: (*word).to_owned(), runner, number: at + 1 });
        } else {
            break;
        }
    }
    let (first, rest) = match remaining {
        [first, rest @ ..] => (Some(*first), rest),
        [] => (None, remaining),
    };
    let rest = rest.iter().map(|(_, word)| (*word).to_owned()).collect();
    match (package_argument, first) {
        (Some((position, package)), Some((_, program))) => {
            Ok(RunnerLine { package, position, program: Some(program), with, rest })
        }
        (None, Some((at, package))) => {
            Ok(RunnerLine { package, position: Some(at), program: None, with, rest })
        }
        (Some(_), None) => Err(RequestError::NoProgram(runner)),
        (None, None) => Err(RequestError::NoPackage(runner)),
    }
}

fn npm_package(text: &str) -> Result<(String, Option<String>), RequestError> {
    let (scope, rest) = match text.strip_prefix('@').map(|text| text.split_once('/')) {
        Some(Some((scope, rest))) => (Some(scope), rest),
        Some(None) => return Err(not_a_package(text)),
        None => (None, text),
    };
    let (name, version) = match rest.split_once('@') {
        Some((name, version)) => (name, Some(version)),
        None => (rest, None),
    };
    let is_valid_part = |part: &str| is_word(part, &['-', '_', '.', '~']) && !part.starts_with(['.', '-']);
    let version = version.filter(|version| *version != "latest");
    if !scope.is_none_or(is_valid_part) || !is_valid_part(name) || !version.is_none_or(is_version) {
        return Err(not_a_package(text));
    }
    let name = scope.map_or_else(|| name.to_owned(), |scope| format!("@{scope}/{name}"));
    Ok((name, version.map(str::to_owned)))
}

fn python_package(text: &str) -> Result<(String, Option<String>), RequestError> {
    let (name, version) = match (text.split_once("=="), text.split_once('@')) {
        (Some((name, version)), _) | (None, Some((name, version))) => (name, Some(version)),
        (None, None) => (text, None),
    };
    let (base, extras) = match name.split_once('[') {
        Some((base, extras)) => (base, extras.strip_suffix(']').ok_or_else(|| not_a_package(text))?),
        None => (name, "no"),
    };
    let version = version.filter(|version| *version != "latest");
    let is_valid = is_word(base, &['-', '_', '.'])
        && !base.starts_with(['.', '-'])
        && is_word(extras, &['-', '_', '.', ','])
        && version.is_none_or(is_version);
    if is_valid { Ok((name.to_owned(), version.map(str::to_owned))) } else { Err(not_a_package(text)) }
}

/// Parses a package name with version bounds. URLs and paths are rejected.
fn requirement(text: &str) -> Result<String, RequestError> {
    let bounds = text.find(['<', '>', '=', '!', '~']).unwrap_or(text.len());
    let (name, bounds) = text.split_at(bounds);
    let is_valid_bound = |bound: &str| is_version(bound.trim_start_matches(['<', '>', '=', '~', '!']));
    let is_valid = python_package(name).is_ok_and(|(_, version)| version.is_none())
        && (bounds.is_empty() || bounds.split(',').all(is_valid_bound));
    if is_valid { Ok(text.to_owned()) } else { Err(RequestError::NotARequirement(text.to_owned())) }
}

/// Parses a program name. Paths are rejected.
fn program_name(text: &str) -> Result<String, RequestError> {
    if is_word(text, &['-', '_', '.']) && !text.starts_with(['.', '-']) {
        Ok(text.to_owned())
    } else {
        Err(RequestError::NotAProgram(text.to_owned()))
    }
}

/// Returns `true` if `text` is an exact version. Ranges, URLs and paths are not.
#[must_use]
pub fn is_version(text: &str) -> bool {
    is_word(text, &['-', '_', '.', '+', '!']) && !text.starts_with(['-', '.'])
}

fn is_word(text: &str, others: &[char]) -> bool {
    !text.is_empty()
        && text.len() < 200
        && text.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(&c))
}

fn not_a_package(text: &str) -> RequestError {
    RequestError::NotAPackage(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::Servers;
    use serde_json::json;
    use std::path::Path;

    fn asked(command: &str, args: &[&str]) -> Result<Option<RunnerCommand>, RequestError> {
        let text = json!({ "s": { "command": command, "args": args } }).to_string();
        let servers = Servers::parse(&text, Path::new("/c"), Path::new("/home/u")).unwrap();
        RunnerCommand::parse(servers.find(None).unwrap())
    }

    fn short(command: &str, args: &[&str]) -> String {
        let RunnerCommand { requested, position, rest } = asked(command, args).unwrap().unwrap();
        let (program, at) = (requested.program.as_deref().unwrap_or("-"), position.unwrap());
        format!("{} {requested} {program} {at} {}", requested.registry.name(), rest.join(" "))
    }

    #[test]
    fn parses_package_version_program_and_arguments() {
        for (command, args, expected) in [
            ("npx", &["-y", "@a/b@1.2.3", "-y", "/x"][..], "npm @a/b@1.2.3 - 1 -y /x"),
            ("/usr/bin/npx", &["--yes", "b@latest"], "npm b - 1 "),
            ("npx", &["b", "--", "x"], "npm b - 0 -- x"),
            ("npx", &["-y", "--", "b"], "npm b - 2 "),
            ("npx", &["-p", "@a/b@2", "tool", "x"], "npm @a/b@2 tool 1 x"),
            (
                "uvx",
                &["mcp-server-time==2026.1.2", "--tz", "UTC"],
                "pypi mcp-server-time==2026.1.2 - 0 --tz UTC",
            ),
            ("uvx", &["mcp-server-time@1.0"], "pypi mcp-server-time==1.0 - 0 "),
            ("uv", &["tool", "run", "--from", "a[cli]==1", "b"], "pypi a[cli]==1 b 3 "),
        ] {
            assert_eq!(short(command, args), expected, "{args:?}");
        }
        let with = asked("uvx", &["--with", "mcp>=1.6,<2", "--with", "a", "b==1", "x"]).unwrap().unwrap();
        assert_eq!(
            (with.requested.with, with.position, with.rest),
            (vec!["mcp>=1.6,<2".into(), "a".into()], Some(4), vec!["x".into()])
        );
        for bad in
            ["/srv/a", "git+https://a.org/b", "a @ https://a.org", "a; python_version<'3'", "-r", "a<", ""]
        {
            let refused = asked("uvx", &["--with", bad, "b"]).unwrap_err();
            assert_eq!(refused, RequestError::NotARequirement(bad.to_owned()), "{bad}");
        }
        assert_eq!(asked("npx", &["--package=b@1", "tool"]).unwrap().unwrap().position, None);
        for (command, args) in [("node", &["npx"][..]), ("uv", &["run", "x"]), ("npxx", &["b"])] {
            assert_eq!(asked(command, args), Ok(None), "{command}");
        }
    }

    #[test]
    fn an_error_names_the_argument_that_is_not_a_package() {
        let registry = "is not the name of a package in a registry";
        for (command, args, problem) in [
            ("npx", &["-y", "github:a/b"][..], registry),
            ("npx", &["./here"], registry),
            ("npx", &["b@file:../x"], registry),
            ("npx", &["b@^1.0.0"], registry),
            ("npx", &["@a"], registry),
            ("npx", &["@../b"], registry),
            (
                "npx",
                &["--registry=https://x.example", "b"],
                "the option `--registry=https://x.example` of `npx`",
            ),
            ("npx", &["-c", "rm"], "the option `-c` of `npx`"),
            ("npx", &[], "names no package"),
            ("npx", &["-p", "b"], "but no program"),
            ("npx", &["-p", "b", "../x"], "invalid program name"),
            ("uvx", &["git+https://x.example/y"], registry),
            ("uvx", &["a>=1"], registry),
            ("uvx", &["a[b"], registry),
            ("uvx", &["--python", "3.9", "y"], "the option `--python` of `uvx`"),
        ] {
            let error = asked(command, args).unwrap_err().to_string();
            assert!(error.contains(problem), "{args:?}: {error}");
        }
    }
}
