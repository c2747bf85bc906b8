//! Identifies a server's program by its address, its installed package, or its files.
//!
//! - The files are the program, the interpreter named in a script's first line, and each script in the arguments.
//!   Modules that a script loads are not included, except in an installed package, whose files are all included.
//! - A script's relative path is resolved in the folders that the arguments name (`uv --directory DIR run server.py`).

use super::IdentityError;
use super::files::{self, Digests, Stamp};
use super::system::System;
use ironcurtain_config::{RemoteServer, Server};
use ironcurtain_containment::named_program;
use ironcurtain_packages::PackageIdentity;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum number of files that identify a program.
const MAX_FILES: usize = 32;

/// Maximum length of a script's first line, in bytes.
const MAX_LINE_LEN: u64 = 512;

/// File extensions of interpreted code.
const CODE: [&str; 22] = [
    "js", "mjs", "cjs", "ts", "mts", "cts", "jsx", "tsx", "py", "pyc", "pyz", "rb", "pl", "php", "lua", "r",
    "sh", "bash", "jar", "dll", "wasm", "exs",
];

/// Programs that run the first file in their arguments, whatever its name, without version suffixes.
const INTERPRETERS: [&str; 21] = [
    "node", "nodejs", "deno", "bun", "tsx", "ts-node", "python", "pypy", "ruby", "perl", "php", "lua",
    "rscript", "java", "dotnet", "sh", "bash", "dash", "zsh", "fish", "env",
];

/// Programs that accept a whole command line as a single argument.
const SHELLS: [&str; 5] = ["sh", "bash", "dash", "zsh", "fish"];

/// Program or address of a server, as part of its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum ProgramIdentity {
    /// Address of a remote server.
    Address {
        /// Address without its query, for display.
        shown: String,
        /// SHA-256 of the whole address, whose query may contain secrets.
        digest: String,
    },
    /// A package that IronCurtain installed.
    Package {
        /// Registry and name of the package.
        package: String,
        /// Hash of all files in the package, approved by the user by installing or updating it.
        tree: String,
    },
    /// Files on this machine.
    Files(Vec<ProgramFile>),
    /// Unknown, because the program could not be read when its name was bound. Matches any program.
    Unseen,
}

/// File that identifies a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramFile {
    /// Path of the file, or just its name for IronCurtain's own server.
    pub path: String,
    /// Property that identifies the file.
    pub by: FileIdentity,
}

/// Property by which a program file is identified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum FileIdentity {
    /// Its name, for IronCurtain's own server.
    Ours,
    /// Its path, because only root can change it.
    System,
    /// The SHA-256 of its content.
    Digest(String),
    /// Its inode, size and times, because the file can be executed but not read.
    Unreadable(String),
}

impl ProgramIdentity {
    pub(super) fn address(remote: &RemoteServer) -> Self {
        Self::Address { shown: remote.to_string(), digest: files::sha256(remote.url().as_str()) }
    }

    pub(super) fn package(package: &PackageIdentity) -> Self {
        Self::Package { package: package.package.clone(), tree: package.content_hash.clone() }
    }

    /// Describes how `other` differs from this program. Returns `None` if they are the same.
    pub(super) fn change_to(&self, other: &Self) -> Option<String> {
        match (self, other) {
            (Self::Unseen, _) => None,
            (Self::Files(before), Self::Files(is)) => describe_file_changes(before, is),
            (Self::Address { digest: before, .. }, Self::Address { digest: is, .. }) if before == is => None,
            (Self::Package { .. }, Self::Package { .. }) if self == other => None,
            (Self::Package { package: before, .. }, Self::Package { package: is, .. }) if before == is => {
                Some(format!("another version of its package `{is}` was installed"))
            }
            (before, is) => Some(format!("it was {} and is {}", before.description(), is.description())),
        }
    }

    /// Returns the address, package or files for display.
    #[must_use]
    pub fn shown(&self) -> String {
        match self {
            Self::Address { shown, .. } => shown.clone(),
            Self::Package { package, .. } => format!("the package {package}"),
            Self::Files(files) => files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>().join(", "),
            Self::Unseen => "a program that could not be read".to_owned(),
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Address { shown, .. } => format!("the address `{shown}`"),
            Self::Package { package, .. } => format!("the package `{package}`"),
            Self::Files(files) => {
                let first = files.first().map(|file| file.path.as_str()).unwrap_or_default();
                format!("the program `{first}`")
            }
            Self::Unseen => "a program that could not be read".to_owned(),
        }
    }
}

impl ProgramFile {
    /// Returns `true` if both are the same file. Files with equal digests are the same file even if their paths differ.
    fn is_same(&self, other: &Self) -> bool {
        match (&self.by, &other.by) {
            (FileIdentity::Digest(before), FileIdentity::Digest(is)) => before == is,
            _ => self == other,
        }
    }
}

fn describe_file_changes(before: &[ProgramFile], is: &[ProgramFile]) -> Option<String> {
    if before.len() == is.len() {
        let (before, is) = before.iter().zip(is).find(|(before, is)| !before.is_same(is))?;
        return Some(match before.path == is.path {
            true => format!("`{}` was changed", is.path),
            false => format!("its program was `{}` and is `{}`", before.path, is.path),
        });
    }
    let new = is.iter().find(|file| !before.iter().any(|before| before.is_same(file)));
    let removed = before.iter().find(|file| !is.iter().any(|now| now.is_same(file)));
    Some(match (new, removed) {
        (Some(new), _) => format!("it runs `{}` now", new.path),
        (None, Some(removed)) => format!("it no longer runs `{}`", removed.path),
        (None, None) => "it runs other files".to_owned(),
    })
}

