//! Matches an organization's server patterns against the entries in `mcp-servers.json`.
//!
//! - The user writes the entries. A pattern in `deniedServers` therefore also matches other spellings of a package or
//!   an address, and a pattern in `allowedServers` matches only an entry that certainly starts the package or sends its
//!   requests to the address.
//! - A pattern that can never match is an error, because it would deny nothing.

use super::ServerPattern;
use super::server_address::{Address, addresses};
use crate::sandbox::PassEnv;
use crate::{RemoteServer, Server};

/// Prefixes of environment variables that change which code a program or a package runner runs.
const CODE_VARIABLES: [&str; 12] = [
    "BUN_",
    "DENO_",
    "LD_",
    "NODE_",
    "NPM_CONFIG_",
    "PATH",
    "PIP_",
    "PNPM_",
    "PYTHON",
    "UV_",
    "VIRTUAL_ENV",
    "XDG_CONFIG_",
];

/// Registries of container images that can be omitted from an image's name.
const DEFAULT_REGISTRIES: [&str; 3] = ["docker.io/", "index.docker.io/", "registry-1.docker.io/"];

impl ServerPattern {
    pub(super) fn problem(&self) -> Option<String> {
        if self.name.is_none() && self.package.is_none() && self.url.is_none() {
            return Some("a server needs a `name`, `package` or `url`".to_owned());
        }
        let has_version = |package: &&String| {
            !package.starts_with('/') && package.chars().skip(1).any(|c| "@:<>=!~[#? ".contains(c))
        };
        if let Some(package) = self.package.as_ref().filter(has_version) {
            return Some(format!("`{package}` is not a package name; write it without a version"));
        }
        let url = self.url.as_ref().filter(|url| Address::from_pattern(url).is_none())?;
        Some(format!(
            "`{url}` is not a valid server URL; expected `https://HOST/PATH`, optionally ending in `*`"
        ))
    }

    /// Returns `true` if the entry certainly matches the pattern.
    pub(super) fn allows(&self, server: &Server) -> bool {
        self.name.as_ref().is_none_or(|name| *name == server.name)
            && self.package.as_ref().is_none_or(|package| starts_package(server, package))
            && self.url.as_ref().is_none_or(|pattern| {
                let url = server.remote.as_ref().map(RemoteServer::url);
                url.zip(Address::from_pattern(pattern))
                    .is_some_and(|(url, pattern)| pattern.certainly_covers(url))
            })
    }

    /// Returns `true` if the entry may match the pattern.
    pub(super) fn denies(&self, server: &Server) -> bool {
        self.name.as_ref().is_none_or(|name| name.eq_ignore_ascii_case(&server.name))
            && self.package.as_ref().is_none_or(|package| may_start_package(server, package))
            && self.url.as_ref().is_none_or(|pattern| {
                let pattern = Address::from_pattern(pattern);
                addresses(server).iter().any(|url| pattern.as_ref().is_none_or(|pattern| pattern.covers(url)))
            })
    }
}

/// Returns `true` if the entry starts exactly this program or package, and nothing in the entry's environment can
/// replace the program.
fn starts_package(server: &Server, package: &str) -> bool {
    if server.remote.is_some() {
        return false;
    }
    let changes_code = |name: &String| {
        let name = name.to_ascii_uppercase();
        CODE_VARIABLES.iter().any(|prefix| name.starts_with(prefix))
    };
    let is_plain_env = match &server.pass_env {
        PassEnv::All => false,
        PassEnv::Named(names) => !names.iter().chain(server.env.keys()).any(changes_code),
    };
    let is_program = server.command == package && (package.starts_with('/') || package == Server::EMBEDDED);
    is_plain_env
        && (is_program
            || requested_package(server).is_some_and(|requested_package| *requested_package == *package))
}

