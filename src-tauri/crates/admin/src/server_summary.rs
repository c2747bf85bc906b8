//! Describes a server to the user before it is tried and before it is added.
//!
//! - INVARIANT: every sentence is derived from the server's entry or from the policy's decision on a call. No text is
//!   specific to a kind of server.

use crate::catalog::DATA_VARIABLES;
use crate::trial::PolicyTrial;
use ironcurtain_config::{FileView, NetworkSettings, SandboxSettings, Server, ServerAccess};
use ironcurtain_packages::{Registry, RequestedPackage, RunnerCommand};
use ironcurtain_policy::{DeniedBy, Verdict};
use ironcurtain_sandbox::check_tun;
use ironcurtain_secrets::{secret_reference, secret_reference_in_header};
use ironcurtain_visible as visible;
use serde_json::Map;
use std::fmt::{self, Display, Formatter};

/// Maximum length of a command line in a question, in characters.
const MAX_COMMAND_LEN: usize = 60;

/// Description of a trial, and the question that the user must confirm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrialNotice {
    /// Lines that describe what the trial downloads, starts or connects to.
    pub lines: Vec<String>,
    /// Question that the user must confirm before the trial.
    pub question: String,
    /// Text that is shown during the trial.
    pub progress: String,
}

/// Handling of calls to an unannotated tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UnannotatedCalls {
    /// Each call requires approval.
    Ask,
    /// The calls are allowed, because the server can access nothing.
    Allowed,
    /// The calls are refused until the tool is annotated.
    Refused,
    /// A rule of the policy denies the calls.
    Denied(String),
}

impl TrialNotice {
    /// Describes the trial of a server that the user does not trust yet.
    #[must_use]
    pub fn new(server: &Server) -> Self {
        if let Some(remote) = &server.remote {
            let host = host(server).unwrap_or_default();
            let headers = name_list("Sends the headers", remote.headers().keys());
            return Self {
                lines: std::iter::once(format!("Address: {remote}")).chain(headers).collect(),
                question: format!("Connect to `{host}`, without your secrets, to read its list of tools?"),
                progress: format!("Connecting to {remote} to read its list of tools ..."),
            };
        }
        let mut lines = vec![format!("Program: {}", visible::line(&server.command_line()))];
        let is_from_entry = |key: &&String| *key != "HOME" && !DATA_VARIABLES.contains(&key.as_str());
        lines.extend(name_list("Variables passed to it", server.env.keys().filter(is_from_entry)));
        let package = RunnerCommand::parse(server).ok().flatten().map(|command| command.requested);
        lines.extend(package.as_ref().map(download));
        let sandboxing =
            if server.sandbox.settings().is_some() { "in its sandbox" } else { "WITHOUT A SANDBOX" };
        let command_line = visible::head(&visible::line(&server.command_line()), MAX_COMMAND_LEN);
        let action = match &package {
            Some(package) => format!("Download `{package}` and start it {sandboxing}"),
            None => format!("Start `{command_line}` {sandboxing}"),
        };
        Self {
            lines,
            question: format!("{action}, without your secrets, to read its list of tools?"),
            progress: format!(
                "Starting it {sandboxing}, without your secrets, to read its list of tools ..."
            ),
        }
    }
}

/// Describes the access that a server's entry allows.
#[must_use]
pub fn reach(server: &Server) -> Vec<String> {
    let mut lines = Vec::new();
    match (host(server), server.sandbox.settings()) {
        (Some(host), _) => lines.push(format!(
            "It runs on {host}, outside this computer's sandbox. IronCurtain checks each call, but cannot limit what it does."
        )),
        (None, None) => {
            lines.push("It runs WITHOUT A SANDBOX: it can reach everything that you can.".to_owned());
        }
        (None, Some(settings)) => lines.extend(sandbox(server.access, settings)),
    }
    for path in &server.works_with {
        lines
            .push(format!("It is meant to work with `{path}`. You will be asked about that for each agent."));
    }
    let env_secrets =
        server.env.iter().filter_map(|(key, value)| Some((key, secret_reference(value).ok()??)));
    let headers = server.remote.iter().flat_map(|remote| remote.headers());
    let header_secrets =
        headers.filter_map(|(key, value)| Some((key, secret_reference_in_header(value).ok()??.1)));
    for (key, secret) in env_secrets.chain(header_secrets) {
        lines.push(format!("It gets your secret `{secret}` as `{key}`."));
    }
    lines.iter().map(|line| visible::line(line)).collect()
}

