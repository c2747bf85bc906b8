//! Hosts and files to which an inspected server was refused access.
//!
//! - Hosts: the server tried to connect to them, but its entry does not allow them.
//! - Files: the server printed operating system errors that name them. These are guesses for display, and grant
//!   nothing.

use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, ConnectionVerdict, Connections, HostRules, Proxy, ProxyLimits, Record,
    RecordError, SystemResolver,
};
use ironcurtain_server::network::{RunningProxy, ServesNetwork};
use ironcurtain_visible as visible;
use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// Maximum number of reported hosts, and of reported files.
const MAX_COUNT: usize = 20;

/// Error messages that programs print when they cannot access a file.
const ACCESS_ERRORS: [&str; 9] = [
    "EROFS",
    "EACCES",
    "EPERM",
    "ENOENT",
    "Read-only file system",
    "Permission denied",
    "No such file or directory",
    "read-only file system",
    "permission denied",
];

/// Hosts and files to which a server was refused access.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RefusedAccess {
    /// Refused hosts, with their ports.
    pub hosts: BTreeSet<String>,
    /// Files and folders that the server's errors mention.
    pub files: BTreeSet<String>,
    /// Sentences about autostart files that the server left behind.
    pub autostart_notices: Vec<String>,
}

impl RefusedAccess {
    /// Returns `true` if nothing was refused or left behind.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty() && self.files.is_empty() && self.autostart_notices.is_empty()
    }

    /// Returns a sentence for each item.
    #[must_use]
    pub fn describe(&self, home: &Path) -> Vec<String> {
        let home = home.to_str().unwrap_or_default();
        let shortened = |path: &String| match path.strip_prefix(home).filter(|rest| rest.starts_with('/')) {
            Some(rest) if !home.is_empty() => format!("~{rest}"),
            _ => path.clone(),
        };
        let hosts = self.hosts.iter().map(|host| format!("it wants to reach `{}`", visible::line(host)));
        let files = self
            .files
            .iter()
            .map(|file| format!("it wants the file or folder `{}`", visible::path(&shortened(file))));
        hosts.chain(files).chain(self.autostart_notices.iter().map(|notice| visible::line(notice))).collect()
    }
}

/// Extracts the paths from a program's file errors.
pub(super) fn files(stderr: &str) -> BTreeSet<String> {
    let refused = stderr.lines().filter(|line| ACCESS_ERRORS.iter().any(|words| line.contains(words)));
    refused
        .flat_map(|line| line.split(['\'', '"', '`']))
        .filter(|word| is_file(word))
        .take(MAX_COUNT)
        .map(str::to_owned)
        .collect()
}

fn is_file(word: &str) -> bool {
    word.len() > 1 && word.len() < 1000 && word.starts_with('/') && !word.contains(['\n', '\0'])
}

/// Network for an inspected server. Allows the hosts in the server's entry, and refuses and records all others.
pub(super) struct TrialNetwork {
    server: String,
    rules: watch::Receiver<Arc<HostRules>>,
    _rules_sender: watch::Sender<Arc<HostRules>>,
    log: Arc<ConnectionLog>,
}

impl TrialNetwork {
    pub(super) fn new(server: &str, rules: HostRules) -> Self {
        let (sender, rules) = watch::channel(Arc::new(rules));
        Self { server: server.to_owned(), rules, _rules_sender: sender, log: Arc::default() }
    }

    /// Returns the hosts to which connections were refused.
    pub(super) fn refused(&self) -> BTreeSet<String> {
        lock(&self.log.refused).clone()
    }

    /// Returns the first reason an allowed connection failed, to be appended to an error message. Returns an empty
    /// string if no connection failed.
    pub(super) fn failure_note(&self) -> String {
        let reason = lock(&self.log.first_failure).clone();
        reason.map(|reason| format!("; a connection failed: {reason}")).unwrap_or_default()
    }
}

impl ServesNetwork for TrialNetwork {
    fn serve(&self, listener: TcpListener) -> RunningProxy {
        let proxy = Proxy {
            server: self.server.clone(),
            rules: self.rules.clone(),
            ask: None,
            record: self.log.clone(),
            resolve: Arc::new(SystemResolver::default()),
            limits: ProxyLimits::default(),
            connections: Connections::default(),
        };
        RunningProxy::start(listener, proxy)
    }
}

#[derive(Default)]
struct ConnectionLog {
    refused: Mutex<BTreeSet<String>>,
    /// Reason for the first failure.
    first_failure: Mutex<Option<String>>,
}

impl Record for ConnectionLog {
    fn record(&self, event: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        match event.verdict {
            ConnectionVerdict::Allowed(_) => {}
            ConnectionVerdict::Refused { .. } => {
                let mut refused = lock(&self.refused);
                if refused.len() < MAX_COUNT {
                    refused.insert(format!("{}:{}", event.host, event.port));
                }
            }
            ConnectionVerdict::Failed { reason, .. } => {
                lock(&self.first_failure).get_or_insert_with(|| visible::line(&reason));
            }
        }
        Box::pin(std::future::ready(Ok(())))
    }
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_from_error_messages() {
        let stderr = "listening\nError: EROFS: read-only file system, mkdir '/home/u/.cache/x'\n\
            PermissionError: [Errno 13] Permission denied: '/var/y'\nread \"/etc/hosts\"\nENOENT: 'relative'";
        let wants = RefusedAccess { files: files(stderr), ..RefusedAccess::default() };
        let words = ["it wants the file or folder `/var/y`", "it wants the file or folder `~/.cache/x`"];
        let mut lines = wants.describe(Path::new("/home/u"));
        lines.sort();
        assert_eq!(lines, words);
        assert!(
            RefusedAccess { files: files("all is well at '/home/u'"), ..RefusedAccess::default() }.is_empty()
        );
    }
    #[test]
    fn the_first_failed_connection_is_named() {
        let network = TrialNetwork::new("far", HostRules::default());
        let log = |host: &str, verdict| {
            let (server, host) = ("far".to_owned(), host.to_owned());
            let protocol = ironcurtain_egress::Protocol::Connect;
            drop(network.log.record(ConnectionEvent {
                server,
                protocol,
                host,
                port: 443,
                verdict,
                addresses: vec![],
            }));
        };
        log("a.example", ConnectionVerdict::Refused { code: "unlisted", reason: "no rule".into() });
        assert_eq!(network.failure_note(), "");
        for host in ["b.example", "c.example"] {
            let reason = format!("`{host}` cannot be resolved");
            log(host, ConnectionVerdict::Failed { code: "unresolvable", reason });
        }
        assert_eq!(network.failure_note(), "; a connection failed: `b.example` cannot be resolved");
        assert_eq!(network.refused(), BTreeSet::from(["a.example:443".to_owned()]));
    }
}
