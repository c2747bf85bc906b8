//! The control group of a sandbox, so that its limits hold for all of its processes together.
//!
//! - Version 2 only, and only in a part of the hierarchy that is the launching process's own: where nobody else is, or
//!   which systemd gives it on request. Elsewhere there is none, and each process is limited for itself.
//! - Looked for once per launching process, which then moves to a group beside those of its sandboxes. Nothing is asked of
//!   systemd while launching.
//! - INVARIANT: bubblewrap joins before it makes anything, by a descriptor that nobody after it has; inside, no control
//!   group can be written.

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

/// The limits that a control group has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CgroupLimits {
    pub(crate) memory: bool,
    pub(crate) cpu: bool,
    pub(crate) processes: bool,
}

/// The part of the hierarchy in which this process may make control groups.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct CgroupRoot {
    dir: PathBuf,
    can: CgroupLimits,
}

/// One sandbox's.
#[derive(Debug)]
pub(crate) struct Cgroup {
    dir: PathBuf,
    has: CgroupLimits,
}

/// The time that the kernel may take for the last process to be gone, in steps of [`STEP_NANOSECONDS`].
const STEPS: u32 = 100;
const STEP_NANOSECONDS: i64 = 20_000_000;

/// Makes sure that limits hold for all processes of a sandbox together, where this system lets us: asks systemd for a
/// scope if this process has no control group to itself. For programs that live long, at their start; it may take some
/// tens of milliseconds, once.
pub fn prepare_control_groups() {
    let own = |own: &Path| CgroupRoot::at(own).ok().flatten();
    CgroupRoot::found_by(|here| own(here).or_else(|| own(&systemd::for_scope(here, own_dir)?)));
}

impl CgroupRoot {
    /// The place, if there is one.
    pub(crate) fn find() -> Option<&'static Self> {
        Self::found_by(|own| Self::at(own).ok().flatten())
    }

    /// The first look decides. What cannot be had is no failure: then limits are those of each process, and that is told.
    fn found_by(look: impl FnOnce(&Path) -> Option<Self>) -> Option<&'static Self> {
        static PLACE: OnceLock<Option<CgroupRoot>> = OnceLock::new();
        PLACE.get_or_init(|| look(&own_dir()?)).as_ref()
    }

    /// Takes over `dir`, a control group with this process in it; not when others are in it too, or when it has no
    /// controllers to give.
    fn at(dir: &Path) -> io::Result<Option<Self>> {
        let offered = fs::read_to_string(dir.join("cgroup.controllers"))?;
        let offers = |name: &str| offered.split_whitespace().any(|other| other == name);
        let own = std::process::id().to_string();
        let alone = fs::read_to_string(dir.join("cgroup.procs"))?.lines().all(|pid| pid == own);
        if !(alone && (offers("memory") || offers("pids"))) {
            return Ok(None);
        }
        // A group that others are to be below of must not have processes of its own.
        let beside = dir.join("trusted");
        if let Err(error) = fs::create_dir(&beside)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
        write(&beside, "cgroup.procs", &own)?;
        let gives =
            |name: &str| offers(name) && write(dir, "cgroup.subtree_control", &format!("+{name}")).is_ok();
        let can = CgroupLimits { memory: gives("memory"), cpu: gives("cpu"), processes: gives("pids") };
        Ok((can != CgroupLimits::default()).then(|| Self { dir: dir.to_owned(), can }))
    }

    /// A group with these limits, as far as there are controllers for them.
    pub(crate) fn make(&self, limits: &ResourceLimits) -> io::Result<Cgroup> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = self.dir.join(format!("sandbox-{}-{number}", std::process::id()));
        fs::create_dir(&dir)?;
        // From here on it is removed, also when a limit cannot be set.
        let mut group = Cgroup { dir, has: CgroupLimits::default() };
        if let Some(bytes) = limits.memory.filter(|_| self.can.memory) {
            write(&group.dir, "memory.max", &bytes.to_string())?;
            // What is more is not to go to the disk, and all of it ends together. Older kernels know neither.
            let _ = write(&group.dir, "memory.swap.max", "0");
            let _ = write(&group.dir, "memory.oom.group", "1");
            group.has.memory = true;
        }
        if let Some(percent) = limits.cpu.filter(|_| self.can.cpu) {
            const PERIOD: u64 = 100_000;
            write(&group.dir, "cpu.max", &format!("{} {PERIOD}", u64::from(percent) * PERIOD / 100))?;
            group.has.cpu = true;
        }
        if let Some(count) = limits.processes.filter(|_| self.can.processes) {
            write(&group.dir, "pids.max", &count.to_string())?;
            group.has.processes = true;
        }
        Ok(group)
    }
}

impl Cgroup {
    /// The limits that it has.
    pub(crate) fn has(&self) -> CgroupLimits {
        self.has
    }

    /// The file that a process writes `0` to in order to join.
    pub(crate) fn door(&self) -> io::Result<OwnedFd> {
        Ok(OpenOptions::new().write(true).open(self.dir.join("cgroup.procs"))?.into())
    }
}

