//! Control groups, which enforce limits on all processes of a sandbox together.
//!
//! - Requires cgroup v2 and a subtree that contains no other process, or that systemd delegates. Without such a
//!   subtree, limits apply to each process separately.
//! - The subtree is looked up once per process. The process moves into a group next to the groups of its sandboxes, so
//!   launching a sandbox needs no request to systemd.
//! - INVARIANT: bubblewrap joins the group before it creates anything, through a descriptor that no later process
//!   inherits. Control groups are not writable inside the sandbox.

mod systemd;

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::fd::{AsFd, OwnedFd},
    path::{Path, PathBuf},
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::{Deserialize, Serialize};

use crate::spec::ResourceLimits;

/// Limits that a control group enforces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupLimits {
    pub(crate) memory: bool,
    pub(crate) cpu: bool,
    pub(crate) processes: bool,
}

/// Cgroup subtree in which this process is allowed to create groups.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CgroupRoot {
    dir: PathBuf,
    available: CgroupLimits,
}

/// Control group of one sandbox, removed on drop.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
    enforced: CgroupLimits,
}

/// Maximum number of times to wait [`STEP_NANOSECONDS`] for the last process to exit.
const STEPS: u32 = 100;
const STEP_NANOSECONDS: i64 = 20_000_000;

/// Sets up control groups, if the system supports them so that limits apply to a sandbox as a whole. If this process
/// shares its control group with others, requests a scope from systemd.
///
/// Long-lived programs call this once at startup. The call can take tens of milliseconds.
pub fn prepare_control_groups() {
    let own = |own: &Path| CgroupRoot::take_over(own).ok().flatten();
    CgroupRoot::find_with(|here| own(here).or_else(|| own(&systemd::request_scope(here, own_dir)?)));
}

impl CgroupRoot {
    /// Returns this process's subtree, or `None` if control groups are unavailable.
    pub(crate) fn find() -> Option<&'static Self> {
        Self::find_with(|own| Self::take_over(own).ok().flatten())
    }

    /// Returns the subtree that `find` finds and caches the result of the first call. An unavailable subtree is not an
    /// error: limits then apply per process, and are reported as such.
    fn find_with(find: impl FnOnce(&Path) -> Option<Self>) -> Option<&'static Self> {
        static ROOT: OnceLock<Option<CgroupRoot>> = OnceLock::new();
        ROOT.get_or_init(|| find(&own_dir()?)).as_ref()
    }

    /// Takes over this process's control group `dir`. Returns `None` if other processes are in the group or
    /// controllers are missing.
    fn take_over(dir: &Path) -> io::Result<Option<Self>> {
        let controllers = fs::read_to_string(dir.join("cgroup.controllers"))?;
        let is_offered = |name: &str| controllers.split_whitespace().any(|other| other == name);
        let own = std::process::id().to_string();
        let is_exclusive = fs::read_to_string(dir.join("cgroup.procs"))?.lines().all(|pid| pid == own);
        if !(is_exclusive && (is_offered("memory") || is_offered("pids"))) {
            return Ok(None);
        }
        // Cgroup v2 allows no processes in a group that has child groups.
        let own_group = dir.join("trusted");
        if let Err(error) = fs::create_dir(&own_group)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        write(&own_group, "cgroup.procs", &own)?;
        let enable = |name: &str| {
            is_offered(name) && write(dir, "cgroup.subtree_control", &format!("+{name}")).is_ok()
        };
        let available =
            CgroupLimits { memory: enable("memory"), cpu: enable("cpu"), processes: enable("pids") };
        Ok((available != CgroupLimits::default()).then(|| Self { dir: dir.to_owned(), available }))
    }

    /// Creates a group with the given limits. Limits without an available controller are skipped.
    pub(crate) fn create_group(&self, limits: &ResourceLimits) -> io::Result<Cgroup> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(format!("sandbox-{}-{number}", std::process::id()));
        fs::create_dir(&dir)?;
        // Dropping `group` removes the directory, even if setting a limit fails.
        let mut group = Cgroup { dir, enforced: CgroupLimits::default() };
        if let Some(bytes) = limits.memory.filter(|_| self.available.memory) {
            write(&group.dir, "memory.max", &bytes.to_string())?;
            // Disable swap and kill the whole group on OOM. Older kernels do not have these files.
            let _ = write(&group.dir, "memory.swap.max", "0");
            let _ = write(&group.dir, "memory.oom.group", "1");
            group.enforced.memory = true;
        }
        if let Some(percent) = limits.cpu.filter(|_| self.available.cpu) {
            const PERIOD: u64 = 100_000;
            write(&group.dir, "cpu.max", &format!("{} {PERIOD}", u64::from(percent) * PERIOD / 100))?;
            group.enforced.cpu = true;
        }
        if let Some(count) = limits.processes.filter(|_| self.available.processes) {
            write(&group.dir, "pids.max", &count.to_string())?;
            group.enforced.processes = true;
        }
        Ok(group)
    }
}

impl Cgroup {
    /// Returns the limits that the group enforces.
    pub(crate) fn enforced(&self) -> CgroupLimits {
        self.enforced
    }

    /// Opens `cgroup.procs`. A process joins the group by writing `0` to it.
    pub(crate) fn open_procs(&self) -> io::Result<OwnedFd> {
        Ok(OpenOptions::new().write(true).open(self.dir.join("cgroup.procs"))?.into())
    }
}

