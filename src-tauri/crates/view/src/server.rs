//! Threads of a running view and their shared state.
//!
//! - Two threads handle requests. Answers, waiting locks, held requests, interruptions and invalidations each have a
//!   thread of their own.

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
    companions::RecentFiles,
    created_files::CreatedFiles,
    device::Device,
    directories::Directories,
    gate::{Gate, Ticket, TicketAnswer},
    hidden::Hidden,
    invalidation::{self, Invalidations},
    locks::Locks,
    nodes::{FileId, Nodes},
    open_files::OpenFiles,
    pending::Pending,
    real_tree::RealTree,
    signals, wire,
};

/// Number of threads that read and handle requests.
const THREADS: usize = 2;

/// Options for starting a [`FileServer`].
pub struct FileServerOptions {
    /// Open `/dev/fuse` of the mounted file system. The file system's root must be a folder.
    pub device: OwnedFd,
    /// Folder to serve, usually `/`.
    pub root: OwnedFd,
    /// Absolute paths that appear to be missing in the view.
    pub hidden: Vec<PathBuf>,
    /// Absolute paths at which something is mounted over the view. They are visible even inside a hidden folder.
    pub mount_points: Vec<PathBuf>,
    /// User id that owns virtual entries.
    pub owner: u32,
    /// Group id of virtual entries and of files with an unmapped group.
    pub group: u32,
    /// Permits accesses, or asks the user about them.
    pub gate: Arc<dyn Gate>,
}

/// Running file server. Dropping it does not unmount the file system.
pub struct FileServer {
    server: Arc<Server>,
    serving: Mutex<Vec<JoinHandle<()>>>,
}

