//! Plain values to show to people. The command line prints them, the settings window draws them.
//!
//! Times are milliseconds since the Unix epoch; paths are canonical and complete.

use serde::{Deserialize, Serialize};

/// The state of protection right now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Everything works.
    Protecting,
    /// A question waits for the person.
    Asking,
    /// Everything that needs the person's word is denied, by their wish.
    Lockdown,
    /// Something is wrong; `StatusView::troubles` says what. Calls are denied rather than let through.
    Degraded,
}

/// The place at which the user is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AskedOn {
    /// In a dialog of the app.
    #[default]
    App,
    /// On the terminal that the trusted process was started on.
    Terminal,
    /// Nowhere: what needs approval is denied.
    Nobody,
}

/// State of the trusted process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusView {
    /// One word for the tray.
    pub protection: Protection,
    /// Process id of the daemon.
    pub pid: u32,
    /// Program version.
    pub version: String,
    /// When the daemon started.
    pub started_ms: u64,
    /// Live sessions.
    pub sessions: usize,
    /// Questions that wait for the person.
    pub questions: usize,
    /// The place at which the user is asked.
    pub asked_on: AskedOn,
    /// Lockdown is on: everything that needs approval is denied.
    pub lockdown: bool,
    /// Troubles, in sentences for people; empty when there are none.
    pub troubles: Vec<String>,
    /// Names of the configured servers.
    pub servers: Vec<String>,
    /// SHA-256 of the policy in force, as the audit log names it.
    pub policy: String,
    /// The encrypted file that has the secrets of servers; nothing where the keyring is their place.
    pub secrets_file: Option<SecretsFileView>,
    /// Says that other settings than those of the user's account are in use, and what chose them.
    pub other_home: Option<String>,
}

/// The encrypted file of secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretsFileView {
    /// Its path.
    pub path: String,
    /// Nobody has typed its passphrase since the trusted process started.
    pub locked: bool,
}

/// One process of the chain that started the shim, as the kernel tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessView {
    /// Process id.
    pub pid: u32,
    /// Its executable, if it could be read.
    pub exe: Option<String>,
    /// Its short name.
    pub name: String,
}

/// Who is calling.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientView {
    /// A name for people, from the proved executable; words that say so where there is none.
    pub name: String,
    /// The program that started the shim, proved by the kernel.
    pub exe: Option<String>,
    /// Who started whom: the client first, then its parents.
    pub chain: Vec<ProcessView>,
    /// Working directory of the shim.
    pub cwd: Option<String>,
    /// Its own name in the protocol. Unproved: show it as "says it is".
    pub says_it_is: Option<String>,
    /// The label on its command line. Unproved, since whoever starts the shim writes it: show it as "calls itself".
    pub label: Option<String>,
}

/// A directory a session's server is told of, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootView {
    /// The directory.
    pub path: String,
    /// Its origin, in words ("what you granted for this session").
    pub source: String,
    /// The grant behind it, if one is: revoking it takes the root away.
    pub grant: Option<String>,
}

/// One live session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionView {
    /// Session id.
    pub id: String,
    /// Who is calling.
    pub client: ClientView,
    /// The server it uses.
    pub server: String,
    /// The connection that this session is a part of, where one entry of a client has several servers behind it.
    #[serde(default)]
    pub connection: Option<String>,
    /// Why the server does not run, if it does not.
    #[serde(default)]
    pub trouble: Option<String>,
    /// The number of times that the server was started again.
    #[serde(default)]
    pub restarts: u64,
    /// The server runs in an OS sandbox.
    pub sandboxed: bool,
    /// The server runs elsewhere, where it cannot be sandboxed.
    #[serde(default)]
    pub remote: bool,
    /// Process id of the server's sandbox supervisor, while it runs.
    pub server_pid: Option<u32>,
    /// When it began.
    pub started_ms: u64,
    /// The session sandbox directory.
    pub sandbox_dir: String,
    /// Calls allowed, by policy or by the person.
    pub allowed: u64,
    /// Calls denied.
    pub denied: u64,
    /// Calls that became a question.
    pub asked: u64,
    /// Effective roots, the session sandbox first.
    pub roots: Vec<RootView>,
    /// Files left so far that run later, and about which the person has not said anything.
    pub left: usize,
    /// The person has paused it: everything it asks for is denied.
    pub paused: bool,
}

/// A session, live or ended, and the files it left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRecordView {
    /// Session id.
    pub id: String,
    /// The client, by name.
    pub client: String,
    /// The server it used.
    pub server: String,
    /// The server ran in an OS sandbox.
    pub sandboxed: bool,
    /// The server ran elsewhere.
    #[serde(default)]
    pub remote: bool,
    /// When it began.
    pub started_ms: u64,
    /// When it ended, if it has.
    pub ended_ms: Option<u64>,
    /// Its folders are still being looked at.
    pub looking: bool,
    /// Files that it left or changed and that the person's own programs run later.
    pub files: Vec<LeftFileView>,
    /// Reasons why not all could be looked at.
    pub unfinished: Vec<String>,
}

