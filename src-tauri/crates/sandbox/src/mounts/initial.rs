//! Initial mounts of a sandbox. A child process prepares them while bubblewrap sets up the sandbox, then moves them
//! into the sandbox.
//!
//! - Bubblewrap could create these mounts, but it rereads the kernel's mount table for each one.
//! - INVARIANT: hidden paths are covered before any tree is copied, and read-only paths are closed before writable
//!   trees are copied.
//! - The child applies the view's plan in its own mount namespace, which disappears when the child exits.

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

use rustix::{
    fs::{CWD, Mode, OFlags, fstat, open},
    io::Errno,
};
use serde::{Deserialize, Serialize};

use super::inside::{EnteredSandbox, SandboxNamespaces};
use crate::{
    fd_passing,
    mount_plan::{MountPlan, bind_over_itself},
    nofollow::{FileKind, mount_id, open_no_symlinks},
    sys::process::{Forked, enter_private_mount_namespace, fork},
    tree::{attach, copy_mount},
};

/// Timeout for the child's report. The child itself waits for bubblewrap to complete the base file system.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Initial mounts of a sandbox.
#[derive(Clone, Debug)]
pub(crate) struct InitialMounts {
    /// Paths to hide or make read-only in the mounted trees.
    pub(crate) plan: MountPlan,
    /// Paths to mount, each with `true` if it is writable.
    pub(crate) shown: BTreeMap<String, bool>,
    /// Paths in the sandbox's own file systems to make read-only.
    pub(crate) read_only_paths: Vec<String>,
    /// Files in the sandbox's own file systems to make inaccessible.
    pub(crate) masked: Vec<String>,
    /// `true` if the sandbox has a private `/tmp`.
    pub(crate) own_tmp: bool,
    /// Folders served by the view.
    pub(crate) served: Vec<String>,
}

/// Child that prepares the mounts. Dropping this value waits for the child to exit, which can take milliseconds even
/// after the child has reported.
#[derive(Debug)]
pub(crate) struct InitialMountsChild {
    socket: UnixStream,
    _child: Forked,
}

/// Child's report to the supervisor.
#[derive(Debug, Serialize, Deserialize)]
enum ChildReport {
    /// The mounts are complete. Contains their ids by path.
    Mounted(BTreeMap<String, u64>),
    /// The mounts could not be created. Contains the reason.
    Failed(String),
}

impl InitialMountsChild {
    /// Starts the child. `view` is the FUSE mount that serves the user's files, if any.
    pub(crate) fn start(first: InitialMounts, view: Option<OwnedFd>) -> io::Result<Self> {
        let (socket, theirs) = UnixStream::pair()?;
        // The child inherits only its end of the socket pair, so the view's descriptor is sent over the socket.
        view.map(|view| fd_passing::send(&socket, view)).transpose()?;
        let child = fork(&[theirs.as_fd()], || {
            let report = match first.make(&theirs) {
                Ok(ids) => ChildReport::Mounted(ids),
                Err(error) => ChildReport::Failed(error.to_string()),
            };
            let report = serde_json::to_vec(&report).unwrap_or_default();
            // Ignores the error: the supervisor may have exited.
            let _ = (&theirs).write_all(&report).and_then(|()| theirs.shutdown(Shutdown::Write));
        })?;
        Ok(Self { socket, _child: child })
    }

    /// Makes the child move the mounts into the sandbox whose init is `process`. Returns the mount ids by path.
    pub(crate) fn finish(&mut self, process: &OwnedFd) -> io::Result<BTreeMap<String, u64>> {
        self.socket.set_read_timeout(Some(TIMEOUT))?;
        // If the child has already failed, sending fails too, and the child's report contains the reason.
        let sent = fd_passing::send(&self.socket, process);
        let mut report = Vec::new();
        let received = self.socket.read_to_end(&mut report);
        match serde_json::from_slice::<ChildReport>(&report) {
            Ok(ChildReport::Mounted(ids)) => Ok(ids),
            Ok(ChildReport::Failed(reason)) => Err(io::Error::other(reason)),
            Err(_) => Err(sent.and(received).err().unwrap_or_else(|| io::ErrorKind::UnexpectedEof.into())),
        }
    }
}

/// Mount tree and its mount point.
struct MountTree {
    path: String,
    /// Path with symlinks resolved.
    real: PathBuf,
    kind: FileKind,
    tree: OwnedFd,
}

