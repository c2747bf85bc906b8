//! Plain values that the command line and the window display.
//!
//! Times are milliseconds since the Unix epoch; paths are canonical and complete.

use serde::{Deserialize, Serialize};

/// Current state of protection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Everything works.
    Protecting,
    /// A question is waiting for the user.
    Asking,
    /// The user turned lockdown on: everything that needs approval is denied.
    Lockdown,
    /// Something is wrong, as listed in [`StatusView::troubles`]. Affected calls are denied.
    Degraded,
}

/// Place where questions are shown to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedOn {
    /// In a dialog of the app.
    #[default]
    App,
    /// On the terminal on which the trusted process was started.
    Terminal,
    /// Nowhere: everything that needs approval is denied.
    Nobody,
}

/// State of the trusted process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// State shown in the tray.
    pub protection: Protection,
    /// Process id of the daemon.
    pub pid: u32,
    /// Program version.
    pub version: String,
    /// Start time of the daemon.
    pub started_ms: u64,
    /// Number of active sessions, runs among them.
    pub sessions: usize,
    /// Number of active runs.
    #[serde(default)]
    pub runs: usize,
    /// Number of sessions that programs in runs opened.
    #[serde(default)]
    pub in_runs: usize,
    /// Number of pending questions.
    pub questions: usize,
    /// Place where questions are shown to the user.
    pub asked_on: AskedOn,
    /// True if lockdown is on: everything that needs approval is denied.
    pub lockdown: bool,
    /// Current problems, as sentences for the user.
    pub troubles: Vec<String>,
    /// Names of the configured servers.
    pub servers: Vec<String>,
    /// SHA-256 of the policy in effect, as in the audit log.
    pub policy: String,
    /// Encrypted file with the secrets of servers; `None` if they are in the keyring.
    pub secrets_file: Option<SecretsFileView>,
    /// Warning that settings other than those of the user's account are in use, and what selected them.
    pub other_home: Option<String>,
}

/// State of the encrypted secrets file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsFileView {
    /// Path of the file.
    pub path: String,
    /// True until the user has typed the passphrase.
    pub locked: bool,
}

/// Process in the chain that started the shim, as reported by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Process id.
    pub pid: u32,
    /// Executable, if it could be read.
    pub exe: Option<String>,
    /// Short name of the process.
    pub name: String,
}

/// Client of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientView {
    /// Display name from the verified executable, or a placeholder for a hidden executable.
    pub name: String,
    /// Program that started the shim, verified through the kernel.
    pub exe: Option<String>,
    /// The client process, followed by its parents.
    pub chain: Vec<ProcessView>,
    /// Working directory of the shim.
    pub cwd: Option<String>,
    /// Name that the client claims in the protocol. Unverified: display it as a claim.
    pub says_it_is: Option<String>,
    /// Label on the shim's command line. Unverified, because any process that starts the shim can set it: display it as a claim.
    pub label: Option<String>,
}

/// Directory that a session's server may use, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootView {
    /// Path of the directory.
    pub path: String,
    /// Origin, in words ("what you granted for this session").
    pub source: String,
    /// Grant that provides it, if any. Revoking the grant removes this root.
    pub grant: Option<String>,
    /// Operations possible there without asking: `read`, `write`, `delete`.
    #[serde(default)]
    pub access: Vec<String>,
}

/// Active session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Session id.
    pub id: String,
    /// Client of the session.
    pub client: ClientView,
    /// Name of the server.
    pub server: String,
    /// Connection that this session shares with sessions of other servers, if a single client entry provides several servers.
    #[serde(default)]
    pub connection: Option<String>,
    /// Run whose program opened the session, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Reason why the server is not running, if it is not.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Number of times the server was restarted.
    #[serde(default)]
    pub restarts: u64,
    /// True if the server runs in an OS sandbox.
    pub sandboxed: bool,
    /// True if the server is remote, where it cannot be sandboxed.
    #[serde(default)]
    pub remote: bool,
    /// Process id of the server's sandbox supervisor, while it runs.
    pub server_pid: Option<u32>,
    /// Start time.
    pub started_ms: u64,
    /// Scratch folder of the session.
    pub sandbox_dir: String,
    /// Number of calls allowed, by policy or by the user.
    pub allowed: u64,
    /// Number of calls denied.
    pub denied: u64,
    /// Number of calls that required approval.
    pub asked: u64,
    /// Effective roots, starting with the session's scratch folder.
    pub roots: Vec<RootView>,
    /// Hosts that the server may reach without asking.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Number of autostart files left behind that the user has not decided about.
    pub left: usize,
    /// True if the user paused the session: all its calls are denied.
    pub paused: bool,
}

