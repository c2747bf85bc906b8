//! The programs under test, the helper programs and the directory that contains the scenes.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use ironcurtain_testkit::programs::{built, is_root};
use tempfile::TempDir;

/// Environment variable with the folder of the programs, if the programs were copied for another user.
const COPIES: &str = "ESCAPE_SUITE_PROGRAMS";

/// User ids for attacks. The users need not exist. Each group has its own user, so that attacks without a sandbox do
/// not affect other groups.
const USERS: std::ops::Range<u32> = 64_000..64_100;

/// The programs, and the directory that contains the scenes.
pub(crate) struct Tools {
    pub(crate) sandbox: String,
    pub(crate) probe: String,
    pub(crate) launch: String,
    /// Directory that contains the scenes. It is not below `/tmp`, which is private and writable in a sandbox.
    pub(crate) place: PathBuf,
}

impl Tools {
    /// Finds the programs next to this one, or in the folder of copies.
    pub(crate) fn find() -> Self {
        let (programs, place) = match env::var_os(COPIES).map(PathBuf::from) {
            Some(copies) => (copies.clone(), copies.join("scenes")),
            None => (built(), PathBuf::from("/var/tmp")),
        };
        let program = |name: &str| {
            let found = [programs.join(name), programs.join("examples").join(name)];
            let found = found.into_iter().find(|path| path.exists());
            found.unwrap_or_else(|| {
                panic!("`{name}` is missing: build this crate's programs and examples first")
            })
        };
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        Self {
            sandbox: text(program("ironcurtain-sandbox")),
            probe: text(program("escape-probe")),
            launch: text(program("escape-launch")),
            place,
        }
    }
}

impl Tools {
    /// Locks the user id, so that groups with the same id run one after another.
    pub(crate) fn turn(&self) -> Option<fs::File> {
        if is_root() || env::var_os(COPIES).is_some() {
            return None;
        }
        let user = rustix::process::getuid().as_raw();
        let file = fs::File::create(self.place.join(format!("ironcurtain-escape-suite-{user}"))).unwrap();
        file.lock().unwrap();
        Some(file)
    }
}

/// Copies of the programs that all users can run, and a scene directory owned by an ordinary user.
pub(crate) struct Copies {
    dir: TempDir,
    user: u32,
    /// Lock that reserves the user id.
    _held: fs::File,
}

/// Reserves this user id. Returns `None` if the id is in use.
fn free(user: u32) -> Option<(u32, fs::File)> {
    let file = fs::File::create(format!("/var/tmp/ironcurtain-escape-user-{user}")).ok()?;
    file.try_lock().is_ok().then_some((user, file))
}

impl Copies {
    pub(crate) fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("ic").tempdir_in("/var/tmp").unwrap();
        fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let tools = Tools::find();
        let own = env::current_exe().unwrap();
        for program in [own.as_path(), tools.sandbox.as_ref(), tools.probe.as_ref(), tools.launch.as_ref()] {
            fs::copy(program, dir.path().join(program.file_name().unwrap())).unwrap();
        }
        let place = dir.path().join("scenes");
        fs::create_dir(&place).unwrap();
        let (user, held) = USERS.clone().find_map(free).unwrap();
        chown(&place, Some(user), Some(user)).unwrap();
        // Creates a setuid-root program that only the ordinary user can run.
        let trap = dir.path().join("becomes-root");
        fs::copy(&tools.probe, &trap).unwrap();
        chown(&trap, None, Some(user)).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o4750)).unwrap();
        Self { dir, user, _held: held }
    }

    /// Returns the command that restarts this program as the ordinary user.
    pub(crate) fn own_program(&self) -> Command {
        let id = self.user.to_string();
        let own = env::current_exe().unwrap();
        let mut command = Command::new("setpriv");
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--inh-caps=-all", "--"]);
        command.arg(self.dir.path().join(Path::new(own.file_name().unwrap())));
        command.env(COPIES, self.dir.path());
        command
    }
}
