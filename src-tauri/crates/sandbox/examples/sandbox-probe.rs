//! Server for the sandbox tests. On request, attempts what a hostile server would attempt, and reports the result.
//!
//! Requests and answers are single lines. An answer is `ok ...` or `err NAME`, where NAME is the errno.

#![expect(unsafe_code, reason = "the tests check refusals of raw system calls")]
#![expect(clippy::print_stdout, reason = "answers go to standard output")]

use std::{
    env,
    error::Error,
    fs::{self, File, OpenOptions},
    io::{self, BufRead, Read, Write},
    net::{TcpListener, TcpStream},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{fs::OpenOptionsExt, net::UnixStream},
    },
    process::Command,
    ptr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc,
    },
    thread::{self, JoinHandle},
};

type ControlAnswer = Result<String, Box<dyn Error>>;

/// Granted files that the probe keeps open. Tests check that the supervisor detects this.
#[derive(Default)]
struct Held {
    files: Vec<File>,
    maps: Vec<(*mut libc::c_void, usize)>,
    parked: Vec<(UnixStream, UnixStream)>,
    writers: Vec<File>,
}

/// Thread that repeatedly reads a file or folder until it is stopped or the result changes.
struct Stare {
    stop: Arc<AtomicBool>,
    looks: JoinHandle<Result<u64, String>>,
}

