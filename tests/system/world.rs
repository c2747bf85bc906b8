//! A user's machine in a temporary directory, with the daemon inside the test process.

use crate::client::Client;
use crate::scripted_user::ScriptedUser;
use crate::test_home::{Prepared, TestHome};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::{Daemon, DaemonOptions, start};
use ironcurtain_protocol::{
    ActivityView, AuditCheckView, GrantView, QuestionsView, Reply, Request, SessionView, StatusView,
};
use ironcurtain_testkit::programs::built;
pub use ironcurtain_testkit::{programs::is_root, wait::eventually};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

pub struct World {
    pub user: Arc<ScriptedUser>,
    pub daemon: Daemon,
    pub home: Home,
    pub programs: PathBuf,
    runtime: Option<Runtime>,
    place: TestHome,
}

impl World {
    pub fn new() -> Self {
        Self::with(|_| {})
    }

    /// Creates a test environment. `prepare` prepares its files before the daemon starts.
    pub fn with(prepare: impl FnOnce(&Prepared)) -> Self {
        Self::with_programs(programs(), prepare)
    }

    /// Creates a test environment with these helper programs.
    pub fn with_programs(programs: PathBuf, prepare: impl FnOnce(&Prepared)) -> Self {
        Self::of(TestHome::new(prepare), programs, ScriptedUser::default())
    }

    /// Creates a test environment with this home directory and this user.
    pub fn of(place: TestHome, programs: PathBuf, user: ScriptedUser) -> Self {
        let (home, user) = (place.home.clone(), Arc::new(user));
        let (runtime, daemon) = start_daemon(&home, &programs, &user);
        Self { user, daemon, home, programs, runtime: Some(runtime), place }
    }

    /// Stops the daemon and starts it again.
    pub fn restart(&mut self) {
        self.restart_after(|| {});
    }

    /// Like [`World::restart`], but calls `between` while the daemon is stopped.
    pub fn restart_after(&mut self, between: impl FnOnce()) {
        self.end();
        between();
        let (runtime, daemon) = start_daemon(&self.home, &self.programs, &self.user);
        (self.runtime, self.daemon) = (Some(runtime), daemon);
    }

    fn end(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.block_on(async {
                self.daemon.request(Request::Shutdown).await;
                self.daemon.ended().await;
            });
            runtime.shutdown_timeout(Duration::from_secs(5));
        }
    }

    /// Returns a path in the user's home directory.
    pub fn path(&self, below: &str) -> PathBuf {
        self.home.user_home.join(below)
    }

    /// Creates a file in the user's home directory.
    pub fn file(&self, below: &str, content: &str) -> PathBuf {
        self.place.file(below, content)
    }

    pub fn connect(&self, server: &str) -> Client {
        Client::connect(&self.programs, &self.ours(), server)
    }

    /// Connects a client that stops reading after the handshake.
    pub fn connect_non_reading(&self, server: &str) -> Client {
        Client::connect_non_reading(&self.programs, &self.ours(), server)
    }

    pub fn start(&self, server: &str) -> Client {
        Client::start(&self.programs, &self.ours(), server)
    }

    /// Returns the directory that `IRONCURTAIN_HOME` names.
    pub fn ours(&self) -> PathBuf {
        self.place.ours()
    }

    pub fn request(&self, request: Request) -> Reply {
        self.wait(self.daemon.request(request))
    }

    /// Runs one of the daemon's futures to completion.
    pub fn wait<T>(&self, doing: impl Future<Output = T>) -> T {
        self.runtime.as_ref().unwrap().block_on(doing)
    }

    pub fn status(&self) -> StatusView {
        match self.request(Request::Status) {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    pub fn questions(&self) -> QuestionsView {
        match self.request(Request::Questions) {
            Reply::Questions(questions) => questions,
            other => panic!("{other:?}"),
        }
    }

    /// Shows the only expired question again, as a user would.
    pub fn ask_again(&self) -> bool {
        let missed = self.questions().missed;
        assert_eq!(missed.len(), 1, "{missed:?}");
        self.runtime.as_ref().unwrap().block_on(self.daemon.ask_again(&missed[0].id)).unwrap()
    }

    pub fn sessions(&self) -> Vec<SessionView> {
        match self.request(Request::Sessions) {
            Reply::Sessions(sessions) => sessions,
            other => panic!("{other:?}"),
        }
    }

    pub fn grants(&self) -> Vec<GrantView> {
        match self.request(Request::Grants) {
            Reply::Grants(grants) => grants,
            other => panic!("{other:?}"),
        }
    }

    /// Revokes the only grant. Returns the sessions whose server was restarted.
    pub fn revoke_only_grant(&self) -> Vec<String> {
        let grants = self.grants();
        assert_eq!(grants.len(), 1, "{grants:?}");
        match self.request(Request::Revoke { grant: grants[0].id.clone() }) {
            Reply::Revoked { restarted, .. } => restarted,
            other => panic!("{other:?}"),
        }
    }

    pub fn activity(&self) -> Vec<ActivityView> {
        match self.request(Request::Activity { limit: 10_000 }) {
            Reply::Activity(entries) => entries,
            other => panic!("{other:?}"),
        }
    }

    pub fn audit(&self) -> AuditCheckView {
        match self.request(Request::VerifyAudit) {
            Reply::Audit(check) => check,
            other => panic!("{other:?}"),
        }
    }

    /// Returns the audit log without an incomplete last line.
    pub fn log(&self) -> String {
        let mut log = std::fs::read(self.home.audit().join("audit.jsonl")).unwrap();
        log.truncate(log.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
        String::from_utf8(log).unwrap()
    }

    /// Returns the only session's session folder.
    pub fn sandbox(&self) -> PathBuf {
        let sessions = self.sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        PathBuf::from(&sessions[0].sandbox_dir)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.tell();
        }
        self.end();
    }
}

impl World {
    /// Prints the last lines of the audit log and of the server logs.
    fn tell(&self) {
        const LAST: usize = 12;
        let sessions = std::fs::read_dir(self.home.sessions()).into_iter().flatten().flatten();
        let logs = sessions.map(|session| session.path().join("session.log"));
        for file in logs.chain([self.home.audit().join("audit.jsonl")]) {
            let text = std::fs::read_to_string(&file).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            let last = lines.iter().skip(lines.len().saturating_sub(LAST));
            let told: String = last.map(|line| format!("  {line}\n")).collect();
            let _ = write!(std::io::stderr(), "the end of {}:\n{told}", file.display());
        }
    }
}

fn start_daemon(home: &Home, programs: &Path, user: &Arc<ScriptedUser>) -> (Runtime, Daemon) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let options =
        DaemonOptions { home: home.clone(), programs: programs.to_path_buf(), allow_root: is_root() };
    let daemon = runtime.block_on(start(options, user.clone())).unwrap();
    (runtime, daemon)
}

/// Returns the directory of the programs under test, which `cargo xtask test` has built.
pub fn programs() -> PathBuf {
    let dir = built();
    for name in ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem", "ironcurtain"] {
        assert!(dir.join(name).is_file(), "`{name}` is not in `{}`: run `cargo xtask test`", dir.display());
    }
    dir
}

/// Returns the folder into which `cargo xtask test` installs a registry's packages: next to the programs under test,
/// or in the checkout.
pub fn installed(registry: &str) -> PathBuf {
    let checkout = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../target");
    let places = [programs().with_file_name(registry), checkout.join(registry)];
    let found = places.iter().find_map(|place| place.canonicalize().ok());
    found.unwrap_or_else(|| panic!("there is no `{}`: run `cargo xtask test`", places[1].display()))
}