impl Drop for Cgroup {
    /// Waits for the last process, which has been killed, and removes the group.
    fn drop(&mut self) {
        for _ in 0..STEPS {
            // Changes are told from when it was read.
            let events = File::open(self.dir.join("cgroup.events"))
                .and_then(|mut events| io::copy(&mut events, &mut io::sink()).map(|_| events));
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            let Ok(events) = events else { return };
            let step = Timespec { tv_sec: 0, tv_nsec: STEP_NANOSECONDS };
            // An error is a change that was missed; the next attempt shows it.
            let _ = poll(&mut [PollFd::new(&events.as_fd(), PollFlags::PRI)], Some(&step));
        }
    }
}

/// Joins by a group's door; for the process that calls.
pub(crate) fn join(door: &OwnedFd) -> io::Result<()> {
    rustix::io::write(door, b"0").map(drop).map_err(|error| {
        io::Error::other(format!("its control group could not be joined: {}", io::Error::from(error)))
    })
}

/// The directory of the control group that this process is in.
fn own_dir() -> Option<PathBuf> {
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let own = fs::read_to_string("/proc/self/cgroup").ok()?;
    dir_of(&table, &own)
}

fn dir_of(mountinfo: &str, own: &str) -> Option<PathBuf> {
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
    /// A place without any controller, where this user may make groups at all.
    pub(crate) fn bare() -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let dir = own_dir()?.join(format!("ironcurtain-test-{}-{number}", std::process::id()));
        fs::create_dir(&dir).ok()?;
        Some(Self { dir, can: CgroupLimits::default() })
    }

    /// Its directory.
    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: CgroupLimits = CgroupLimits { memory: true, cpu: true, processes: true };

    /// Files in place of the kernel's, which does not let every machine show this.
    fn files(controllers: &str, processes: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, text: &str| fs::write(dir.path().join(name), text).unwrap();
        put("cgroup.controllers", controllers);
        put("cgroup.procs", processes);
        put("cgroup.subtree_control", "");
        fs::create_dir(dir.path().join("trusted")).unwrap();
        put("trusted/cgroup.procs", "");
        dir
    }

    #[test]
    fn a_place_of_ones_own_is_taken_over() {
        let own = std::process::id().to_string();
        let dir = files("cpuset cpu memory pids", &format!("{own}\n"));
        let place = CgroupRoot::at(dir.path()).unwrap().unwrap();
        assert_eq!(place, CgroupRoot { dir: dir.path().to_owned(), can: ALL });
        assert_eq!(fs::read_to_string(dir.path().join("trusted/cgroup.procs")).unwrap(), own);
    }

    #[test]
    fn a_place_that_others_are_in_or_that_has_nothing_to_give_is_left_alone() {
        let own = std::process::id();
        for (controllers, processes) in
            [("memory pids", format!("1\n{own}\n")), ("hugetlb", format!("{own}\n"))]
        {
            let dir = files(controllers, &processes);
            assert_eq!(CgroupRoot::at(dir.path()).unwrap(), None, "{controllers}");
            assert_eq!(fs::read_to_string(dir.path().join("trusted/cgroup.procs")).unwrap(), "");
        }
    }

    #[test]
    fn a_limit_that_cannot_be_set_is_an_error_and_leaves_no_group() {
        let dir = tempfile::tempdir().unwrap();
        let place = CgroupRoot { dir: dir.path().to_owned(), can: ALL };
        let error = place.make(&ResourceLimits::default()).unwrap_err().to_string();
        assert!(error.contains("memory.max"), "{error}");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        let none = CgroupRoot { can: CgroupLimits::default(), ..place };
        assert_eq!(none.make(&ResourceLimits::default()).unwrap().has(), CgroupLimits::default());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_process_joins_by_the_door_and_the_group_goes_when_it_has_ended() {
        let Some(place) = CgroupRoot::bare() else {
            // Where the hierarchy is not ours, there is no place in it either.
            assert_eq!(own_dir().and_then(|own| CgroupRoot::at(&own).ok().flatten()), None);
            return;
        };
        let group = place.make(&ResourceLimits::default()).unwrap();
        let group_dir = group.dir.clone();
        let door = group.door().unwrap();
        let mut command = std::process::Command::new("cat");
        crate::sys::process::prepare(command.stdin(std::process::Stdio::piped()), move || join(&door));
        let mut child = command.spawn().unwrap();
        let members = fs::read_to_string(group_dir.join("cgroup.procs")).unwrap();
        assert_eq!(members, format!("{}\n", child.id()));
        // Its end and the group's removal overlap, as they do for a sandbox.
        drop(child.stdin.take());
        drop(group);
        assert!(!group_dir.exists());
        assert!(child.wait().unwrap().success());
        fs::remove_dir(place.dir).unwrap();
    }

    #[test]
    fn ones_own_directory_is_found_where_the_hierarchy_is_mounted() {
        let table = "30 24 0:26 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                     31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let own = "3:pids:/x\n0::/user.slice/a.scope\n";
        assert_eq!(dir_of(table, own), Some("/sys/fs/cgroup/user.slice/a.scope".into()));
        let bound = table.replace("0:27 / ", "0:27 /user.slice ");
        assert_eq!(dir_of(&bound, own), Some("/sys/fs/cgroup/a.scope".into()));
        assert_eq!(dir_of(table, "3:pids:/x\n"), None);
        assert_eq!(dir_of("", own), None);
    }
}