fn main() {
    let mut held = Held::default();
    let mut stare = None;
    for line in io::stdin().lock().lines() {
        let Ok(line) = line else { return };
        let (what, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match what {
            "stare" => begin_to_stare(rest).map(|begun| {
                stare = Some(begun);
                String::new()
            }),
            "blink" => stare.take().ok_or_else(|| "nothing is being checked".into()).and_then(Stare::end),
            _ => act(what, rest, &mut held),
        };
        match answer {
            Ok(text) => println!("ok {}", text.trim_end().replace('\n', "|")),
            Err(error) => println!("err {}", name_of(error.as_ref())),
        }
    }
}

fn begin_to_stare(path: &str) -> Result<Stare, Box<dyn Error>> {
    let look = |path: &str| -> io::Result<Vec<u8>> {
        if !fs::metadata(path)?.is_dir() {
            return fs::read(path);
        }
        let names = fs::read_dir(path)?.map(|entry| Ok(entry?.file_name().into_encoded_bytes()));
        let names = names.collect::<io::Result<Vec<_>>>()?;
        // Compares only if a folder is empty, because other names may come and go.
        Ok(if names.is_empty() { b"empty".to_vec() } else { Vec::new() })
    };
    let (path, first) = (path.to_owned(), look(path)?);
    let stop = Arc::new(AtomicBool::new(false));
    let told = stop.clone();
    let look = move || match look(&path) {
        Ok(seen) if seen == first => Ok(()),
        Ok(seen) => Err(format!("{path}: {}", String::from_utf8_lossy(&seen))),
        Err(error) => Err(format!("{path}: {error}")),
    };
    let (begun, begins) = mpsc::channel();
    let looks = thread::spawn(move || {
        let mut looks = 0;
        while !told.load(Ordering::Relaxed) {
            look()?;
            looks += 1;
            // Ignores the error: only the first check is awaited.
            let _ = begun.send(());
        }
        Ok(looks)
    });
    // Ignores the error: `blink` reports a failure when it stops the thread.
    let _ = begins.recv();
    Ok(Stare { stop, looks })
}

impl Stare {
    /// Stops the thread and returns the number of checks.
    fn end(self) -> ControlAnswer {
        self.stop.store(true, Ordering::Relaxed);
        let looked = self.looks.join().map_err(|_| "the thread panicked")?;
        Ok(looked.map_or_else(|missed| format!("missed: {missed}"), |looks| looks.to_string()))
    }
}

fn act(what: &str, rest: &str, held: &mut Held) -> ControlAnswer {
    let (path, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let done = String::new();
    match what {
        "read" => Ok(fs::read_to_string(rest)?),
        "list" => {
            let mut names = fs::read_dir(rest)?.map(|e| Ok(e?.file_name().into_string().unwrap_or_default()));
            let mut names = names.by_ref().collect::<io::Result<Vec<_>>>()?;
            names.sort();
            Ok(names.join(" "))
        }
        "exists" => fs::symlink_metadata(rest).map(|_| done).map_err(Into::into),
        "write" => fs::write(path, text).map(|()| done).map_err(Into::into),
        "pipe-write" => {
            let mut pipe = OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path)?;
            pipe.write_all(text.as_bytes()).map(|()| done).map_err(Into::into)
        }
        "pipe-read" => {
            let mut bytes = [0; 64];
            let mut pipe = OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(rest)?;
            let length = pipe.read(&mut bytes)?;
            Ok(String::from_utf8_lossy(bytes.get(..length).unwrap_or_default()).into_owned())
        }
        "mkfifo" => {
            let path = std::ffi::CString::new(rest)?;
            // SAFETY: the path is a C string that stays valid during the call.
            check(unsafe { libc::mkfifo(path.as_ptr(), 0o600) }.into()).map(|_| done)
        }
        "open-write" => OpenOptions::new().write(true).open(rest).map(|_| done).map_err(Into::into),
        "rename" => fs::rename(path, text).map(|()| done).map_err(Into::into),
        "mkdir" => fs::create_dir(rest).map(|()| done).map_err(Into::into),
        "symlink" => std::os::unix::fs::symlink(path, text).map(|()| done).map_err(Into::into),
        "cd" => env::set_current_dir(rest).map(|()| done).map_err(Into::into),
        "cwd" => Ok(env::current_dir()?.display().to_string()),
        "hold" => {
            held.files.push(File::open(rest)?);
            Ok(done)
        }
        "hold-writing" => {
            held.writers.push(OpenOptions::new().append(true).open(rest)?);
            Ok(done)
        }
        "write-held" => {
            let file = held.writers.last_mut().ok_or("no file is held")?;
            file.write_all(rest.as_bytes()).map(|()| done).map_err(Into::into)
        }
        "read-held" => {
            let file = held.files.last().ok_or("no file is held")?;
            Ok(fs::read_to_string(format!("/proc/self/fd/{}", file.as_raw_fd()))?)
        }
        "map" => map(rest, held).map(|()| done),
        "park" => park(rest, held).map(|()| done),
        "let-go" => {
            *held = Held::default();
            Ok(done)
        }
        "env" => Ok(env::vars().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")),
        "fds" => {
            let mut numbers: Vec<String> = Vec::new();
            for number in 0..1024 {
                // SAFETY: `F_GETFD` changes nothing, and the number need not be an open descriptor.
                if unsafe { libc::fcntl(number, libc::F_GETFD) } >= 0 {
                    numbers.push(number.to_string());
                }
            }
            Ok(numbers.join(" "))
        }
        "connect" => TcpStream::connect(rest).map(|_| done).map_err(Into::into),
        "ask" => {
            let mut stream = TcpStream::connect(path)?;
            stream.write_all(text.as_bytes())?;
            Ok(io::read_to_string(&mut stream)?)
        }
        "loopback" => loopback(),
        "run" => {
            let words: Vec<&str> = rest.split(' ').collect();
            let (program, args) = words.split_first().ok_or("no program")?;
            let output = Command::new(program).args(args).output()?;
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            if output.status.success() {
                Ok(said)
            } else {
                Err(format!("{} {}", output.status, String::from_utf8_lossy(&output.stderr)).into())
            }
        }
        "sleepers" => {
            for _ in 0..rest.parse()? {
                Command::new("sleep").arg("1000").spawn()?;
            }
            Ok(done)
        }
        "close-stdout" => {
            // SAFETY: this program writes nothing to standard output after this.
            unsafe { libc::close(1) };
            Ok(done)
        }
        "limit" => {
            let resource = match rest {
                "processes" => libc::RLIMIT_NPROC,
                "files" => libc::RLIMIT_NOFILE,
                "file-size" => libc::RLIMIT_FSIZE,
                "core" => libc::RLIMIT_CORE,
                _ => return Err("unknown limit".into()),
            };
            let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
            // SAFETY: the kernel writes only to `limit`, which stays valid during the call.
            check(unsafe { libc::getrlimit(resource, &raw mut limit) }.into())?;
            Ok(format!("{} {}", limit.rlim_cur, limit.rlim_max))
        }
        "exit" => std::process::exit(rest.parse()?),
        "call" => call(rest).map(|value| value.to_string()),
        _ => Err("unknown request".into()),
    }
}

fn map(path: &str, held: &mut Held) -> Result<(), Box<dyn Error>> {
    let file = File::open(path)?;
    // SAFETY: the kernel chooses the address, and nothing reads through the mapping.
    let at =
        unsafe { libc::mmap(ptr::null_mut(), 4096, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED {
        return Err(io::Error::last_os_error().into());
    }
    held.maps.push((at, 4096));
    Ok(())
}

impl Drop for Held {
    fn drop(&mut self) {
        for (at, length) in &self.maps {
            // SAFETY: `map` created the mapping, and nothing uses it.
            unsafe { libc::munmap(*at, *length) };
        }
    }
}

/// Leaves the only descriptor of a file in the queue of a socket pair, where no `/proc/PID/fd` shows it.
fn park(path: &str, held: &mut Held) -> Result<(), Box<dyn Error>> {
    let file = File::open(path)?;
    let (here, there) = UnixStream::pair()?;
    let mut byte = [b'x'];
    let mut part = libc::iovec { iov_base: byte.as_mut_ptr().cast(), iov_len: 1 };
    let mut space = [0u64; 4];
    // SAFETY: all-zero is a valid `msghdr`.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = space.as_mut_ptr().cast();
    // SAFETY: the header is within `space`, which is aligned and large enough for one descriptor.
    unsafe {
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header).cast::<i32>().write_unaligned(file.as_raw_fd());
        check(libc::sendmsg(here.as_raw_fd(), &raw const message, 0) as i64)?;
    }
    held.parked.push((here, there));
    Ok(())
}

/// Listens on the sandbox's loopback and connects to that listener.
fn loopback() -> ControlAnswer {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut caller = TcpStream::connect(listener.local_addr()?)?;
    let (mut called, _) = listener.accept()?;
    caller.write_all(b"hello")?;
    drop(caller);
    Ok(io::read_to_string(&mut called)?)
}

/// Makes a system call by name, with arguments that would take effect if the call were permitted.
fn call(name: &str) -> Result<i64, Box<dyn Error>> {
    let socket = |family: i32, kind: i32| {
        // SAFETY: `socket` takes no pointers.
        check(unsafe { libc::socket(family, kind, 0) }.into())
    };
    let pair = |family: i32, kind: i32| {
        let mut ends = [-1; 2];
        // SAFETY: the array has room for two descriptors and stays valid during the call.
        check(unsafe { libc::socketpair(family, kind, 0, ends.as_mut_ptr()) }.into())
    };
    // SAFETY: every call below gets null pointers, constant strings, or structures of the right size that stay valid;
    // no call writes into this program's memory.
    unsafe {
        let nothing = ptr::null::<libc::c_void>();
        let here = c"/tmp".as_ptr();
        match name {
            "socket-unix" => socket(libc::AF_UNIX, libc::SOCK_STREAM),
            "socket-netlink" => socket(libc::AF_NETLINK, libc::SOCK_RAW),
            "socket-packet" => socket(libc::AF_PACKET, libc::SOCK_RAW),
            "socket-vsock" => socket(libc::AF_VSOCK, libc::SOCK_STREAM),
            "socket-alg" => socket(libc::AF_ALG, libc::SOCK_SEQPACKET),
            "socket-inet" => socket(libc::AF_INET, libc::SOCK_STREAM),
            "socket-inet6" => socket(libc::AF_INET6, libc::SOCK_DGRAM),
            "socketpair-datagram" => pair(libc::AF_UNIX, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC),
            "socketpair-raw" => pair(libc::AF_UNIX, libc::SOCK_RAW),
            "socketpair-packets" => pair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_NONBLOCK),
            "socketpair-tipc" => pair(libc::AF_TIPC, libc::SOCK_SEQPACKET),
            "socketpair" => Ok(UnixStream::pair().map(|_| 0)?),
            "ptrace" => check(libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0)),
            "process-vm-readv" => {
                check(libc::syscall(libc::SYS_process_vm_readv, 1, nothing, 0, nothing, 0, 0))
            }
            "pidfd-getfd" => check(libc::syscall(libc::SYS_pidfd_getfd, -1, 0, 0)),
            "keyctl" => check(libc::syscall(libc::SYS_keyctl, 0, -3, 0)),
            "add-key" => {
                check(libc::syscall(libc::SYS_add_key, c"user".as_ptr(), c"k".as_ptr(), c"v".as_ptr(), 1, -3))
            }
            "request-key" => {
                check(libc::syscall(libc::SYS_request_key, c"user".as_ptr(), c"k".as_ptr(), nothing, 0))
            }
            "io-uring-setup" => check(libc::syscall(libc::SYS_io_uring_setup, 1, [0u8; 120].as_mut_ptr())),
            "bpf" => check(libc::syscall(libc::SYS_bpf, 0, nothing, 0)),
            "perf-event-open" => check(libc::syscall(libc::SYS_perf_event_open, nothing, 0, -1, -1, 0)),
            "userfaultfd" => check(libc::syscall(libc::SYS_userfaultfd, 1)),
            "open-by-handle-at" => check(libc::syscall(libc::SYS_open_by_handle_at, -100, nothing, 0)),
            "inotify" => {
                let queue = OwnedFd::from_raw_fd(i32::try_from(check(libc::inotify_init1(0).into())?)?);
                check(libc::inotify_add_watch(queue.as_raw_fd(), here, libc::IN_ALL_EVENTS).into())
            }
            "mount" => check(libc::mount(c"none".as_ptr(), here, c"tmpfs".as_ptr(), 0, nothing).into()),
            "umount" => check(libc::umount2(here, libc::MNT_DETACH).into()),
            "open-tree" => check(libc::syscall(libc::SYS_open_tree, -100, here, 1)),
            "fsopen" => check(libc::syscall(libc::SYS_fsopen, c"tmpfs".as_ptr(), 0)),
            "mount-setattr" => {
                check(libc::syscall(libc::SYS_mount_setattr, -100, here, 0, [0u64; 4].as_ptr(), 32))
            }
            "chroot" => check(libc::chroot(here).into()),
            "setns" => {
                let namespace = File::open("/proc/self/ns/mnt")?;
                check(libc::setns(namespace.as_raw_fd(), 0).into())
            }
            "unshare-user" => check(libc::unshare(libc::CLONE_NEWUSER).into()),
            "unshare-net" => check(libc::unshare(libc::CLONE_NEWNET).into()),
            "unshare-files" => check(libc::unshare(libc::CLONE_FILES).into()),
            "clone-user" => {
                let flags = i64::from(libc::CLONE_NEWUSER | libc::SIGCHLD);
                let child = libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0);
                if child == 0 {
                    libc::_exit(0);
                }
                check(child)
            }
            "clone3" => check(libc::syscall(libc::SYS_clone3, nothing, 0)),
            "tiocsti" => check(libc::ioctl(0, libc::TIOCSTI, c"x".as_ptr()).into()),
            "tioclinux" => check(libc::ioctl(0, libc::TIOCLINUX, c"x".as_ptr()).into()),
            "fionread" => check(
                libc::ioctl(0, libc::FIONREAD, (&raw mut *Box::leak(Box::new(0i32))).cast::<libc::c_void>())
                    .into(),
            ),
            "x32-getpid" => check(libc::syscall(0x4000_0000 + libc::SYS_getpid)),
            "getpid" => check(libc::syscall(libc::SYS_getpid)),
            "reboot" => {
                check(libc::syscall(libc::SYS_reboot, 0xfee1_dead_u32, 672_274_793, 0x89ab_cdef_u32, nothing))
            }
            "init-module" => check(libc::syscall(libc::SYS_init_module, nothing, 0, nothing)),
            _ => Err("unknown call".into()),
        }
    }
}

fn check(value: i64) -> Result<i64, Box<dyn Error>> {
    if value < 0 { Err(io::Error::last_os_error().into()) } else { Ok(value) }
}

fn name_of(error: &(dyn Error + 'static)) -> String {
    let Some(code) = error.downcast_ref::<io::Error>().and_then(io::Error::raw_os_error) else {
        return error.to_string().replace('\n', "|");
    };
    let names = [
        (libc::EPERM, "EPERM"),
        (libc::ENOENT, "ENOENT"),
        (libc::EACCES, "EACCES"),
        (libc::EBUSY, "EBUSY"),
        (libc::EROFS, "EROFS"),
        (libc::ENOSYS, "ENOSYS"),
        (libc::ENETUNREACH, "ENETUNREACH"),
        (libc::ECONNREFUSED, "ECONNREFUSED"),
        (libc::EAGAIN, "EAGAIN"),
    ];
    names
        .iter()
        .find(|(number, _)| *number == code)
        .map_or_else(|| code.to_string(), |(_, name)| (*name).to_owned())
}