impl Drop for Cgroup {
    /// Waits for the last process of the killed sandbox to exit, then removes the group.
    fn drop(&mut self) {
        for _ in 0..STEPS {
            // Reads first, because `poll` reports changes since the last read.
            let events = File::open(self.dir.join("cgroup.events"))
                .and_then(|mut events| io::copy(&mut events, &mut io::sink()).map(|_| events));
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            let Ok(events) = events else { return };
            let step = Timespec { tv_sec: 0, tv_nsec: STEP_NANOSECONDS };
            // Ignores the error: the next attempt notices any missed change.
            let _ = poll(&mut [PollFd::new(&events.as_fd(), PollFlags::PRI)], Some(&step));
        }
    }
}

/// Moves the calling process into a group. `procs_file` is the group's open `cgroup.procs`.
pub(crate) fn join(procs_file: &OwnedFd) -> io::Result<()> {
    rustix::io::write(procs_file, b"0").map(drop).map_err(|error| {
        io::Error::other(format!("failed to join the control group: {}", io::Error::from(error)))
    })
}

/// Returns the path of this process's control group.
fn own_dir() -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    cgroup_dir(&table, &own)
}

fn cgroup_dir(mountinfo: &str, own: &str) -> Option<PathBuf> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::"))?;
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut fields = before.split(' ').skip(3);
        let (root, point) = (fields.next()?, fields.next()?);
        let below = Path::new(own).strip_prefix(root).ok()?;
        after.starts_with("cgroup2 ").then(|| Path::new(point).join(below))
    })
}

fn write(dir: &Path, name: &str, text: &str) -> io::Result<()> {
    let at =
        |error: io::Error| io::Error::new(error.kind(), format!("`{}`: {error}", dir.join(name).display()));
    let mut file = OpenOptions::new().write(true).open(dir.join(name)).map_err(at)?;
    io::Write::write_all(&mut file, text.as_bytes()).map_err(at)
}

#[cfg(test)]
impl CgroupRoot {
    /// Creates a subtree without controllers. Returns `None` if the user is not allowed to create control groups.
    pub(crate) fn without_controllers() -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = own_dir()?.join(format!("ironcurtain-test-{}-{number}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self { dir, available: CgroupLimits::default() })
    }

    /// Returns the path of the subtree.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: CgroupLimits = CgroupLimits { memory: true, cpu: true, processes: true };

    /// Creates files that imitate a control group, because not every machine permits tests to create one.
    fn files(controllers: &str, processes: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write_file = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        write_file("cgroup.controllers", controllers);
        write_file("cgroup.procs", processes);
        write_file("cgroup.subtree_control", "");
        fs::create_dir(dir.path().join("trusted")).unwrap();
        write_file("trusted/cgroup.procs", "");
        dir
    }

    #[test]
    fn takes_over_exclusive_group() {
        let own = std::process::id().to_string();
        let dir = files("cpuset cpu memory pids", &format!("{own}\n"));
        let root = CgroupRoot::take_over(dir.path()).unwrap().unwrap();
        assert_eq!(root, CgroupRoot { dir: dir.path().to_owned(), available: ALL });
        assert_eq!(fs::read_to_string(dir.path().join("trusted/cgroup.procs")).unwrap(), own);
    }

    #[test]
    fn ignores_shared_group_or_group_without_controllers() {
        let own = std::process::id();
        for (controllers, processes) in
            [("memory pids", format!("1\n{own}\n")), ("hugetlb", format!("{own}\n"))]
        {
            let dir = files(controllers, &processes);
            assert_eq!(CgroupRoot::take_over(dir.path()).unwrap(), None, "{controllers}");
            assert_eq!(fs::read_to_string(dir.path().join("trusted/cgroup.procs")).unwrap(), "");
        }
    }

    #[test]
    fn failing_limit_removes_the_group() {
        let dir = tempfile::tempdir().unwrap();
        let root = CgroupRoot { dir: dir.path().to_owned(), available: ALL };
        let error = root.create_group(&ResourceLimits::default()).unwrap_err().to_string();
        assert!(error.contains("memory.max"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let none = CgroupRoot { available: CgroupLimits::default(), ..root };
        assert_eq!(
            none.create_group(&ResourceLimits::default()).unwrap().enforced(),
            CgroupLimits::default()
        );
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn process_joins_and_group_is_removed_on_exit() {
        let Some(root) = CgroupRoot::without_controllers() else {
            // Without a writable hierarchy, `at` must not find a subtree either.
            assert_eq!(own_dir().and_then(|own| CgroupRoot::take_over(&own).ok().flatten()), None);
            return;
        };
        let group = root.create_group(&ResourceLimits::default()).unwrap();
        let group_dir = group.dir.clone();
        let procs_file = group.open_procs().unwrap();
        let mut command = std::process::Command::new("cat");
        crate::sys::process::prepare(command.stdin(std::process::Stdio::piped()), move || join(&procs_file));
        let mut child = command.spawn().unwrap();
        let members = fs::read_to_string(group_dir.join("cgroup.procs")).unwrap();
        assert_eq!(members, format!("{}\n", child.id()));
        // The process exits while the group is being removed, as in a sandbox.
        drop(child.stdin.take());
        drop(group);
        assert!(!group_dir.exists());
        assert!(child.wait().unwrap().success());
        fs::remove_dir(root.dir).unwrap();
    }

    #[test]
    fn finds_own_directory_in_mounted_hierarchy() {
        let table = "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                     31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let own = "3:pids:/x\n0::/user.slice/a.scope\n";
        assert_eq!(cgroup_dir(table, own), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        let bound = table.replace("0:27 / ", "0:27 /user.slice ");
        assert_eq!(cgroup_dir(&bound, own), Some("/sys/fs/cgroup/a.scope".into()));
        assert_eq!(cgroup_dir(table, "3:pids:/x\n"), None);
        assert_eq!(cgroup_dir("", own), None);
    }
}
