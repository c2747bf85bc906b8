"""Performs system calls in the current folder and prints the result of each, for comparison with another folder."""

import ctypes
import errno
import fcntl
import mmap
import os
import stat
import sys

libc = ctypes.CDLL(None, use_errno=True)


def renameat2(old, new, flags):
    if libc.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def write(path, content=b"", flags=os.O_CREAT | os.O_WRONLY | os.O_TRUNC):
    fd = os.open(path, flags, 0o644)
    os.write(fd, content)
    os.close(fd)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def facts(path):
    found = os.lstat(path)
    return stat.filemode(found.st_mode), found.st_nlink if not stat.S_ISDIR(found.st_mode) else None, found.st_size if stat.S_ISREG(found.st_mode) else None


def opened(path, flags, mode=0o644):
    os.close(os.open(path, flags, mode))
    return "open"


def appended():
    write("f", b"one")
    fd = os.open("f", os.O_WRONLY | os.O_APPEND)
    os.lseek(fd, 0, os.SEEK_SET)
    os.write(fd, b"two")
    os.close(fd)
    return read("f")


def two_appenders():
    write("f")
    fds = [os.open("f", os.O_WRONLY | os.O_APPEND) for _ in range(2)]
    for number in range(6):
        os.write(fds[number % 2], str(number).encode())
    return read("f")


def unlinked():
    fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
    os.write(fd, b"content")
    os.unlink("f")
    return os.pread(fd, 10, 0), os.fstat(fd).st_size, os.path.exists("f")


def renamed_open():
    fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
    os.rename("f", "g")
    os.write(fd, b"later")
    os.close(fd)
    return read("g"), os.path.exists("f")


def replaced_open():
    write("f", b"old")
    write("g", b"new")
    fd = os.open("f", os.O_RDONLY)
    os.rename("g", "f")
    return os.read(fd, 9), read("f")


def holes():
    fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
    os.pwrite(fd, b"x", 1 << 20)
    return os.lseek(fd, 0, os.SEEK_DATA) > 0, os.lseek(fd, 0, os.SEEK_HOLE), os.fstat(fd).st_size, os.pread(fd, 2, 5)


def allocated():
    fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
    os.posix_fallocate(fd, 0, 5000)
    return os.fstat(fd).st_size


def mapped():
    write("f", b"0123456789")
    fd = os.open("f", os.O_RDWR)
    area = mmap.mmap(fd, 10)
    area[2:4] = b"xy"
    area.flush()
    return read("f"), area[:4]


def truncated(size):
    write("f", b"0123456789")
    os.truncate("f", size)
    return read("f")


def times():
    write("f")
    os.utime("f", ns=(1_000_000_001, 2_000_000_002))
    found = os.stat("f")
    return found.st_atime_ns, found.st_mtime_ns


def changes_time(change):
    os.mkdir("d")
    write("d/f", b"x")
    os.utime("d", (1, 1))
    os.utime("d/f", (1, 1))
    change()
    return os.stat("d").st_mtime > 1, os.path.exists("d/f") and os.stat("d/f").st_mtime > 1


def listed():
    for number in range(300):
        write(f"file-{number}")
    first = sorted(os.listdir("."))
    for name in first[::2]:
        os.unlink(name)
    return len(first), len(os.listdir(".")), sorted(os.listdir(b"."))[0]


def moved_folder():
    os.makedirs("a/b")
    write("a/b/f", b"deep")
    os.rename("a", "c")
    return read("c/b/f"), os.path.exists("a")


def stays_inside():
    os.makedirs("a/b")
    here = os.getcwd()
    os.chdir("a/b")
    os.rename("../../a", "../../c")
    try:
        write("f", b"x")
        return read("../b/f"), os.getcwd()[len(here):]
    finally:
        os.chdir(here)


def removed_here():
    os.mkdir("a")
    here = os.getcwd()
    os.chdir("a")
    os.rmdir("../a")
    try:
        return opened("f", os.O_CREAT | os.O_WRONLY)
    finally:
        os.chdir(here)


def linked():
    write("f", b"x")
    os.link("f", "g")
    write("g", b"yy")
    same = os.stat("f").st_ino == os.stat("g").st_ino
    return read("f"), same, facts("f"), os.unlink("f"), facts("g")


def locked():
    write("f", b"x")
    first, second = os.open("f", os.O_RDWR), os.open("f", os.O_RDWR)
    fcntl.flock(first, fcntl.LOCK_EX)
    try:
        fcntl.flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(first, fcntl.LOCK_UN)
        fcntl.flock(second, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return "locked and unlocked"


def record_locked():
    write("f", b"0123456789")
    fd = os.open("f", os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 4, 0)
    child = os.fork()
    if not child:
        other = os.open("f", os.O_RDWR)
        try:
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 4, 6)
            fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB, 4, 2)
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    return errno.errorcode.get(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))