/// Identifies the files of a server's program. Also returns stamps that reveal later changes.
pub(super) fn files(
    server: &Server,
    ours: &Path,
    digests: &Digests,
) -> Result<(ProgramIdentity, Vec<(PathBuf, Stamp)>), IdentityError> {
    let command = named_program(&server.command, ours)?;
    let identifying =
        FileIdentifier { system: System::of_machine(), ours: ours.canonicalize().ok(), digests };
    let interpreter = interpreter(&command).and_then(|name| named_program(&name, ours).ok());
    let paths = [command.clone()].into_iter().chain(interpreter).chain(scripts(&command, &server.args));
    let mut all = Vec::new();
    let mut stamps = Vec::new();
    for path in paths.take(MAX_FILES) {
        let unreadable = |source| IdentityError::Unreadable { path: path.clone(), source };
        let (file, stamp) = identifying.file(&path).map_err(unreadable)?;
        stamps.extend(stamp);
        if !all.contains(&file) {
            all.push(file);
        }
    }
    Ok((ProgramIdentity::Files(all), stamps))
}

struct FileIdentifier<'a> {
    system: System,
    ours: Option<PathBuf>,
    digests: &'a Digests,
}

impl FileIdentifier<'_> {
    /// Identifies a file. Also returns a stamp, unless only root can change the file.
    fn file(&self, path: &Path) -> io::Result<(ProgramFile, Option<(PathBuf, Stamp)>)> {
        let real = path.canonicalize()?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        if self.ours.as_ref().is_some_and(|ours| real == ours.join(Server::EMBEDDED)) {
            return Ok((ProgramFile { path: Server::EMBEDDED.to_owned(), by: FileIdentity::Ours }, None));
        }
        if let Some(path) = self.system.path(path) {
            return Ok((ProgramFile { path: text(&path), by: FileIdentity::System }, None));
        }
        let (by, stamp) = match self.digests.of(&real) {
            Ok((digest, stamp)) => (FileIdentity::Digest(digest), stamp),
            Err(problem) if problem.kind() == io::ErrorKind::PermissionDenied => {
                let (state, stamp) = Stamp::for_unreadable(&real)?;
                (FileIdentity::Unreadable(state), stamp)
            }
            Err(problem) => return Err(problem),
        };
        Ok((ProgramFile { path: text(&real), by }, Some((real, stamp))))
    }
}

/// Returns the interpreter in a script's first line. For `env`, returns the program that it starts.
fn interpreter(script: &Path) -> Option<String> {
    let mut line = Vec::new();
    File::open(script)
        .ok()
        .filter(|file| file.metadata().is_ok_and(|found| found.is_file()))?
        .take(MAX_LINE_LEN)
        .read_to_end(&mut line)
        .ok()?;
    let line = line.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let line = std::str::from_utf8(line).ok()?;
    let mut words = line.split_whitespace();
    let first = words.next()?;
    if stem(Path::new(first)) != "env" {
        return Some(first.to_owned());
    }
    words.find(|word| !word.starts_with('-') && !word.contains('=')).map(str::to_owned)
}

/// Returns the absolute paths of the scripts in a program's arguments.
fn scripts(command: &Path, args: &[String]) -> Vec<PathBuf> {
    let name = stem(command);
    let in_words = |arg: &String| match SHELLS.contains(&name.as_str()) {
        true => shlex::split(arg).unwrap_or_else(|| vec![arg.clone()]),
        false => vec![arg.clone()],
    };
    let words: Vec<String> = args.iter().flat_map(in_words).collect();
    let folders: Vec<&Path> =
        words.iter().map(|word| Path::new(value(word))).filter(|path| is_folder(path)).collect();
    let located = |word: &str| -> Option<PathBuf> {
        let candidates = folders.iter().map(|folder| folder.join(word));
        std::iter::once(PathBuf::from(word))
            .chain(candidates)
            .find(|path| path.is_absolute() && path.is_file())
    };
    let mut found: Vec<PathBuf> =
        words.iter().map(|word| value(word)).filter(|word| is_code(word)).filter_map(located).collect();
    if INTERPRETERS.contains(&name.as_str()) {
        let run = words.iter().find(|word| !word.starts_with('-')).map(String::as_str).unwrap_or_default();
        found.extend(words.iter().filter(|word| !word.starts_with('-')).find_map(|word| located(word)));
        let of_folder = ["package.json", "index.js", "__main__.py"].map(|name| Path::new(run).join(name));
        found.extend(of_folder.into_iter().filter(|file| file.is_absolute() && file.is_file()));
    }
    found
}

/// Returns the value of a word of the form `--option=value`, or any other word unchanged.
fn value(word: &str) -> &str {
    word.strip_prefix('-').and_then(|option| option.split_once('=')).map_or(word, |(_, value)| value)
}

fn is_code(word: &str) -> bool {
    let ending = Path::new(word).extension().and_then(|ending| ending.to_str()).map(str::to_ascii_lowercase);
    ending.is_some_and(|ending| CODE.contains(&ending.as_str()))
}

fn is_folder(path: &Path) -> bool {
    path.is_absolute() && path.is_dir()
}

/// Returns a program's lower-case file name without its version, such as `python` for `/usr/bin/python3.12`.
fn stem(program: &Path) -> String {
    let name = program.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_owned()
}

#[cfg(test)]
mod tests;
