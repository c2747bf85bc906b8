//! Fixture: a served folder, a fake kernel that sends requests as bytes, and a fake gate.

use std::{
    collections::HashMap,
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex,
        mpsc::{self, Receiver},
    },
    time::Duration,
};

use rustix::io::Errno;

use crate::{
    device::Device,
    gate::{AccessKind, AskedAccess, Gate, Ticket, WantedAccess},
    hidden::Hidden,
    server::Server,
};

pub(super) const TIMEOUT: Duration = Duration::from_secs(20);

/// Fake kernel that collects the messages that it receives.
struct FakeKernel(Mutex<mpsc::Sender<Vec<u8>>>);

impl Device for FakeKernel {
    fn read(&self, _: &mut [u8]) -> io::Result<Option<usize>> {
        Ok(None)
    }

    fn write(&self, parts: &[&[u8]]) -> io::Result<()> {
        self.0.lock().unwrap().send(parts.concat()).map_err(io::Error::other)
    }
}

/// Gate that permits a fixed set of accesses and keeps the tickets of all others.
#[derive(Default)]
pub(super) struct FakeGate {
    pub(super) permitted: Mutex<Vec<WantedAccess>>,
    pub(super) asked: Mutex<HashMap<WantedAccess, Vec<Ticket>>>,
    pub(super) withdrawn: Mutex<Vec<u64>>,
    /// Number of permission checks that can still succeed, or `None` for no limit.
    pub(super) permits_times: Mutex<Option<u32>>,
}

impl Gate for FakeGate {
    fn permits(&self, access: &WantedAccess) -> bool {
        if let Some(left) = &mut *self.permits_times.lock().unwrap() {
            let Some(less) = left.checked_sub(1) else { return false };
            *left = less;
        }
        self.permitted.lock().unwrap().contains(access)
    }

    fn ask(&self, asked: &AskedAccess, _: u32, ticket: Ticket) {
        self.asked.lock().unwrap().entry(asked.access.clone()).or_default().push(ticket);
    }

    fn starts_programs(&self, path: &Path) -> bool {
        path.ends_with("run-me") || path.ends_with(".vscode")
    }

    fn leads_to_programs(&self, path: &Path) -> bool {
        self.starts_programs(path) || path.ends_with(".git")
    }

    fn withdraw(&self, ticket: u64) {
        self.withdrawn.lock().unwrap().push(ticket);
    }
}

/// Served folder, and the fake kernel that sends requests.
pub(super) struct Scene {
    pub(super) dir: tempfile::TempDir,
    pub(super) server: Arc<Server>,
    pub(super) gate: Arc<FakeGate>,
    pub(super) written: Receiver<Vec<u8>>,
    pub(super) last: std::cell::Cell<u64>,
}

pub(super) type ServedReply = Result<Vec<u8>, i32>;