impl InitialMounts {
    fn make(&self, socket: &UnixStream) -> io::Result<BTreeMap<String, u64>> {
        enter_private_mount_namespace()?;
        let own = File::open("/proc/self/ns/mnt")?;
        self.plan.hide()?;
        let mut trees = self.trees(false)?;
        self.plan.close()?;
        trees.extend(self.trees(true)?);
        if !self.served.is_empty() {
            trees.extend(self.served_trees(&fd_passing::receive(socket)?)?);
        }
        trees.sort_by(|one, other| one.path.cmp(&other.path));
        let masks = self.masked.iter().map(|path| MountTree::copy_from("/dev/null", path, true));
        let masks = masks.collect::<io::Result<Vec<_>>>()?;

        let sandbox = SandboxNamespaces::open(fd_passing::receive(socket)?, self.own_tmp)?;
        let mut inside = sandbox.enter().map_err(io::Error::other)?;
        self.read_only_paths
            .iter()
            .try_for_each(|path| bind_over_itself(path, true).map_err(with_path(path)))?;
        masks.iter().try_for_each(|mask| mask.mount_in(&mut inside).map(drop))?;
        let shown =
            trees.iter().map(|tree| Ok((tree.mount_in(&mut inside)?, mount_id(&tree.tree)?))).collect();
        // Destroying a namespace or a copy of the root can take the kernel milliseconds. This is deferred until the
        // child exits, which does not delay the start of the server.
        std::mem::forget((own, inside));
        shown
    }

    /// Copies the served folders from the view's mount.
    fn served_trees(&self, view: &OwnedFd) -> io::Result<Vec<MountTree>> {
        // Only an attached mount can be copied. Attaching it to the root hides nothing, because a process keeps its
        // root.
        let root = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
        attach(view, &root).map_err(with_path("/"))?;
        let tree = |path: &String| {
            let fd = match open_no_symlinks(view, path.trim_start_matches('/')) {
                // The folder is hidden, or on a file system that the view does not serve.
                Err(Errno::NOENT) => return Ok(None),
                fd => fd.map_err(with_path(path))?,
            };
            let tree = copy_mount(&fd, false, false).map_err(with_path(path))?;
            Ok(Some(MountTree { path: path.clone(), real: path.into(), kind: FileKind::Directory, tree }))
        };
        self.served.iter().filter_map(|path| tree(path).transpose()).collect()
    }

    fn trees(&self, writable: bool) -> io::Result<Vec<MountTree>> {
        let shown = self.shown.iter().filter(|(_, wanted)| **wanted == writable);
        shown.map(|(path, _)| MountTree::copy_from(path, path, !writable)).collect()
    }
}

impl MountTree {
    fn copy_from(source: &str, path: &str, read_only: bool) -> io::Result<Self> {
        // A writable path must be exactly the path that was checked. A read-only path can be a symlink, such as some
        // files in `/etc`.
        let real = if read_only { fs::canonicalize(source)? } else { source.into() };
        let fd = open_no_symlinks(CWD, &real).map_err(with_path(path))?;
        let stat = fstat(&fd).map_err(with_path(path))?;
        // Sockets and other special files are mounted on files.
        let kind = FileKind::from_stat(&stat).unwrap_or(FileKind::File);
        let tree = copy_mount(&fd, read_only, true).map_err(with_path(path))?;
        Ok(Self { path: path.to_owned(), real, kind, tree })
    }

    /// Mounts the tree and returns its mount point.
    fn mount_in(&self, inside: &mut EnteredSandbox<'_>) -> io::Result<String> {
        let (path, fd) = match inside.mount_point(&self.path, self.kind) {
            Ok(fd) => (self.path.as_str(), fd),
            // If the path is also a symlink inside the sandbox, mounts at the symlink's target.
            Err(error) => {
                let real = self.real.to_str().filter(|real| *real != self.path);
                let real = real.ok_or_else(|| io::Error::other(error))?;
                (real, inside.mount_point(real, self.kind).map_err(io::Error::other)?)
            }
        };
        attach(&self.tree, &fd).map_err(with_path(path))?;
        Ok(path.to_owned())
    }
}

fn with_path(path: &str) -> impl Fn(Errno) -> io::Error {
    move |error| io::Error::other(format!("`{path}`: {}", io::Error::from(error)))
}