impl FileServer {
    /// Starts the threads that serve the file system.
    ///
    /// # Errors
    /// Returns an error if the root cannot be read or a thread cannot be spawned.
    pub fn start(options: FileServerOptions) -> io::Result<Self> {
        let device: Arc<dyn Device> = Arc::new(File::from(options.device));
        let server = Server::start(
            device,
            options.root.into(),
            Hidden::new(&options.hidden, &options.mount_points),
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

    /// Refuses all further access through open files whose permission was revoked. Returns `false` if the kernel did
    /// not drop their pages in time.
    #[must_use]
    pub fn revoke(&self) -> bool {
        self.server.revoke()
    }

    /// Requests the reservation of a folder for a mount, replacing any earlier one.
    #[must_use]
    pub fn reserve(&self, folder: PathBuf) -> Reservation {
        let number = self.server.pending.request_reservation(folder.clone());
        Reservation { server: self.server.clone(), folder, number }
    }

    /// Sets the folders mounted over the view and ends the reservation. A folder that contains a mounted folder cannot
    /// be moved.
    pub fn set_mounted(&self, folders: Vec<PathBuf>) {
        *self.server.mounted.lock().unwrap_or_else(PoisonError::into_inner) = folders;
        self.server.pending.release();
    }

    /// Waits until the file system is unmounted.
    pub fn wait(&self) {
        let serving = std::mem::take(&mut *self.serving.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in serving {
            // Ignores the error: a panicked thread has stopped, but the others keep serving.
            let _ = thread.join();
        }
    }
}

/// Pending reservation of a folder for a mount.
pub struct Reservation {
    server: Arc<Server>,
    folder: PathBuf,
    number: u64,
}

impl Reservation {
    /// Waits until no waiting request holds a kernel lock that mounting the folder needs. From then until
    /// [`FileServer::set_mounted`] is called, no such request waits. Returns `false` if `set_mounted` was called first
    /// or the reservation was replaced.
    ///
    /// Also creates the real folders for the virtual ones inside the reserved folder.
    #[must_use]
    pub fn wait(&self) -> bool {
        let is_active = self.server.pending.wait_for_reservation(self.number);
        if let (true, Ok(below)) = (is_active, self.folder.strip_prefix("/")) {
            self.server.make_real_below(below);
        }
        is_active
    }
}

/// State shared by a view's threads.
pub(crate) struct Server {
    pub(crate) device: Arc<dyn Device>,
    pub(crate) tree: RealTree,
    pub(crate) nodes: Nodes,
    pub(crate) files: OpenFiles,
    pub(crate) directories: Directories,
    pub(crate) locks: Arc<Locks>,
    pub(crate) created_files: CreatedFiles,
    pub(crate) recent_files: RecentFiles,
    pub(crate) gate: Arc<dyn Gate>,
    pub(crate) pending: Arc<Pending>,
    pub(crate) invalidations: Invalidations,
    /// Folders mounted over the view.
    mounted: Mutex<Vec<PathBuf>>,
    /// User and group id of virtual entries.
    pub(crate) ids: [u32; 2],
    answers: Mutex<Sender<TicketAnswer>>,
    /// Read-locked while an operation is running. Write-locked to wait until all running operations have finished.
    operations: RwLock<()>,
    /// Read-locked while a name is created or moved. Write-locked while a folder is moved.
    pub(crate) names: RwLock<()>,
}

impl Server {
    /// Creates the shared state and spawns all threads except those that read requests.
    pub(crate) fn start(
        device: Arc<dyn Device>,
        root: File,
        hidden: Hidden,
        gate: Arc<dyn Gate>,
        ids: [u32; 2],
    ) -> io::Result<Arc<Self>> {
        let (answers, answered) = mpsc::channel();
        let (invalidations, to_invalidate) = Invalidations::new();
        let server = Arc::new(Self {
            nodes: Nodes::new(FileId::new(&root.metadata()?)),
            tree: RealTree::new(root, hidden)?,
            files: OpenFiles::default(),
            directories: Directories::default(),
            locks: Arc::default(),
            created_files: CreatedFiles::default(),
            recent_files: RecentFiles::default(),
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
        // These threads hold weak references, so they exit after the server is dropped.
        let (weak, pending) = (Arc::downgrade(&server), server.pending.clone());
        spawn("answers", Box::new(move || process_answers(&weak, &answered)))?;
        let (weak, locks) = (Arc::downgrade(&server), server.locks.clone());
        spawn("locks", Box::new(move || process_locks(&weak, &locks)))?;
        let weak = Arc::downgrade(&server);
        spawn("interruptions", Box::new(move || process_interruptions(&weak, &pending)))?;
        let (weak, pending) = (Arc::downgrade(&server), server.pending.clone());
        spawn("mounting", Box::new(move || process_deferred(&weak, &pending)))?;
        spawn("invalidations", Box::new(move || invalidation::run(&device, &to_invalidate)))?;
        Ok(server)
    }

    /// Creates the ticket for answering a request.
    pub(crate) fn ticket(&self, unique: u64) -> Ticket {
        Ticket::new(unique, self.answers.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Refuses all further access through open files whose permission was revoked. Returns `true` if the kernel
    /// dropped their pages in time.
    pub(crate) fn revoke(&self) -> bool {
        let revoked = self.files.revoked(|access| self.gate.keeps(access));
        revoked.iter().for_each(|file| file.stop_writes());
        // Invalidation writes back dirty pages, which the files still accept.
        let is_dropped = self.invalidations.drop_pages_and_wait(revoked.iter().map(|file| file.node));
        revoked.iter().for_each(|file| file.revoke());
        // Waits for operations that were permitted earlier.
        drop(self.operations.write().unwrap_or_else(PoisonError::into_inner));
        is_dropped
    }

    /// Returns `true` if a folder is mounted at or below this path, which is relative to the root.
    pub(crate) fn is_mounted_below(&self, path: &Path) -> bool {
        let mounted = self.mounted.lock().unwrap_or_else(PoisonError::into_inner);
        mounted.iter().any(|folder| folder.strip_prefix("/").is_ok_and(|folder| folder.starts_with(path)))
    }

    /// Marks an operation as running until the returned guard is dropped.
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
        self.pending.close();
        self.locks.close();
    }
}

fn process_answers(server: &Weak<Server>, answers: &Receiver<TicketAnswer>) {
    for TicketAnswer { id, answer } in answers {
        let Some(server) = server.upgrade() else { return };
        server.resume(id, answer);
    }
}

fn process_locks(server: &Weak<Server>, locks: &Locks) {
    while let Some(waiting) = locks.next_waiting() {
        let Some(server) = server.upgrade() else { return };
        waiting.into_iter().for_each(|waiting| server.try_lock(waiting));
        drop(server);
        locks.wait_before_retry();
    }
}

fn process_deferred(server: &Weak<Server>, pending: &Pending) {
    while let Some(released) = pending.next_resumable() {
        let Some(server) = server.upgrade() else { return };
        released.into_iter().for_each(|held| server.resume_deferred(held));
    }
}

fn process_interruptions(server: &Weak<Server>, pending: &Pending) {
    while let Some(terminated) = pending.next_terminated(signals::is_terminating) {
        let Some(server) = server.upgrade() else { return };
        terminated.into_iter().for_each(|unique| server.interrupt(unique));
    }
}
