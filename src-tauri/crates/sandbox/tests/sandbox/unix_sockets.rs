//! Tests that a sandbox with its own unix sockets cannot connect to the user's sockets.

use std::{io::Read, os::unix::net::UnixListener};

use ironcurtain_sandbox::{Mount, MountAccess::ReadOnly, Spec, UnixSockets, View};

use crate::harness::{Fixture, Probe};

/// Listener of one of the user's programs.
struct UserSocket(UnixListener);

impl UserSocket {
    fn at(path: &str) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        listener.set_nonblocking(true).unwrap();
        Self(listener)
    }

    fn was_called(&self) -> bool {
        self.0.accept().is_ok()
    }
}

/// Runs a script in the sandbox and returns the lines it prints.
fn output(spec: &Spec) -> Vec<String> {
    let mut probe = Probe::start(spec);
    let mut output = String::new();
    probe.stdout.read_to_string(&mut output).unwrap();
    let mut complaints = String::new();
    probe.stderr.read_to_string(&mut complaints).unwrap();
    assert_eq!((probe.wait().status, complaints.as_str()), (Some(0), ""));
    output.lines().map(str::to_owned).collect()
}

fn script(fixture: &Fixture, script: &str, host_read: bool) -> Spec {
    let mut spec = fixture.spec(&["python3", "-c", &format!("{PARTS}{script}"), &fixture.path("dir")]);
    spec.unix_sockets = UnixSockets::Own;
    if host_read {
        spec.view = View::HostRead {
            session_dir: Some(fixture.path("session")),
            deny_read: vec![],
            allow_read: vec![],
            allow_write: vec![],
            deny_write: vec![],
            private_tmp: true,
        };
    } else {
        spec.mounts = vec![Mount::new(fixture.path("dir"), ReadOnly)];
    }
    spec
}

const PARTS: &str = "
import ctypes, errno, os, socket, sys, threading
folder = sys.argv[1]
def outcome(name, call):
    try:
        call()
        print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def connect(path, kind=socket.SOCK_STREAM):
    socket.socket(socket.AF_UNIX, kind).connect(path)
def listen(path, kind=socket.SOCK_STREAM):
    listener = socket.socket(socket.AF_UNIX, kind)
    listener.bind(path)
    listener.listen(200)
    return listener
";

#[test]
fn users_sockets_are_unreachable() {
    for host_read in [false, true] {
        let fixture = Fixture::new();
        std::fs::create_dir(fixture.path("dir")).unwrap();
        let user = UserSocket::at(&fixture.path("dir/user"));
        let attempts = "
os.symlink(folder + '/user', 'link')
outcome('by its path', lambda: connect(folder + '/user'))
outcome('by a link', lambda: connect('link'))
outcome('by a relative path', lambda: (os.chdir(folder), connect('user')))
outcome('from a thread', lambda: connect('./user'))
outcome('by a process', lambda: connect('/proc/%d/root%s/user' % (os.getpid(), folder)))
outcome('a datagram socket', lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
outcome('a pair of them', lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
outcome('nothing there', lambda: connect('/tmp/nothing'))
";
        // A mask is a regular file, so connecting to it is refused.
        let refusal = if host_read { "EACCES" } else { "ECONNREFUSED" };
        let mut expected: Vec<String> = ["by its path", "by a link", "by a relative path", "from a thread"]
            .iter()
            .map(|way| format!("{way} {refusal}"))
            .collect();
        let others =
            ["by a process ELOOP", "a datagram socket EPERM", "a pair of them EPERM", "nothing there ENOENT"];
        expected.extend(others.map(str::to_owned));
        assert_eq!(output(&script(&fixture, attempts, host_read)), expected);
        assert!(!user.was_called());
    }
}

#[test]
fn own_and_internet_sockets_work() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("dir")).unwrap();
    let attempts = "
listeners = [listen('own'), listen('/tmp/own'), listen('/dev/shm/own'), listen('\\0own')]
os.symlink('own', 'link')
os.mkdir('sub')
outcome('in its folder', lambda: connect(os.getcwd() + '/own'))
outcome('by a relative path', lambda: connect('sub/../own'))
outcome('by a link', lambda: connect('link'))
outcome('in /tmp', lambda: connect('/tmp/own'))
outcome('in /dev/shm', lambda: connect('/dev/shm/own'))
outcome('abstract', lambda: connect('\\0own'))
packets = listen('packets', socket.SOCK_SEQPACKET)
outcome('packets', lambda: connect('packets', socket.SOCK_SEQPACKET))
outcome('another kind', lambda: connect('packets'))
thread = threading.Thread(target=lambda: outcome('from a thread', lambda: connect('own')))
thread.start(); thread.join()
here, there = socket.socketpair()
here.send(b'x'); assert there.recv(1) == b'x'
talk = listen('talk')
caller = socket.socket(socket.AF_UNIX); caller.connect('talk')
called, _ = talk.accept()
caller.send(b'words'); assert called.recv(5) == b'words'
tcp = socket.create_server(('127.0.0.1', 0))
outcome('tcp', lambda: socket.create_connection(tcp.getsockname()))
quick = socket.socket(); quick.setblocking(False)
assert quick.connect_ex(tcp.getsockname()) in (0, errno.EINPROGRESS)
port = tcp.getsockname(); tcp.close()
outcome('tcp refused', lambda: socket.create_connection(port))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
outcome('udp', lambda: udp.connect(('127.0.0.1', 9)))
def no_socket():
    if ctypes.CDLL(None, use_errno=True).connect(0, b'x', 1) < 0:
        raise OSError(ctypes.get_errno(), '')
outcome('no socket', no_socket)
";
    let expected = [
        "in its folder ok",
        "by a relative path ok",
        "by a link ok",
        "in /tmp ok",
        "in /dev/shm ok",
        "abstract ok",
        "packets ok",
        "another kind EPROTOTYPE",
        "from a thread ok",
        "tcp ok",
        "tcp refused ECONNREFUSED",
        "udp ok",
        "no socket ENOTSOCK",
    ];
    assert_eq!(output(&script(&fixture, attempts, false)), expected);
}

#[test]
fn address_changed_during_the_call_has_no_effect() {
    let fixture = Fixture::new();
    std::fs::create_dir(fixture.path("dir")).unwrap();
    let user = UserSocket::at(&fixture.path("dir/user"));
    let attempts = "
libc = ctypes.CDLL(None, use_errno=True)
def address(path):
    return (socket.AF_UNIX).to_bytes(2, sys.byteorder) + path.encode().ljust(106, b'\\0')
own, user = address(os.getcwd() + '/own'), address(folder + '/user')
listener = listen('own')
memory = ctypes.create_string_buffer(own, 108)
over = False
def change():
    while not over:
        ctypes.memmove(memory, user, 108)
        ctypes.memmove(memory, own, 108)
thread = threading.Thread(target=change)
thread.start()
connected = 0
for _ in range(400):
    caller = socket.socket(socket.AF_UNIX)
    connected += libc.connect(caller.fileno(), memory, 108) == 0
    caller.close()
    listener.setblocking(False)
    try:
        listener.accept()[0].close()
    except BlockingIOError:
        pass
over = True
thread.join()
print('connected', connected > 0)
";
    assert_eq!(output(&script(&fixture, attempts, true)), ["connected True"]);
    assert!(!user.was_called());
}
