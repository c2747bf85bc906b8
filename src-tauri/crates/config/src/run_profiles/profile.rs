//! A run profile in the format of its JSON file.

use super::invalid;
use crate::ConfigError;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::strict;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Files, hosts, variables and arguments that a program needs in a run. Paths start with `~/` or `/`; a path that ends with `/` is a folder.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunProfile {
    /// Version of the format; 1.
    #[cfg_attr(test, schemars(extend("const" = 1)))]
    pub schema_version: u32,
    /// Name of the profile in commands, and of its file without `.json`.
    pub name: String,
    /// Display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Version of the program with which the profile was measured. Absent if its documentation is the only source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<String>,
    /// Programs that use this profile without `--profile`.
    #[serde(default, skip_serializing_if = "ProgramPattern::is_empty")]
    pub program: ProgramPattern,
    /// Files and folders that the program reads and changes. Missing folders are created.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub settings: Vec<String>,
    /// Settings that contain credentials. No server and no run with another profile can read them. Only in shipped profiles.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub logins: Vec<String>,
    /// Files and folders that the program reads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<String>,
    /// Folders of other programs and managed settings, mounted read-only. The program's own folder is found automatically.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
    /// Hosts that the program connects to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    /// Names of environment variables that the program receives from the user. A name may end with `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// Environment variables that are set, with their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub set_env: BTreeMap<String, String>,
    /// Arguments that are inserted after the program's name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<AddedArguments>,
    /// Source of the values of each field, by field name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sources: BTreeMap<String, String>,
}

/// Programs that use a profile automatically, by name and by the folder of the executable.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProgramPattern {
    /// Names by which the program is started.
    pub names: Vec<String>,
    /// Folders that contain the executable: absolute paths, or the last names of a path. A name may end with `*`.
    pub folders: Vec<String>,
}

/// Arguments that a program needs in a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddedArguments {
    /// The arguments. `{shim}` in them stands for the path of `ironcurtain-shim`, as a JSON string.
    pub add: Vec<String>,
    /// Adds the arguments only if this setting of the program is `true`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<SettingCondition>,
    /// Does not add the arguments if the command contains one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    /// Reason for the arguments, for the user.
    pub why: String,
}

/// A setting of the program that is `true`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SettingCondition {
    /// Path of the setting in its file, with the names separated by dots.
    pub key: String,
    /// JSON files that may contain the setting, below the home directory or the working directory.
    #[serde(rename = "in")]
    pub files: Vec<String>,
}

impl ProgramPattern {
    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.folders.is_empty()
    }
}

impl RunProfile {
    /// Parses a shipped profile.
    pub(super) fn shipped(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::named_as(file, text, Self::read(file, text)?)
    }

    /// Parses a profile from the user's configuration directory.
    pub(super) fn parse_user_file(file: &Path, text: &str) -> Result<Self, ConfigError> {
        Self::named_as(file, text, Self::given(file, text)?)
    }

    /// Parses a profile that is not shipped and rejects credentials in it.
    pub(super) fn given(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let profile = Self::read(file, text)?;
        if profile.logins.is_empty() {
            return Ok(profile);
        }
        Err(invalid(file, text, "logins", "only shipped profiles can access credentials; remove the field"))
    }

    fn named_as(file: &Path, text: &str, profile: Self) -> Result<Self, ConfigError> {
        let expected = file.file_stem().unwrap_or_default().to_string_lossy();
        if profile.name == expected {
            return Ok(profile);
        }
        let problem = format!("expected `{expected}` as in the file's name, found `{}`", profile.name);
        Err(invalid(file, text, "name", problem))
    }

    fn read(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let profile: Self = strict::read(text)
            .map_err(|misread| ConfigError::invalid(file, misread.line, misread.to_string()))?;
        match profile.problem() {
            Some((field, problem)) => Err(invalid(file, text, field, problem)),
            None => Ok(profile),
        }
    }

    /// Returns the first invalid field and a description of the problem.
    fn problem(&self) -> Option<(&'static str, String)> {
        if self.schema_version != 1 {
            let problem = format!("unsupported version {}, expected 1", self.schema_version);
            return Some(("schemaVersion", problem));
        }
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        if self.name.is_empty() || !self.name.chars().all(is_plain) {
            return Some(("name", format!("`{}` may contain only letters, digits, `-` and `_`", self.name)));
        }
        let paths = [
            ("settings", &self.settings),
            ("logins", &self.logins),
            ("read", &self.read),
            ("programs", &self.programs),
        ];
        let of_path = |(field, paths): (&'static str, &Vec<String>)| {
            paths.iter().find_map(|path| Some((field, path_problem(path)?)))
        };
        let of_variable = || {
            let names = self.env.iter().find_map(|name| Some(("env", variable_problem(name, true)?)));
            names.or_else(|| {
                self.set_env.keys().find_map(|name| Some(("setEnv", variable_problem(name, false)?)))
            })
        };
        let is_host = |host: &&String| {
            let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '*' | ':');
            !host.is_empty() && host.chars().all(allowed)
        };
        let of_host = || self.hosts.iter().find(|host| !is_host(host));
        let of_host = || of_host().map(|host| ("hosts", format!("`{host}` is not a host name")));
        paths.into_iter().find_map(of_path).or_else(of_variable).or_else(of_host)
    }

    /// Adds the values of another profile to this one.
    pub(super) fn add(&mut self, other: Self) {
        let lists = [
            (&mut self.settings, other.settings),
            (&mut self.read, other.read),
            (&mut self.programs, other.programs),
            (&mut self.hosts, other.hosts),
            (&mut self.env, other.env),
            (&mut self.program.names, other.program.names),
            (&mut self.program.folders, other.program.folders),
        ];
        for (own, more) in lists {
            own.extend(more);
        }
        self.set_env.extend(other.set_env);
        self.args.extend(other.args);
    }

    /// Returns this profile extended with the values of another profile.
    pub(super) fn with(mut self, other: Self) -> Self {
        self.add(other);
        self
    }

    /// Returns `true` if the run receives this variable from the user's environment.
    #[must_use]
    pub fn passes(&self, name: &str) -> bool {
        self.env.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == pattern,
        })
    }
}

/// Expands `~` to the home directory and removes a trailing `/`.
pub(super) fn expanded(path: &str, home: &CanonicalPath) -> String {
    let whole = match path.strip_prefix("~/") {
        Some(below) => format!("{}/{below}", home.as_str()),
        None => path.to_owned(),
    };
    whole.trim_end_matches('/').to_owned()
}

fn path_problem(path: &str) -> Option<String> {
    let below = path.strip_prefix("~/").or_else(|| path.strip_prefix('/'));
    let Some(below) = below.filter(|below| !below.is_empty()) else {
        return Some(format!("`{path}` must start with `~/` or `/`"));
    };
    let mut names = below.strip_suffix('/').unwrap_or(below).split('/');
    let wrong = names.find(|name| matches!(*name, "" | "." | "..") || name.contains('\0'))?;
    Some(format!("`{path}` contains `{}`", if wrong.is_empty() { "//" } else { wrong }))
}

fn variable_problem(name: &str, may_be_pattern: bool) -> Option<String> {
    let start = name.strip_suffix('*').filter(|_| may_be_pattern);
    if start.is_some_and(|start| start.len() < 2) {
        return Some(format!("`{name}` is too wide; write at least two letters before the `*`"));
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let plain = start.unwrap_or(name);
    (plain.is_empty() || !plain.chars().all(is_plain))
        .then(|| format!("`{name}` is not the name of a variable"))
}
