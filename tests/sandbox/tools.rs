//! The programs under test and beside it, and where scenes are made.

use std::{
    env, fs,
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::Command,
};

use ironcurtain_testkit::programs::{built, is_root};
use tempfile::TempDir;

/// The variable with the folder of the programs, when they were copied for somebody else.
const COPIES: &str = "ESCAPE_SUITE_PROGRAMS";

/// No such users need exist. Each group has one of its own, so that attacks without a sandbox do not reach another's.
const USERS: std::ops::Range<u32> = 64_000..64_100;

/// The programs, and a directory for scenes.
pub(crate) struct Tools {
    pub(crate) sandbox: String,
    pub(crate) probe: String,
    pub(crate) launch: String,
    /// Not below `/tmp`, which is private and writable in a sandbox.
    pub(crate) place: PathBuf,
}

impl Tools {
    /// Finds the programs beside this one, or where they were copied to.
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
    /// Groups that run as the same user take turns, for the same reason.
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

/// Copies of the programs that anybody may run, with a directory for scenes that belongs to an ordinary user.
pub(crate) struct Copies {
    dir: TempDir,
    user: u32,
    /// Nobody else is this user meanwhile.
    _held: fs::File,
}

/// This user, unless somebody else is.
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
        // Runs as root, for that user alone.
        let trap = dir.path().join("becomes-root");
        fs::copy(&tools.probe, &trap).unwrap();
        chown(&trap, None, Some(user)).unwrap();
        fs::set_permissions(&trap, fs::Permissions::from_mode(0o4750)).unwrap();
        Self { dir, user, _held: held }
    }

    /// This very program again, as the ordinary user.
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