def copied():
    write("f", b"content")
    write("g")
    source, target = os.open("f", os.O_RDONLY), os.open("g", os.O_WRONLY)
    return os.copy_file_range(source, target, 7), read("g")


def vectored():
    fd = os.open("f", os.O_CREAT | os.O_RDWR, 0o644)
    os.pwritev(fd, [b"ab", b"", b"cd"], 3)
    first, second = bytearray(3), bytearray(9)
    return os.preadv(fd, [first, second], 0), bytes(first), bytes(second)


def piped():
    os.mkfifo("p")
    reader = os.open("p", os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open("p", os.O_WRONLY)
    os.write(writer, b"through")
    return os.read(reader, 9)


def descriptors():
    os.mkdir("d")
    folder = os.open("d", os.O_RDONLY | os.O_DIRECTORY)
    os.close(os.open("f", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=folder))
    os.rename("f", "g", src_dir_fd=folder, dst_dir_fd=folder)
    os.mkdir("e", dir_fd=folder)
    return sorted(os.listdir(folder)), os.stat("g", dir_fd=folder).st_size


def prepare():
    write("file", b"content")
    os.mkdir("folder")
    write("folder/inner")
    os.mkdir("empty")
    os.symlink("file", "link")
    os.symlink("loop", "loop")
    os.symlink("missing", "dangling")


CALLS = {
    "open missing": lambda: opened("none", os.O_RDONLY),
    "open below missing": lambda: opened("none/f", os.O_CREAT | os.O_WRONLY),
    "open below file": lambda: opened("file/f", os.O_CREAT | os.O_WRONLY),
    "create": lambda: (opened("f", os.O_CREAT | os.O_WRONLY), facts("f")),
    "create exclusively": lambda: opened("file", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    "create exclusively over link": lambda: opened("dangling", os.O_CREAT | os.O_EXCL | os.O_WRONLY),
    "create through link": lambda: (opened("dangling", os.O_CREAT | os.O_WRONLY), os.path.exists("missing")),
    "create with mode": lambda: (opened("f", os.O_CREAT | os.O_WRONLY, 0o751), facts("f")),
    "open folder to write": lambda: opened("folder", os.O_WRONLY),
    "open folder to create": lambda: opened("folder", os.O_CREAT | os.O_RDONLY),
    "open file as folder": lambda: opened("file", os.O_DIRECTORY),
    "open with slash": lambda: opened("file/", os.O_RDONLY),
    "open link without following": lambda: opened("link", os.O_NOFOLLOW),
    "open loop": lambda: opened("loop", os.O_RDONLY),
    "open long name": lambda: opened("x" * 256, os.O_CREAT | os.O_WRONLY),
    "open longest name": lambda: opened("x" * 255, os.O_CREAT | os.O_WRONLY),
    "open long path": lambda: opened("x/" * 2100, os.O_RDONLY),
    "open empty path": lambda: opened("", os.O_RDONLY),
    "truncate on open": lambda: (opened("file", os.O_WRONLY | os.O_TRUNC), facts("file")),
    "read from writer": lambda: os.read(os.open("file", os.O_WRONLY), 1),
    "write to reader": lambda: os.write(os.open("file", os.O_RDONLY), b"x"),
    "read folder as file": lambda: os.read(os.open("folder", os.O_RDONLY), 1),
    "append": appended,
    "two appenders": two_appenders,
    "unlinked file": unlinked,
    "renamed open file": renamed_open,
    "replaced open file": replaced_open,
    "holes": holes,
    "allocate": allocated,
    "map": mapped,
    "truncate": lambda: truncated(4),
    "extend": lambda: truncated(12),
    "truncate to negative": lambda: truncated(-1),
    "truncate folder": lambda: os.truncate("folder", 0),
    "truncate missing": lambda: os.truncate("none", 0),
    "vectors": vectored,
    "copy range": copied,
    "sync": lambda: (os.fsync(os.open("file", os.O_RDWR)), os.fdatasync(os.open("file", os.O_RDWR))),
    "sync folder": lambda: os.fsync(os.open("folder", os.O_RDONLY)),
    "make folder": lambda: (os.mkdir("f", 0o750), facts("f")),
    "make folder twice": lambda: os.mkdir("folder"),
    "make folder over file": lambda: os.mkdir("file"),
    "make folder over link": lambda: os.mkdir("dangling"),
    "make folder below missing": lambda: os.mkdir("none/f"),
    "make folder with long name": lambda: os.mkdir("x" * 256),
    "remove folder": lambda: (os.rmdir("empty"), os.path.exists("empty")),
    "remove full folder": lambda: os.rmdir("folder"),
    "remove file as folder": lambda: os.rmdir("file"),
    "remove missing folder": lambda: os.rmdir("none"),
    "remove folder by dot": lambda: os.rmdir("folder/."),
    "remove folder by dots": lambda: os.rmdir("folder/.."),
    "unlink": lambda: (os.unlink("file"), os.path.exists("file")),
    "unlink folder": lambda: os.unlink("folder"),
    "unlink missing": lambda: os.unlink("none"),
    "unlink link": lambda: (os.unlink("link"), os.path.exists("file")),
    "rename": lambda: (os.rename("file", "f"), read("f"), os.path.exists("file")),
    "rename missing": lambda: os.rename("none", "f"),
    "rename over file": lambda: (write("f", b"x"), os.rename("f", "file"), read("file")),
    "rename file over folder": lambda: os.rename("file", "folder"),
    "rename folder over file": lambda: os.rename("folder", "file"),
    "rename folder over empty": lambda: (os.rename("folder", "empty"), os.listdir("empty")),
    "rename folder over full": lambda: os.rename("empty", "folder"),
    "rename folder into itself": lambda: os.rename("folder", "folder/f"),
    "rename to itself": lambda: (os.rename("file", "file"), read("file")),
    "rename to other name of itself": lambda: (os.link("file", "f"), os.rename("f", "file"), os.path.exists("f")),
    "rename to long name": lambda: os.rename("file", "x" * 256),
    "rename link": lambda: (os.rename("link", "f"), os.readlink("f")),
    "rename without replacing": lambda: renameat2("file", "link", 1),
    "rename without replacing, free": lambda: (renameat2("file", "f", 1), read("f")),
    "exchange": lambda: (write("f", b"x"), renameat2("file", "f", 2), read("f"), read("file")),
    "exchange with missing": lambda: renameat2("file", "none", 2),
    "rename folder": moved_folder,
    "work in renamed folder": stays_inside,
    "work in removed folder": removed_here,
    "link": linked,
    "link over file": lambda: os.link("file", "link"),
    "link missing": lambda: os.link("none", "f"),
    "link folder": lambda: os.link("folder", "f"),
    "link symlink": lambda: (os.link("link", "f", follow_symlinks=False), os.readlink("f")),
    "symlink": lambda: (os.symlink("some/where", "f"), os.readlink("f"), os.lstat("f").st_size),
    "symlink over file": lambda: os.symlink("x", "file"),
    "symlink with long name": lambda: os.symlink("x", "y" * 256),
    "read link of file": lambda: os.readlink("file"),
    "change mode": lambda: (os.chmod("file", 0o640), facts("file")),
    "change mode of folder": lambda: (os.chmod("folder", 0o1711), facts("folder")),
    "change mode to run as owner": lambda: (os.chmod("file", 0o4755), facts("file")),
    "change mode of missing": lambda: os.chmod("none", 0o600),
    "change mode through link": lambda: (os.chmod("link", 0o600), facts("file")),
    "change owner to self": lambda: os.chown("file", os.getuid(), os.getgid()),
    "times": times,
    "time of folder with new file": lambda: changes_time(lambda: write("d/new")),
    "time of folder with removed file": lambda: changes_time(lambda: os.unlink("d/f")),
    "time of written file": lambda: changes_time(lambda: write("d/f", b"y")),
    "list": listed,
    "list missing": lambda: os.listdir("none"),
    "list file": lambda: os.listdir("file"),
    "folder descriptors": descriptors,
    "pipe": piped,
    "lock": locked,
    "lock ranges": record_locked,
    "longest name of file system": lambda: os.statvfs(".").f_namemax,
    "unnamed file": lambda: opened(".", os.O_TMPFILE | os.O_RDWR),
    "extended attribute": lambda: os.setxattr("file", "user.x", b"y"),
    "missing extended attribute": lambda: os.getxattr("file", "user.x"),
}


def result(call):
    try:
        return call()
    except OSError as error:
        return errno.errorcode[error.errno]


os.umask(0o022)
for number, (name, call) in enumerate(CALLS.items()):
    os.mkdir(f"case-{number}")
    os.chdir(f"case-{number}")
    prepare()
    print(f"{name}: {result(call)}")
    os.chdir("..")
sys.stdout.flush()