/// Returns the only package that a package runner's command line names. Returns `None` if any option could run other
/// code.
fn requested_package(server: &Server) -> Option<String> {
    let args: Vec<&str> = server.args.iter().map(String::as_str).collect();
    let (args, options) = match (server.command.as_str(), args.as_slice()) {
        ("npx", args) => (args, ["-y", "--yes", "-q", "--quiet"].as_slice()),
        ("uvx", args) | ("uv", ["tool", "run", args @ ..]) => (args, ["-q", "--quiet"].as_slice()),
        _ => return None,
    };
    let mut words = args.iter().skip_while(|word| options.contains(*word) || **word == "--");
    let package = words.next().filter(|word| !word.starts_with('-'))?;
    let version = package.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    let end = version.or_else(|| package.find("==")).unwrap_or(package.len());
    let (name, version) = package.split_at_checked(end)?;
    let is_version = |c: char| c.is_ascii_alphanumeric() || "@=.-+_".contains(c);
    version.chars().all(is_version).then(|| name.to_owned())
}

/// Returns `true` if a word in the entry may name this program or package.
fn may_start_package(server: &Server, package: &str) -> bool {
    if server.remote.is_some() {
        return false;
    }
    let wanted = package_name(package);
    let command = server.command.rsplit('/').next().unwrap_or_default();
    let words = std::iter::once(&server.command).chain(&server.args);
    let mut words =
        words.flat_map(|word| word.split(|c: char| c.is_whitespace() || "='\",;()|&".contains(c)));
    package_name(command) == wanted || words.any(|word| may_refer_to(word, &wanted))
}

/// Returns `true` if a word of a command line may name a package: directly, as an alias (`x@npm:NAME`), as a file of
/// the installed package, or as a repository.
fn may_refer_to(word: &str, wanted: &str) -> bool {
    let is_wanted =
        |rest: &str| rest == wanted || rest.strip_prefix(wanted).is_some_and(|rest| rest.starts_with('/'));
    let normalized_word = normalize(word);
    let is_installed = ["node-modules/", "site-packages/"]
        .iter()
        .any(|folder| normalized_word.split(folder).skip(1).any(is_wanted));
    let is_repository = ["://", "git+", "github:"].iter().any(|start| word.contains(start));
    let repository = word.split(['#', '?']).next().unwrap_or_default().trim_end_matches('/');
    let repository = repository.rsplit(['/', ':']).next().unwrap_or_default();
    let repository = repository.split('@').next().unwrap_or_default();
    package_name(word) == wanted
        || word.split("npm:").skip(1).any(|name| package_name(name) == wanted)
        || is_installed
        || (is_repository && normalize(repository.trim_end_matches(".git")) == wanted)
}

/// Returns the name in a package specifier, without its registry, version and extras, normalized by [`normalize`].
fn package_name(specifier: &str) -> String {
    let lower = specifier.to_ascii_lowercase();
    let lower = lower.strip_prefix("npm:").unwrap_or(&lower);
    let name = DEFAULT_REGISTRIES.iter().find_map(|registry| lower.strip_prefix(registry)).unwrap_or(lower);
    let name = name.strip_prefix("library/").unwrap_or(name);
    // A scope starts with `@`, so only a later `@` can precede a version.
    let end = name.char_indices().skip(1).find(|(_, c)| "@:<>!~[#?".contains(*c));
    normalize(name.get(..end.map_or(name.len(), |(at, _)| at)).unwrap_or(name))
}

