//! A running view: its threads, and what they share.
//!
//! - Two threads serve requests. Answers, locks that wait, interruptions and invalidations each have a thread of their own.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, Weak,
        mpsc::{self, Receiver, Sender},
    },
    thread::{self, JoinHandle},
};

use crate::{
    companions::UsedFiles,
    device::Device,
    directories::Directories,
    gate::{Answered, Gate, Ticket},
    invalidation::{self, Invalidations},
    locks::Locks,
    made::Made,
    nodes::{FileId, Nodes},
    open_files::OpenFiles,
    pending::Pending,
    real_tree::RealTree,
    signals, wire,
};

/// Number of threads that serve requests.
const THREADS: usize = 2;

/// Parts of a view.
pub struct FileServerOptions {
    /// Open `/dev/fuse` with a mounted file system whose root is a folder.
    pub device: OwnedFd,
    /// Folder that is served, usually `/`.
    pub root: OwnedFd,
    /// Absolute paths that do not exist in the view.
    pub hidden: Vec<PathBuf>,
    /// Owner of the sandbox's files.
    pub owner: u32,
    /// Group of the sandbox's files.
    pub group: u32,
    /// Permission for accesses.
    pub gate: Arc<dyn Gate>,
}

/// A view that is being served. Dropping it does not unmount it.
pub struct FileServer {
    server: Arc<Server>,
    serving: Mutex<Vec<JoinHandle<()>>>,
}

impl FileServer {
    /// Starts to serve.
    ///
    /// # Errors
    /// Returns an error if the root cannot be read or a thread cannot be started.
    pub fn start(options: FileServerOptions) -> io::Result<Self> {
        let device: Arc<dyn Device> = Arc::new(File::from(options.device));
        let server = Server::start(
            device,
            options.root.into(),
            options.hidden,
            options.gate,
            [options.owner, options.group],
        )?;
        let serve = |_| {
            let server = server.clone();
            thread::Builder::new().name("view".into()).spawn(move || server.run())
        };
        let serving = (0..THREADS).map(serve).collect::<io::Result<_>>()?;
        Ok(Self { server, serving: Mutex::new(serving) })
    }

    /// Ends access to open files whose permission has ended. Returns false if the kernel did not drop their pages in time.
    #[must_use]
    pub fn revoke(&self) -> bool {
        self.server.revoke()
    }

    /// Begins to reserve a folder for a mount, instead of an earlier one.
    #[must_use]
    pub fn reserve(&self, folder: PathBuf) -> Reservation {
        let number = self.server.pending.begin_reservation(folder.clone());
        Reservation { server: self.server.clone(), folder, number }
    }

    /// Sets the folders that are mounted over the view, and ends the reservation. What contains one cannot be moved.
    pub fn set_mounted(&self, folders: Vec<PathBuf>) {
        *self.server.mounted.lock().unwrap_or_else(PoisonError::into_inner) = folders;
        self.server.pending.release();
    }

    /// Waits until the file system is unmounted.
    pub fn wait(&self) {
        let serving = std::mem::take(&mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in serving {
            // A thread that panicked serves no more; the others do.
            let _ = thread.join();
        }
    }
}

/// Reservation of a folder for a mount.
pub struct Reservation {
    server: Arc<Server>,
    folder: PathBuf,
    number: u64,
}

impl Reservation {
    /// Waits until the kernel holds no lock for a waiting request that mounting the folder needs, and lets no such request wait
    /// until [`FileServer::set_mounted`]. Returns false if that or another reservation came first.
    ///
    /// Folders in it that exist only in the view become real.
    #[must_use]
    pub fn wait(&self) -> bool {
        let is_made = self.server.pending.make_reservation(self.number);
        if let (true, Ok(below)) = (is_made, self.folder.strip_prefix("/")) {
            self.server.make_real_below(below);
        }
        is_made
    }
}

/// State that the threads of a view share.
pub(crate) struct Server {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) tree: RealTree,
    pub(crate) nodes: Nodes,
    pub(crate) files: OpenFiles,
    pub(crate) directories: Directories,
    pub(crate) locks: Arc<Locks>,
    pub(crate) made: Made,
    pub(crate) used: UsedFiles,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) invalidations: Invalidations,
    /// Folders that are mounted over the view.
    mounted: Mutex<Vec<PathBuf>>,
    /// Owner and group of the sandbox's files.
    pub(crate) ids: [u32; 2],
    answers: Mutex<Sender<Answered>>,
    /// Held for reading while an operation is carried out.
    operations: RwLock<()>,
    /// Held for reading while a name is created or moved, and for writing while a folder is.
    pub(crate) names: RwLock<()>,
}

