//! Values for display on the command line and in the window.
//!
//! Times are milliseconds since the Unix epoch. Paths are canonical and complete.

use serde::{Deserialize, Serialize};

/// Overall protection state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// No problem, and no question is pending.
    Protecting,
    /// A question is pending.
    Asking,
    /// Lockdown is on: everything that requires approval is denied.
    Lockdown,
    /// There are problems, listed in [`StatusView::troubles`]. Affected calls are denied.
    Degraded,
}

/// Destination of questions to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PromptLocation {
    /// A dialog in the app.
    #[default]
    App,
    /// The terminal on which the trusted process was started.
    Terminal,
    /// The dialog of an attached desktop.
    Desktop,
    /// No destination: everything that requires approval is denied.
    Nobody,
}

/// State of the trusted process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// State shown in the tray.
    pub protection: Protection,
    /// Process id of the daemon.
    pub pid: u32,
    /// Version of the daemon program.
    pub version: String,
    /// Start time of the daemon.
    pub started_ms: u64,
    /// Number of active sessions, including runs.
    pub sessions: usize,
    /// Number of active runs.
    #[serde(default)]
    pub runs: usize,
    /// Number of sessions that programs in runs opened.
    #[serde(default)]
    pub in_runs: usize,
    /// Number of pending questions.
    pub questions: usize,
    /// Destination of questions to the user.
    #[serde(rename = "asked_on")]
    pub prompt_location: PromptLocation,
    /// `true` if lockdown is on: everything that requires approval is denied.
    pub lockdown: bool,
    /// Current problems, as sentences for the user.
    pub troubles: Vec<String>,
    /// The problem in `troubles` that is about the rules of the user's organization.
    #[serde(default)]
    pub managed_trouble: Option<String>,
    /// Names of the configured servers.
    pub servers: Vec<String>,
    /// SHA-256 of the policy in effect, as recorded in the audit log.
    pub policy: String,
    /// Encrypted file that stores the servers' secrets; `None` if the keyring stores them.
    pub secrets_file: Option<SecretsFileView>,
    /// Key of the desktop that is attached to this machine, if any.
    #[serde(default)]
    pub attached_desktop: Option<String>,
    /// Warning that the daemon does not use the settings of the user's account. Names the environment variable or
    /// option that selected other settings. `None` if it uses the account's settings.
    pub other_home: Option<String>,
}

/// State of the encrypted secrets file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsFileView {
    /// Path of the encrypted file.
    pub path: String,
    /// `true` until the user has entered the passphrase.
    pub locked: bool,
}

/// One process in the chain that started the shim, as reported by the kernel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Process id.
    pub pid: u32,
    /// Path of the executable; `None` if it could not be read.
    pub exe: Option<String>,
    /// Short name of the process.
    pub name: String,
}

/// Client of a session. Each field is documented as verified or claimed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientView {
    /// Display name of the client, derived from the verified executable. A placeholder if the executable cannot be
    /// read.
    pub name: String,
    /// Executable that started the shim, verified through the kernel.
    pub exe: Option<String>,
    /// Client process, followed by its ancestors.
    pub chain: Vec<ProcessView>,
    /// Working directory of the shim.
    pub cwd: Option<String>,
    /// Name that the client sends in the protocol. Unverified, so display it as a claim.
    #[serde(rename = "says_it_is")]
    pub claimed_name: Option<String>,
    /// Label on the shim's command line. Unverified, because any process that starts the shim can set it, so display
    /// it as a claim.
    pub label: Option<String>,
}

/// Directory that a session's server may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootView {
    /// Canonical path of the directory.
    pub path: String,
    /// Origin of the permission, in words ("granted by you for this session").
    pub source: String,
    /// Id of the grant that provides this root, if any. Revoking the grant removes the root.
    pub grant: Option<String>,
    /// Operations allowed there without approval: `read`, `write`, `delete`.
    #[serde(default)]
    pub access: Vec<String>,
}

/// Active session, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Session id.
    pub id: String,
    /// Client that opened the session.
    pub client: ClientView,
    /// Name of the server.
    pub server: String,
    /// Connection id. Sessions share the id if one client entry provides several servers.
    #[serde(default)]
    pub connection: Option<String>,
    /// Run that contains the program that opened the session, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Reason the server is not running; `None` if it is running.
    #[serde(default)]
    pub trouble: Option<String>,
    /// Number of times the server was restarted.
    #[serde(default)]
    pub restarts: u64,
    /// `true` if the server runs in an OS sandbox.
    pub sandboxed: bool,
    /// `true` if the server is remote and therefore cannot be sandboxed.
    #[serde(default)]
    pub remote: bool,
    /// Process id of the server's sandbox supervisor; `None` if the server is not running.
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
    /// Other paths that are always accessible, because the server's entry or the run's profile permits them. `/` if the
    /// server can read all files on this computer except protected ones.
    #[serde(default)]
    pub always: Vec<RootView>,
    /// Hosts to which the server may connect without approval.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Number of autostart files left behind by the session that require a decision.
    pub left: usize,
    /// `true` if the user paused the session. All calls of a paused session are denied.
    pub paused: bool,
}

/// Active or ended session, and the autostart files it left behind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecordView {
    /// Session id.
    pub id: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// `true` if the server ran in an OS sandbox.
    pub sandboxed: bool,
    /// `true` if the server was remote.
    #[serde(default)]
    pub remote: bool,
    /// Start time.
    pub started_ms: u64,
    /// End time; `None` while the session is active.
    pub ended_ms: Option<u64>,
    /// `true` while the session's folders are being scanned for autostart files.
    #[serde(rename = "looking")]
    pub is_scanning: bool,
    /// Autostart files that the session created or changed.
    pub files: Vec<AutostartFileView>,
    /// Reasons why folders of the session could not be scanned.
    pub unfinished: Vec<String>,
}