fn sandbox(access: ServerAccess, settings: &SandboxSettings) -> Vec<String> {
    let files = match (access, settings.view.unwrap_or(FileView::Roots)) {
        (ServerAccess::Ask, _) => {
            "It runs in a sandbox, and sees the names of your files. When it opens or changes a file, it waits until you allow that."
        }
        (ServerAccess::Grants, FileView::Roots) => {
            "It runs in a sandbox, and sees only the files that you grant."
        }
        (ServerAccess::Grants, FileView::HostRead) => {
            "It runs in a sandbox, and can read this computer's files except keys and protected ones."
        }
    };
    let mut lines = vec![files.to_owned()];
    lines.extend(path_list("It can always change", &settings.filesystem.allow_write));
    lines.extend(path_list("It can always read", &settings.filesystem.allow_read));
    lines.push(match &settings.network {
        None => "It has no network.".to_owned(),
        Some(network) if network.is_closed() => "It has no network.".to_owned(),
        Some(network) => self::network(network, access == ServerAccess::Ask && check_tun().is_ok()),
    });
    lines
}

/// Describes the network. `has_tun` is `true` if programs that ignore the proxy variables have it too.
fn network(network: &NetworkSettings, has_tun: bool) -> String {
    let hosts = network.allowed_domains.join("`, `");
    match (network.allowed_domains.is_empty(), network.ask_unknown) {
        (true, _) => {
            let limit =
                if has_tun { "" } else { " Programs in it that ignore the proxy variables cannot connect." };
            format!(
                "You are asked about each host that it connects to, and about each port of this computer.{limit}"
            )
        }
        (false, true) => format!("It can reach `{hosts}`, and you are asked about any other host."),
        (false, false) => format!("It can reach `{hosts}`, and no other host."),
    }
}

fn path_list(label: &str, paths: &[String]) -> Option<String> {
    (!paths.is_empty()).then(|| format!("{label} `{}`.", paths.join("`, `")))
}

fn name_list<'a>(label: &str, all: impl Iterator<Item = &'a String>) -> Option<String> {
    let all: Vec<&str> = all.map(String::as_str).collect();
    (!all.is_empty()).then(|| visible::line(&format!("{label}: {}", all.join(", "))))
}

fn download(package: &RequestedPackage) -> String {
    let version = if package.version.is_some() { "" } else { ", the newest version" };
    let registry = match package.registry {
        Registry::Npm => "npm",
        Registry::Pypi => "PyPI",
    };
    let with =
        if package.with.is_empty() { String::new() } else { format!(" and {}", package.with.join(", ")) };
    format!("Downloads: `{package}`{with} from {registry}{version}, and its dependencies")
}

/// Returns a remote server's host and, unless it is the default, its port.
fn host(server: &Server) -> Option<String> {
    let url = server.remote.as_ref()?.url();
    let host = url.host_str().unwrap_or_default();
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

impl UnannotatedCalls {
    /// Evaluates a call to an unannotated tool as the trusted process would if there were no grants.
    #[must_use]
    pub fn judge(trial: &PolicyTrial, server: &str, tool: &str) -> Self {
        // For an annotated tool, evaluates a call with an empty tool name instead, because that name has no annotation.
        let tool = if trial.snapshot.annotations.get(server, tool).is_some() { "" } else { tool };
        match trial.judge(server, tool, &Map::new(), None).outcome {
            Err(denial) if denial.by == DeniedBy::UnknownTool => Self::Refused,
            Err(denial) => Self::Denied(denial.reason.to_string()),
            Ok(explanation) => match explanation.verdict {
                Verdict::Allow(_) => Self::Allowed,
                Verdict::Escalate(_) => Self::Ask,
                Verdict::Deny(denial) => Self::Denied(denial.reason.to_string()),
            },
        }
    }
}

/// Describes to the user how the calls are handled.
impl Display for UnannotatedCalls {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ask => f.write_str("you will be asked at every call"),
            Self::Allowed => f.write_str("calls run without asking while the server can reach nothing, and you will be asked at every call once it can"),
            Self::Refused => f.write_str("calls are refused"),
            Self::Denied(reason) => write!(f, "calls are denied by your policy ({reason})"),
        }
    }
}