/// Returns a name in lowercase, with each run of `-`, `_` and `.` replaced by one `-`, as PyPI compares names.
fn normalize(name: &str) -> String {
    let mut normalized = String::new();
    for c in name.chars().map(|c| c.to_ascii_lowercase()) {
        match c {
            '-' | '_' | '.' if normalized.ends_with('-') => {}
            '-' | '_' | '.' => normalized.push('-'),
            c => normalized.push(c),
        }
    }
    normalized
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::Servers;
    use serde_json::{Value, json};
    use std::path::Path;

    pub(in crate::managed) fn server(entry: &Value) -> Server {
        let text = json!({ "x": entry }).to_string();
        Servers::parse(&text, Path::new("s"), Path::new("/home/u")).unwrap().find(None).unwrap().clone()
    }

    pub(in crate::managed) fn words(line: &str) -> Server {
        let mut words = line.split(' ');
        server(&json!({ "command": words.next(), "args": words.collect::<Vec<_>>() }))
    }

    fn package(name: &str) -> ServerPattern {
        ServerPattern { name: None, package: Some(name.to_owned()), url: None }
    }

    pub(in crate::managed) fn address(url: &str) -> ServerPattern {
        ServerPattern { name: None, package: None, url: Some(url.to_owned()) }
    }

    #[test]
    fn other_spellings_of_a_denied_package_are_denied() {
        let denied = package("mcp-server-git");
        for line in [
            "mcp-server-git",
            "/home/u/.local/bin/mcp-server-git --x",
            "uvx mcp-server-git",
            "uvx MCP_Server.git==1.2",
            "uvx mcp-server-git@latest",
            "uvx mcp-server-git[cli]>=1",
            "uvx --from=mcp-server-git serve",
            "uvx --with mcp-server-git other",
            "uvx --from git+https://github.com/org/mcp-server-git.git@v1 serve",
            "uvx git+https://github.com/org/mcp-server-git@v1#egg=x",
            "python -m mcp_server_git",
            "npx -y alias@npm:mcp-server-git@1",
            "npx npm:mcp-server-git",
            "node /opt/node_modules/mcp-server-git/dist/index.js",
            "sh -c npx\tmcp-server-git;true",
            "docker run --rm docker.io/library/mcp-server-git:1",
            "docker run mcp-server-git@sha256:abc",
        ] {
            assert!(denied.denies(&words(line)), "{line}");
        }
        for line in ["uvx mcp-server-github", "uvx other --repository /home/u/mcp-server-git/x", "git status"]
        {
            assert!(!denied.denies(&words(line)), "{line}");
        }
        let scoped = package("@scope/server");
        assert!(scoped.denies(&words("npx @Scope/server@1.2")));
        assert!(scoped.denies(&words("node /x/node_modules/@scope/server/index.js")));
        assert!(!scoped.denies(&words("npx @scope/server-x")) && !scoped.denies(&words("npx server")));
    }

    #[test]
    fn only_an_entry_that_starts_an_allowed_package_is_allowed() {
        let allowed = package("mcp-server-git");
        for line in [
            "uvx mcp-server-git",
            "uvx -q mcp-server-git==1.2 --x",
            "uv tool run mcp-server-git@1",
            "npx -y mcp-server-git",
        ] {
            assert!(allowed.allows(&words(line)), "{line}");
        }
        for line in [
            "/home/u/evil mcp-server-git",
            "sh -c evil mcp-server-git",
            "mcp-server-git",
            "/home/u/bin/uvx mcp-server-git",
            "uvx evil mcp-server-git",
            "uvx --with evil mcp-server-git",
            "uvx --from evil mcp-server-git",
            "uvx mcp-server-git@git+https://evil.example/x",
            "npx mcp-server-git@npm:evil",
            "npx -c evil mcp-server-git",
            "docker run -v /:/x mcp-server-git",
        ] {
            assert!(!allowed.allows(&words(line)), "{line}");
        }
        for env in ["npm_config_registry", "UV_INDEX_URL", "NODE_OPTIONS", "LD_PRELOAD", "PATH"] {
            let entry = json!({ "command": "npx", "args": ["mcp-server-git"], "env": { env: "x" } });
            assert!(!allowed.allows(&server(&entry)), "{env}");
        }
        let normalized_word =
            json!({ "command": "npx", "args": ["mcp-server-git"], "env": { "TOKEN": "x" } });
        assert!(allowed.allows(&server(&normalized_word)));
        let all = json!({ "command": "npx", "args": ["mcp-server-git"], "sandbox": false, "passEnv": "*" });
        assert!(!allowed.allows(&server(&all)));
        assert!(package("/usr/bin/tool").allows(&words("/usr/bin/tool --x")));
        assert!(package(Server::EMBEDDED).allows(&words(Server::EMBEDDED)));
    }

    #[test]
    fn patterns_that_can_never_match_are_refused() {
        for bad in ["git==1.2", "git@1", "@scope/git@1", "mcp/git:latest", "git[cli]"] {
            assert!(package(bad).problem().unwrap().contains("write it without a version"), "{bad}");
        }
        for bad in ["mcp.example.com", "https://u@mcp.example.com/", "https://mcp.example.com/?x", "ftp://x/"]
        {
            assert!(address(bad).problem().unwrap().contains("is not a valid server URL"), "{bad}");
        }
        for name in ["@scope/git", "git", "/usr/bin/git", "mcp/git"] {
            assert_eq!(package(name).problem(), None);
        }
        assert_eq!(address("https://mcp.example.com/*").problem(), None);
    }
}