/// Autostart file that a session created or changed: the user's programs may run it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AutostartFileView {
    /// Path that identifies the file in requests.
    pub path: String,
    /// Path as displayed to the user.
    pub shown: String,
    /// When the file runs; completes the sentence "it runs ...".
    pub when: String,
    /// `true` if the session created the file.
    pub is_new: bool,
    /// Diff of the file's text; `None` if it is not available.
    pub diff: Option<String>,
    /// Current state.
    pub state: AutostartFileState,
    /// Path in quarantine; `None` unless the file is quarantined.
    pub moved_to: Option<String>,
    /// `true` if another file now exists at the original path of the quarantined file.
    #[serde(default)]
    pub occupied: bool,
    /// Keys of a Git configuration that IronCurtain restored.
    pub keys: Vec<String>,
    /// Time of the last change that was detected.
    pub time_ms: u64,
}

/// State of a file that a session left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutostartFileState {
    /// In place; the user has not decided yet.
    #[serde(rename = "left")]
    Undecided,
    /// The user chose to keep the file.
    Kept,
    /// Moved to quarantine, where no program runs it.
    Quarantined,
    /// Put back from quarantine.
    Returned,
    /// Put back from quarantine. The file that existed at its path was quarantined.
    Exchanged,
    /// Deleted from quarantine.
    Deleted,
    /// Git configuration in which IronCurtain restored changed settings.
    PutBack,
}

/// The user's choice about a file that a session left behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AutostartFileChoice {
    /// Keep the file where it is.
    Keep,
    /// Move the file to quarantine.
    Quarantine,
    /// Put the file back from quarantine, unless another file now exists at its path.
    PutBack,
    /// Put the file back from quarantine, and quarantine the file that now exists at its path.
    Exchange,
    /// Delete the file from quarantine.
    Delete,
}

/// Permission that the user granted, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantView {
    /// Grant id.
    pub id: String,
    /// Name of the client.
    pub client: String,
    /// Name of the server.
    pub server: String,
    /// Id of the session that the grant is limited to; `None` for other grants.
    pub session: Option<String>,
    /// Object of the grant: a path, a host with its port, or a tool with the argument values that it is limited to.
    pub path: String,
    /// Kind of object: `file`, `folder`, `host` or `tool`.
    pub kind: String,
    /// Granted operations: any of `read`, `write`, `delete`; for a host, `reach`; for a tool, `use`.
    pub access: Vec<String>,
    /// Lifetime, in words ("this session", "until 14:05", "always").
    pub lifetime: String,
    /// Expiry time; `None` if the grant does not expire.
    pub expires_ms: Option<u64>,
    /// Time at which the user created the grant.
    pub created_ms: u64,
    /// Time of the last call that the grant allowed.
    pub last_used_ms: Option<u64>,
    /// Number of calls that the grant allowed.
    pub uses: u64,
    /// Origin of the grant, in words.
    pub provenance: String,
    /// Reason the grant is suspended: its path was removed or became a symlink, or the server changed. `None` if it
    /// is not suspended.
    pub suspended: Option<String>,
    /// `true` if the grant is suspended because the server's name now refers to another program. The user must decide
    /// whether to keep it.
    #[serde(default)]
    pub server_changed: bool,
    /// Description of a revocation in progress: the time since which access is denied, and the reason it is not saved
    /// yet.
    #[serde(default)]
    pub ending: Option<String>,
    /// Number of days since a permanent grant was last used; `None` if it was used recently or is not permanent.
    #[serde(default)]
    pub unused_days: Option<u64>,
}

/// Audit log entry, for display.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityView {
    /// Sequence number in the log.
    pub seq: u64,
    /// Time of the entry.
    pub time_ms: u64,
    /// Kind of entry: `decision`, `outcome`, `question`, `answer`, `grant`, `revoked`, `session`, ...
    pub event: String,
    /// Session id, if the entry concerns a session.
    pub session: Option<String>,
    /// Name of the client, if the entry concerns one.
    pub client: Option<String>,
    /// Name of the server, if the entry concerns one.
    pub server: Option<String>,
    /// Name of the tool, if the entry concerns one.
    pub tool: Option<String>,
    /// `allow`, `deny` or `escalate`; set for decisions and answers only.
    pub decision: Option<String>,
    /// Reason for the decision: `rule`, `answer`, `grant`, `session-folder`, ...
    #[serde(default)]
    pub decided_by: Option<String>,
    /// Summary of the entry, for display.
    pub summary: String,
    /// Paths that the entry concerns.
    pub paths: Vec<String>,
}

/// Ended login to a remote server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedLoginView {
    /// Authorization server.
    pub issuer: String,
    /// `true` if the authorization server has revoked the tokens.
    pub is_revoked: bool,
}

/// Result of verifying the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCheckView {
    /// `true` if the whole hash chain is valid.
    pub intact: bool,
    /// Number of entries read.
    pub entries: u64,
    /// First problem and its location. If the chain is intact, the reason why entries may be missing from its end, if
    /// any.
    pub problem: Option<String>,
    /// Sources that confirm the newest entry, in words; empty if there are none.
    #[serde(default, rename = "known_by")]
    pub verified_by: String,
}
