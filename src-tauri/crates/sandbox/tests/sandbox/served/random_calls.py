"""Changes the current folder at random by a seed, and prints the result of each step and the tree at the end."""

import errno
import mmap
import os
import random
import stat
import sys

seed, steps = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
FILES = ["a", "b", "c", "d/a", "d/b", "e/a", "d/f/a"]
FOLDERS = ["d", "e", "d/f", "e/f", "a"]


def content(length):
    return bytes(rng.randrange(256) for _ in range(length))


def on_file(path, flags, work):
    fd = os.open(path, flags, 0o644)
    try:
        return work(fd)
    finally:
        os.close(fd)


def write(path):
    offset, data = rng.randrange(20_000), content(rng.randrange(1, 300))
    return on_file(path, os.O_CREAT | os.O_RDWR, lambda fd: os.pwrite(fd, data, offset))


def append(path):
    data = content(rng.randrange(1, 300))
    return on_file(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, lambda fd: os.write(fd, data))


def read(path):
    offset = rng.randrange(20_000)
    return on_file(path, os.O_RDONLY, lambda fd: hash_of(os.pread(fd, 5000, offset)))


def truncate(path):
    return os.truncate(path, rng.randrange(20_000))


def map_and_change(path):
    at, data = rng.randrange(20_000), content(50)

    def work(fd):
        size = os.fstat(fd).st_size
        if at + len(data) > size:
            return "short"
        area = mmap.mmap(fd, size)
        area[at : at + len(data)] = data
        area.flush()
        return os.pread(fd, len(data), at) == data

    return on_file(path, os.O_RDWR, work)


def hash_of(data):
    total = len(data)
    for byte in data:
        total = (total * 31 + byte) % 1_000_000_007
    return total


OPERATIONS = {
    write: 6,
    append: 3,
    read: 6,
    truncate: 2,
    map_and_change: 2,
    os.unlink: 2,
    os.mkdir: 2,
    os.rmdir: 2,
    os.listdir: 1,
    os.rename: 4,
    os.link: 1,
    os.symlink: 1,
}


def step():
    operation = rng.choices(list(OPERATIONS), OPERATIONS.values())[0]
    on_folders = operation in (os.mkdir, os.rmdir, os.listdir) or operation is os.rename and rng.random() < 0.4
    names = [rng.choice(FOLDERS if on_folders else FILES)]
    if operation in (os.rename, os.link, os.symlink):
        names.append(rng.choice(FOLDERS if on_folders else FILES))
    if operation is os.link and os.path.islink(names[0]):
        return "a further name for a symlink is refused"
    try:
        result = operation(*names)
        result = sorted(result) if operation is os.listdir else result
    except OSError as error:
        result = errno.errorcode[error.errno]
    return f"{operation.__name__} {names} {result}"


os.umask(0o022)
for number in range(steps):
    print(number, step())
for folder, folders, files in sorted(os.walk(".")):
    folders.sort()
    for name in sorted(folders + files):
        path = os.path.join(folder, name)
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode):
            with open(path, "rb") as file:
                print(path, stat.filemode(found.st_mode), found.st_nlink, found.st_size, hash_of(file.read()))
        else:
            print(path, stat.filemode(found.st_mode), os.readlink(path) if stat.S_ISLNK(found.st_mode) else "")