/// Active or ended session, and the files it left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecordView {
    /// Session id.
    pub id: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// True if the server ran in an OS sandbox.
    pub sandboxed: bool,
    /// True if the server was remote.
    #[serde(default)]
    pub remote: bool,
    /// Start time.
    pub started_ms: u64,
    /// End time, if the session has ended.
    pub ended_ms: Option<u64>,
    /// True while its folders are being scanned for autostart files.
    pub looking: bool,
    /// Autostart files that it created or changed.
    pub files: Vec<LeftFileView>,
    /// Reasons why some folders could not be scanned.
    pub unfinished: Vec<String>,
}

/// Autostart file that a session created or changed: the user's programs may run it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftFileView {
    /// Path to use in requests.
    pub path: String,
    /// Path to display.
    pub shown: String,
    /// When the file runs; completes the sentence "it runs ...".
    pub when: String,
    /// True if the session created the file.
    pub is_new: bool,
    /// Diff of its text, if known.
    pub diff: Option<String>,
    /// Current state.
    pub state: LeftState,
    /// Path in quarantine, while the file is there.
    pub moved_to: Option<String>,
    /// True if there is another file at its path while it is in quarantine.
    #[serde(default)]
    pub occupied: bool,
    /// Keys of a git configuration that IronCurtain restored.
    pub keys: Vec<String>,
    /// Time of the last change seen.
    pub time_ms: u64,
}

/// State of a file that a session left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftState {
    /// Unchanged since the session; the user has not decided about it.
    Left,
    /// Kept by the user.
    Kept,
    /// Moved to quarantine, where nothing runs it.
    Quarantined,
    /// Put back from quarantine.
    Returned,
    /// Put back from quarantine in exchange for the file that had taken its path.
    Exchanged,
    /// Deleted from quarantine.
    Deleted,
    /// Dangerous settings in it were restored by IronCurtain.
    PutBack,
}

/// The user's choice about a file that a session left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftChoice {
    /// Keep it.
    Keep,
    /// Move it to quarantine.
    Quarantine,
    /// Put it back from quarantine, unless there is another file at its path.
    PutBack,
    /// Put it back from quarantine, and quarantine the file at its path.
    Exchange,
    /// Delete it from quarantine.
    Delete,
}

/// Grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantView {
    /// Grant id.
    pub id: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// Session that the grant ends with, for a session grant.
    pub session: Option<String>,
    /// Granted object: a path, a host with its port, or a tool with the argument values it is limited to.
    pub path: String,
    /// `file`, `folder`, `host` or `tool`.
    pub kind: String,
    /// Any of `read`, `write`, `delete`; for a host, `reach`; for a tool, `use`.
    pub access: Vec<String>,
    /// Lifetime, in words ("this session", "until 14:05", "always").
    pub lifetime: String,
    /// Expiry time, if it expires.
    pub expires_ms: Option<u64>,
    /// Time at which the user gave it.
    pub created_ms: u64,
    /// Time of the last call that it allowed.
    pub last_used_ms: Option<u64>,
    /// Number of calls that it allowed.
    pub uses: u64,
    /// Origin, in words.
    pub provenance: String,
    /// Reason why it currently does not apply: its path was removed or became a symlink, or the server changed.
    pub suspended: Option<String>,
    /// Set if it is suspended because another program has the server's name, which the user decides about.
    #[serde(default)]
    pub server_changed: bool,
    /// While it is being revoked: since when it has been denied, and why that is not saved yet.
    #[serde(default)]
    pub ending: Option<String>,
    /// Number of days since its last use, if that is long ago.
    #[serde(default)]
    pub unused_days: Option<u64>,
}

/// Entry of the audit log, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityView {
    /// Sequence number in the log.
    pub seq: u64,
    /// Time of the entry.
    pub time_ms: u64,
    /// Kind of entry: `decision`, `outcome`, `question`, `answer`, `grant`, `revoked`, `session`, ...
    pub event: String,
    /// Session, if the entry is about one.
    pub session: Option<String>,
    /// Name of the client, if the entry is about one.
    pub client: Option<String>,
    /// Name of the server, if the entry is about one.
    pub server: Option<String>,
    /// Name of the tool, if the entry is about one.
    pub tool: Option<String>,
    /// `allow`, `deny` or `escalate`, for decisions and answers.
    pub decision: Option<String>,
    /// Basis of a decision: `rule`, `answer`, `grant`, `session-folder`, ...
    #[serde(default)]
    pub decided_by: Option<String>,
    /// Summary to display.
    pub summary: String,
    /// Paths that the entry is about.
    pub paths: Vec<String>,
}

/// Result of verifying the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCheckView {
    /// True if the whole hash chain is valid.
    pub intact: bool,
    /// Number of entries read.
    pub entries: u64,
    /// First problem and its location. If the chain is intact, the reason why entries may be missing from its end.
    pub problem: Option<String>,
    /// Sources that confirm the newest entry, in words; empty if there are none.
    #[serde(default)]
    pub known_by: String,
}
