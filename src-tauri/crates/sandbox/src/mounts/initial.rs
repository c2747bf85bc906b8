//! The mounts that a sandbox starts with: copied by a child while bubblewrap sets up, and moved in when that is done.
//!
//! - Bubblewrap would do the same, and reads the kernel's table of mounts for each of them.
//! - INVARIANT: hidden paths are covered before anything is copied, and what must not be written is closed before what is
//!   writable is.
//! - The child is in a namespace of its own, in which the plan of the view is made, and with which that ends.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Read, Write},
    net::Shutdown,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::PathBuf,
    time::Duration,
};

use rustix::fs::{CWD, fstat};
use serde::{Deserialize, Serialize};

use super::inside::{Inside, SandboxNamespaces};
use crate::{
    fd_passing,
    mount_plan::{MountPlan, over_itself},
    place::{FileKind, mount_id, open_plain},
    sys::process::{Forked, fork, leave_mount_namespace},
    tree::{attach, copy},
};

/// As long as bubblewrap may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The mounts that a sandbox starts with.
#[derive(Clone, Debug)]
pub(crate) struct InitialMounts {
    /// The paths that are hidden and closed in the trees below.
    pub(crate) plan: MountPlan,
    /// Shown, and whether to be written.
    pub(crate) shown: BTreeMap<String, bool>,
    /// Paths of the sandbox's own that are closed for writing.
    pub(crate) read_only_paths: Vec<String>,
    /// Files of the sandbox's own that nobody is to open.
    pub(crate) masked: Vec<String>,
    /// True when the sandbox has a `/tmp` of its own.
    pub(crate) own_tmp: bool,
}

/// The child that has them ready. It may take some milliseconds to end when all is done, for which whoever drops this waits.
#[derive(Debug)]
pub(crate) struct InitialMountsChild {
    conversation: UnixStream,
    _child: Forked,
}

/// The child's last word to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
enum ChildReport {
    /// The mount ids of what was shown.
    Shown(BTreeMap<String, u64>),
    /// Why it could not be.
    Failed(String),
}

impl InitialMountsChild {
    /// Begins.
    pub(crate) fn start(first: InitialMounts) -> io::Result<Self> {
        let (conversation, theirs) = UnixStream::pair()?;
        let child = fork(theirs.as_fd(), || {
            let said = match first.make(&theirs) {
                Ok(ids) => ChildReport::Shown(ids),
                Err(error) => ChildReport::Failed(error.to_string()),
            };
            let said = serde_json::to_vec(&said).unwrap_or_default();
            // Nobody listens when the supervisor is gone.
            let _ = (&theirs).write_all(&said).and_then(|()| theirs.shutdown(Shutdown::Write));
        })?;
        Ok(Self { conversation, _child: child })
    }

    /// Has them moved into the sandbox whose first process is `process`; returns their mount ids.
    pub(crate) fn finish(&mut self, process: &OwnedFd) -> io::Result<BTreeMap<String, u64>> {
        self.conversation.set_read_timeout(Some(PATIENCE))?;
        // Neither succeeds when the child has given up already; what it said is the reason.
        let sent = fd_passing::send(&self.conversation, process);
        let mut said = Vec::new();
        let heard = self.conversation.read_to_end(&mut said);
        match serde_json::from_slice::<ChildReport>(&said) {
            Ok(ChildReport::Shown(ids)) => Ok(ids),
            Ok(ChildReport::Failed(reason)) => Err(io::Error::other(reason)),
            Err(_) => Err(sent.and(heard).err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// A tree with the place it goes to.
struct MountTree {
    path: String,
    /// The canonical path of `path`.
    real: PathBuf,
    kind: FileKind,
    tree: OwnedFd,
}

impl InitialMounts {
    fn make(&self, conversation: &UnixStream) -> io::Result<BTreeMap<String, u64>> {
        leave_mount_namespace()?;
        let own = File::open("/proc/self/ns/mnt")?;
        self.plan.hide()?;
        let mut trees = self.trees(false)?;
        self.plan.close()?;
        trees.extend(self.trees(true)?);
        trees.sort_by(|one, other| one.path.cmp(&other.path));
        let masks = self.masked.iter().map(|path| MountTree::of("/dev/null", path, true));
        let masks = masks.collect::<io::Result<Vec<_>>>()?;

        let sandbox = SandboxNamespaces::of(fd_passing::receive(conversation)?, self.own_tmp)?;
        let mut inside = sandbox.enter().map_err(io::Error::other)?;
        self.read_only_paths.iter().try_for_each(|path| over_itself(path, true).map_err(at(path)))?;
        masks.iter().try_for_each(|mask| mask.put(&mut inside).map(drop))?;
        let shown = trees.iter().map(|tree| Ok((tree.put(&mut inside)?, mount_id(&tree.tree)?))).collect();
        // To end a namespace and a copy of a root takes the kernel up to some milliseconds: they end with this child, when
        // nobody waits for them any more.
        std::mem::forget((own, inside));
        shown
    }

    fn trees(&self, writable: bool) -> io::Result<Vec<MountTree>> {
        let shown = self.shown.iter().filter(|(_, wanted)| **wanted == writable);
        shown.map(|(path, _)| MountTree::of(path, path, !writable)).collect()
    }
}

impl MountTree {
    fn of(source: &str, path: &str, read_only: bool) -> io::Result<Self> {
        // What is written to must be what was looked at; what is read may be a link, as files of `/etc` are.
        let real = if read_only { fs::canonicalize(source)? } else { source.into() };
        let place = open_plain(CWD, &real).map_err(at(path))?;
        let stat = fstat(&place).map_err(at(path))?;
        // Sockets and their like are mounted on files.
        let kind = FileKind::of(&stat).unwrap_or(FileKind::File);
        let tree = copy(&place, read_only, true).map_err(at(path))?;
        Ok(Self { path: path.to_owned(), real, kind, tree })
    }

    /// Mounts it; returns where.
    fn put(&self, inside: &mut Inside<'_>) -> io::Result<String> {
        let (path, place) = match inside.mount_point(&self.path, self.kind) {
            Ok(place) => (self.path.as_str(), place),
            // A link that the sandbox has, too, is not mounted on, but what it leads to.
            Err(error) => {
                let real = self.real.to_str().filter(|real| *real != self.path);
                let real = real.ok_or_else(|| io::Error::other(error))?;
                (real, inside.mount_point(real, self.kind).map_err(io::Error::other)?)
            }
        };
        attach(&self.tree, &place).map_err(at(path))?;
        Ok(path.to_owned())
    }
}

fn at(path: &str) -> impl Fn(rustix::io::Errno) -> io::Error {
    move |error| io::Error::other(format!("`{path}`: {}", io::Error::from(error)))
}