impl Server {
    /// Creates the shared state and starts the threads that do not read from the device.
    pub(crate) fn start(
        device: Arc<dyn Device>,
        root: File,
        hidden: Vec<PathBuf>,
        gate: Arc<dyn Gate>,
        ids: [u32; 2],
    ) -> io::Result<Arc<Self>> {
        let (answers, answered) = mpsc::channel();
        let (invalidations, to_invalidate) = Invalidations::new();
        let server = Arc::new(Self {
            nodes: Nodes::new(FileId::of(&root.metadata()?)),
            tree: RealTree::new(root, hidden)?,
            files: OpenFiles::default(),
            directories: Directories::default(),
            locks: Arc::default(),
            made: Made::default(),
            used: UsedFiles::default(),
            pending: Arc::default(),
            answers: Mutex::new(answers),
            operations: RwLock::default(),
            names: RwLock::default(),
            device: device.clone(),
            gate,
            invalidations,
            mounted: Mutex::default(),
            ids,
        });
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.into()).spawn(work).map(drop)
        };
        // These threads end when the server is dropped, so they do not keep it.
        let (weak, pending) = (Arc::downgrade(&server), server.pending.clone());
        spawn("answers", Box::new(move || follow_answers(&weak, &answered)))?;
        let (weak, locks) = (Arc::downgrade(&server), server.locks.clone());
        spawn("locks", Box::new(move || follow_locks(&weak, &locks)))?;
        let weak = Arc::downgrade(&server);
        spawn("interruptions", Box::new(move || follow_interruptions(&weak, &pending)))?;
        spawn("invalidations", Box::new(move || invalidation::run(&device, &to_invalidate)))?;
        Ok(server)
    }

    /// Creates the ticket for a request.
    pub(crate) fn ticket(&self, unique: u64) -> Ticket {
        Ticket::new(unique, self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Ends access to open files whose permission has ended, and returns whether the kernel dropped their pages.
    pub(crate) fn revoke(&self) -> bool {
        let ended = self.files.without_permission(|access| self.gate.permits(access));
        ended.iter().for_each(|file| file.stop_writes());
        // This writes changed pages back, which is still possible.
        let is_dropped = self.invalidations.drop_pages_now(ended.iter().map(|file| file.node));
        ended.iter().for_each(|file| file.end());
        // Waits for operations that were permitted before.
        drop(self.operations.write().unwrap_or_else(PoisonError::into_inner));
        is_dropped
    }

    /// Returns whether a folder is mounted below this path, which is relative to the root.
    pub(crate) fn is_mounted_below(&self, path: &Path) -> bool {
        let mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
        mounted.iter().any(|folder| folder.strip_prefix("/").is_ok_and(|folder| folder.starts_with(path)))
    }

    /// Marks an operation as being carried out, until the guard is dropped.
    pub(crate) fn operation(&self) -> RwLockReadGuard<'_, ()> {
        self.operations.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self) {
        let mut buffer = vec![0; wire::BUFFER];
        // An error means that the connection was aborted.
        while let Ok(Some(count)) = self.device.read(&mut buffer) {
            if let Some(bytes) = buffer.get(..count) {
                self.handle(bytes, Vec::new());
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.pending.end();
        self.locks.end();
    }
}

fn follow_answers(server: &Weak<Server>, answers: &Receiver<Answered>) {
    for Answered { id, answer } in answers {
        let Some(server) = server.upgrade() else { return };
        server.resume(id, answer);
    }
}

fn follow_locks(server: &Weak<Server>, locks: &Locks) {
    while let Some(waiting) = locks.next() {
        let Some(server) = server.upgrade() else { return };
        waiting.into_iter().for_each(|waiting| server.try_lock(waiting));
        drop(server);
        locks.pause();
    }
}

fn follow_interruptions(server: &Weak<Server>, pending: &Pending) {
    while let Some(ended) = pending.ended(signals::is_ending) {
        let Some(server) = server.upgrade() else { return };
        ended.into_iter().for_each(|unique| server.interrupt(unique));
    }
}
