//! Tests that dangerous system calls are refused, and that similar harmless calls are permitted.

use crate::harness::{Fixture, Probe};

#[test]
fn dangerous_calls_are_refused() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    let refused = "socket-unix socketpair-datagram socketpair-raw socketpair-tipc socket-netlink socket-packet socket-vsock socket-alg ptrace process-vm-readv \
        pidfd-getfd keyctl add-key request-key io-uring-setup bpf perf-event-open userfaultfd open-by-handle-at inotify \
        mount umount open-tree fsopen mount-setattr chroot setns unshare-user unshare-net clone-user tiocsti tioclinux \
        reboot init-module";
    for call in refused.split(' ').filter(|call| !call.is_empty()) {
        assert_eq!(probe.send_command(&format!("call {call}")), "err EPERM", "{call}");
    }
    for call in ["clone3", "x32-getpid"] {
        assert_eq!(probe.send_command(&format!("call {call}")), "err ENOSYS", "{call}");
    }
}

#[test]
fn similar_harmless_calls_work() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    for call in [
        "socket-inet",
        "socket-inet6",
        "socketpair",
        "socketpair-packets",
        "unshare-files",
        "fionread",
        "getpid",
    ] {
        let answer = probe.send_command(&format!("call {call}"));
        assert!(answer.starts_with("ok"), "{call}: {answer}");
    }
    assert_eq!(probe.send_command("run echo a child"), "ok a child");
}

#[test]
fn setuid_files_cannot_be_created() {
    use std::os::unix::fs::PermissionsExt;
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    assert_eq!(probe.send_command("write file x"), "ok");
    assert_eq!(probe.send_command("run chmod 755 file"), "ok");
    for mode in ["u+s", "4755", "g+s", "2755"] {
        let answer = probe.send_command(&format!("run chmod {mode} file"));
        assert!(answer.contains("Operation not permitted"), "{answer}");
    }
    let made = probe.send_command("run python3 -c import\tos;os.open('new',os.O_CREAT,0o4755)");
    assert!(made.contains("Operation not permitted"), "{made}");
    let file = std::fs::metadata(fixture.path("session/file")).unwrap();
    assert_eq!(file.permissions().mode() & 0o7777, 0o755);
    assert!(!std::path::Path::new(&fixture.path("session/new")).exists());
}

#[test]
fn process_has_and_gains_no_privileges() {
    let fixture = Fixture::new();
    let mut probe = fixture.probe();
    let status = probe.send_command("read /proc/self/status");
    for line in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert!(status.contains(&format!("{line}\t0000000000000000|")), "{line}: {status}");
    }
    assert!(status.contains("NoNewPrivs:\t1|"), "{status}");
    assert!(status.contains("Seccomp:\t2|"), "{status}");
    let first = probe.send_command("read /proc/1/status");
    assert!(first.contains("Seccomp:\t2|"), "{first}");
}

#[test]
fn file_pages_and_leases_are_refused() {
    let fixture = Fixture::new();
    let mut probe = Probe::start(&fixture.spec(&["python3", "-c", PAGES]));
    assert_eq!(probe.wait().status, Some(0));
    let mut output = String::new();
    std::io::Read::read_to_string(&mut probe.stdout, &mut output).unwrap();
    let refused = ["splice EINVAL", "tee EINVAL", "vmsplice EINVAL", "sendfile EINVAL", "zero-copy EPERM"];
    let others = ["lease EPERM", "notify EPERM", "copied ok", "sent ok", "keep-alive ok", "locked ok"];
    assert_eq!(output.lines().collect::<Vec<_>>(), [refused.as_slice(), &others].concat());
}

/// Refused calls, each with the fallback that programs use instead.
const PAGES: &str = "
import ctypes, errno, fcntl, os, shutil, socket
libc = ctypes.CDLL(None, use_errno=True)
def outcome(name, call):
    try:
        call()
        print(name, 'ok')
    except OSError as error:
        print(name, errno.errorcode[error.errno])
def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), 'refused')
with open('data', 'w') as file:
    file.write('data')
file = os.open('data', os.O_RDONLY)
(one, into_one), (other, into_other) = os.pipe(), os.pipe()
here, there = socket.socketpair()
tcp = socket.socket()
os.write(into_one, b'x')
class Piece(ctypes.Structure):
    _fields_ = [('at', ctypes.c_char_p), ('length', ctypes.c_size_t)]
outcome('splice', lambda: os.splice(file, into_one, 4))
outcome('tee', lambda: checked(libc.tee(one, into_other, 1, 0)))
outcome('vmsplice', lambda: checked(libc.vmsplice(into_one, ctypes.byref(Piece(b'x', 1)), 1, 0)))
outcome('sendfile', lambda: os.sendfile(here.fileno(), file, 0, 4))
outcome('zero-copy', lambda: tcp.setsockopt(socket.SOL_SOCKET, 60, 1))
outcome('lease', lambda: fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK))
outcome('notify', lambda: fcntl.fcntl(os.open('.', os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE))
def copies():
    shutil.copyfile('data', 'copy')
    assert open('copy').read() == 'data'
def sends():
    here.sendfile(open('data', 'rb'))
    assert there.recv(4) == b'data'
outcome('copied', copies)
outcome('sent', sends)
outcome('keep-alive', lambda: tcp.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1))
outcome('locked', lambda: fcntl.flock(file, fcntl.LOCK_EX))
";

#[test]
fn foreign_architecture_is_killed() {
    let fixture = Fixture::new();
    let mut probe = Probe::start(&fixture.spec(&["python3", "-c", INT80]));
    // Signal 31 is `SIGSYS`.
    assert_eq!(probe.wait().status, Some(128 + 31));
    let mut output = String::new();
    std::io::Read::read_to_string(&mut probe.stdout, &mut output).unwrap();
    assert_eq!(output, "about to\n");
}

/// Runs `mov eax, 20; int 0x80; ret`: a 32-bit `getpid`.
const INT80: &str = "
import ctypes, mmap, sys
print('about to', flush=True)
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes([0xb8, 20, 0, 0, 0, 0xcd, 0x80, 0xc3]))
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
print(ctypes.CFUNCTYPE(ctypes.c_int)(start)())
";