/// A file that a session left or changed, and that the person's own programs run later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftFileView {
    /// Its path, to name it in a request.
    pub path: String,
    /// Its path, to show.
    pub shown: String,
    /// Words that end the sentence "this runs ...".
    pub when: String,
    /// It is new.
    pub is_new: bool,
    /// The difference in its text, where it is known.
    pub diff: Option<String>,
    /// Its fate so far.
    pub state: LeftState,
    /// The path in quarantine, if it was moved there and is there still.
    pub moved_to: Option<String>,
    /// Something stands at its path while it is in quarantine.
    #[serde(default)]
    pub occupied: bool,
    /// Keys of a git configuration that were put back.
    pub keys: Vec<String>,
    /// When it was seen last.
    pub time_ms: u64,
}

/// The fate of a file that a session left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftState {
    /// It is where it was left, and the person has not said what to do with it.
    Left,
    /// The person keeps it.
    Kept,
    /// It was moved to where nothing runs it.
    Quarantined,
    /// It was put back from there.
    Returned,
    /// It was put back from there, and what stood at its path is there now.
    Exchanged,
    /// It was deleted from there.
    Deleted,
    /// The dangerous part of it was put back to what it had been.
    PutBack,
}

/// The person's choice about a file that a session left.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LeftChoice {
    /// It stays.
    Keep,
    /// It is moved to where nothing runs it.
    Quarantine,
    /// It is put back from there, unless something stands at its path.
    PutBack,
    /// It is put back from there, and what stands at its path is moved there.
    Exchange,
    /// It is deleted from there.
    Delete,
}

/// One grant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantView {
    /// Grant id.
    pub id: String,
    /// The client it is for, by name.
    pub client: String,
    /// The server it is for.
    pub server: String,
    /// The session it ends with, if it does.
    pub session: Option<String>,
    /// The thing that is granted: a path, a host with its port, or a tool with the values it is bound to.
    pub path: String,
    /// `file`, `folder`, `host` or `tool`.
    pub kind: String,
    /// Any of `read`, `write`, `delete`; for a host, `reach`; for a tool, `use`.
    pub access: Vec<String>,
    /// The lifetime, in words ("this session", "until 14:05", "always").
    pub lifetime: String,
    /// When it ends by the clock, if it does.
    pub expires_ms: Option<u64>,
    /// When it was given.
    pub created_ms: u64,
    /// When it last let a call through.
    pub last_used_ms: Option<u64>,
    /// The number of calls it let through.
    pub uses: u64,
    /// Its origin, in words.
    pub provenance: String,
    /// Why it does not apply just now, if so: its path vanished or became a link, or the server changed.
    pub suspended: Option<String>,
    /// It is suspended because another program has the server's name. The user decides about it for the server.
    #[serde(default)]
    pub server_changed: bool,
    /// Since when it is denied and why that is not stored yet, if it is being taken back.
    #[serde(default)]
    pub ending: Option<String>,
    /// The days for which nothing has used it, once they are many.
    #[serde(default)]
    pub unused_days: Option<u64>,
}

/// One entry of the audit log, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActivityView {
    /// Sequence number in the log.
    pub seq: u64,
    /// When.
    pub time_ms: u64,
    /// Kind of entry: `decision`, `outcome`, `question`, `answer`, `grant`, `revoked`, `session`, ...
    pub event: String,
    /// The session, if one is concerned.
    pub session: Option<String>,
    /// The client's name, if one is concerned.
    pub client: Option<String>,
    /// The server, if one is concerned.
    pub server: Option<String>,
    /// The tool, if one is concerned.
    pub tool: Option<String>,
    /// `allow`, `deny` or `escalate`, for decisions and answers.
    pub decision: Option<String>,
    /// The ground of a decision: `rule`, `answer`, `grant`, `session-folder`, ...
    #[serde(default)]
    pub decided_by: Option<String>,
    /// The sentence a person reads.
    pub summary: String,
    /// Paths concerned.
    pub paths: Vec<String>,
}

/// Result of checking the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditCheckView {
    /// Every link of the chain holds.
    pub intact: bool,
    /// Entries read.
    pub entries: u64,
    /// The first problem, and where it is. With an intact chain, why entries may be missing from its end.
    pub problem: Option<String>,
    /// Who knows the newest entry that must be there, in words; nobody where it is empty.
    #[serde(default)]
    pub known_by: String,
}