impl Scene {
    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.txt"), "content").unwrap();
        fs::write(dir.path().join("secret"), "key").unwrap();
        fs::hard_link(dir.path().join("secret"), dir.path().join("linked")).unwrap();
        fs::create_dir(dir.path().join("sub")).unwrap();
        std::os::unix::fs::symlink("a.txt", dir.path().join("link")).unwrap();
        let (sender, written) = mpsc::channel();
        let gate = Arc::new(FakeGate::default());
        let root = fs::File::open(dir.path()).unwrap();
        // The view checks hidden paths relative to its root, but reads their inodes at the absolute path, so both are
        // listed.
        let hidden = vec![PathBuf::from("/secret"), dir.path().join("secret")];
        let device = Arc::new(FakeKernel(Mutex::new(sender)));
        let ids = [rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw()];
        let server = Server::start(device, root, Hidden::new(&hidden, &[]), gate.clone(), ids).unwrap();
        Self { dir, server, gate, written, last: std::cell::Cell::new(0) }
    }

    /// Sends a request and returns its unique number.
    pub(super) fn send(&self, opcode: u32, node: u64, body: &[u8]) -> u64 {
        let unique = self.last.get() + 2;
        self.last.set(unique);
        let mut bytes = u32::try_from(40 + body.len()).unwrap().to_ne_bytes().to_vec();
        bytes.extend(opcode.to_ne_bytes());
        bytes.extend(unique.to_ne_bytes());
        bytes.extend(node.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(std::process::id().to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        self.server.handle(&bytes, Vec::new());
        unique
    }

    /// Returns the reply to a request. Skips notifications.
    pub(super) fn reply(&self, unique: u64) -> ServedReply {
        loop {
            let message = self.written.recv_timeout(TIMEOUT).expect("a reply");
            let number = |at: usize| i32::from_ne_bytes(message[at..at + 4].try_into().unwrap());
            assert_eq!(usize::try_from(number(0)).unwrap(), message.len());
            let to = u64::from_ne_bytes(message[8..16].try_into().unwrap());
            if to == 0 {
                continue;
            }
            assert_eq!(to, unique);
            return if number(4) == 0 { Ok(message[16..].to_vec()) } else { Err(-number(4)) };
        }
    }

    pub(super) fn call(&self, opcode: u32, node: u64, body: &[u8]) -> ServedReply {
        let unique = self.send(opcode, node, body);
        self.reply(unique)
    }

    pub(super) fn look_up(&self, parent: u64, name: &str) -> Result<u64, i32> {
        let reply = self.call(1, parent, &named(&[], name))?;
        Ok(u64::from_ne_bytes(reply[..8].try_into().unwrap()))
    }

    /// Opens a file, answers the question and returns the handle.
    pub(super) fn open(&self, node: u64, flags: i32, allowed: bool) -> Result<u64, i32> {
        let unique = self.send(14, node, &[flags.to_ne_bytes(), [0; 4]].concat());
        self.answer(allowed);
        self.reply(unique).map(|reply| u64::from_ne_bytes(reply[..8].try_into().unwrap()))
    }

    /// Answers all pending questions.
    pub(super) fn answer(&self, allowed: bool) {
        for ticket in std::mem::take(&mut *self.gate.asked.lock().unwrap()).into_values().flatten() {
            if allowed { ticket.allow() } else { ticket.deny() }
        }
    }

    pub(super) fn read(&self, handle: u64, offset: u64) -> ServedReply {
        let fields = [handle.to_ne_bytes(), offset.to_ne_bytes()].concat();
        self.call(15, 1, &[&fields[..], &100_u32.to_ne_bytes(), &[0; 20]].concat())
    }

    pub(super) fn write(&self, handle: u64, data: &[u8]) -> ServedReply {
        let size = u32::try_from(data.len()).unwrap().to_ne_bytes();
        self.call(16, 1, &[&handle.to_ne_bytes()[..], &[0; 8], &size, &[0; 20], data].concat())
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(super) fn asked(&self) -> Vec<WantedAccess> {
        self.gate.asked.lock().unwrap().keys().cloned().collect()
    }

    pub(super) fn names(&self, node: u64) -> Vec<String> {
        self.list(28, node).into_iter().map(|(name, _)| name).collect()
    }

    /// Lists a folder with the nodes of its entries; 0 for an entry without a node.
    pub(super) fn names_and_nodes(&self, folder: u64) -> Vec<(String, u64)> {
        self.list(44, folder)
    }

    fn list(&self, opcode: u32, node: u64) -> Vec<(String, u64)> {
        let handle = self.call(27, node, &[0; 8]).unwrap();
        let handle = u64::from_ne_bytes(handle[..8].try_into().unwrap());
        let fields = [handle.to_ne_bytes(), [0; 8]].concat();
        let body = [&fields[..], &4096_u32.to_ne_bytes(), &[0; 20]].concat();
        let reply = self.call(opcode, node, &body).unwrap();
        let (mut rest, entry) = (&reply[..], if opcode == 44 { 128 } else { 0 });
        let mut names = Vec::new();
        while !rest.is_empty() {
            let node = if entry > 0 { u64::from_ne_bytes(rest[..8].try_into().unwrap()) } else { 0 };
            let (length, name) = (&rest[entry + 16..entry + 20], entry + 24);
            let end = name + u32::from_ne_bytes(length.try_into().unwrap()) as usize;
            names.push((String::from_utf8(rest[name..end].to_vec()).unwrap(), node));
            rest = &rest[end.next_multiple_of(8)..];
        }
        names.sort();
        names
    }
}

pub(super) fn named(fields: &[u8], name: &str) -> Vec<u8> {
    [fields, name.as_bytes(), b"\0"].concat()
}

pub(super) fn errno(error: Errno) -> i32 {
    error.raw_os_error()
}

pub(super) fn wanted(path: &str, kind: AccessKind) -> WantedAccess {
    WantedAccess { path: Path::new(path).to_owned(), kind }
}

pub(super) const READ: i32 = 0;
pub(super) const WRITE: i32 = 1;
