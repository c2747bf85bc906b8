//! Attempts to write to denied paths through every other path that leads to them.

use std::fs;

use crate::{
    row::{
        Bare::{Holds, Untried},
        Group, Row,
        Sign::{Said, Seen, Wrote},
        Views::HostRead,
    },
    scene::Scene,
};

pub(crate) const GROUP: Group = Group::new("writing", ROWS);

const FILE: crate::row::Sign = Wrote("work/file");
const NEW: crate::row::Sign = Wrote("work/new");

const ROWS: &[Row] = &[
    Row::new("a file by its path", "echo $M >$O/file", "echo $T >$W/file", FILE),
    Row::new("appending", "echo $M >>$O/file", "echo $T >>$W/file", FILE),
    Row::new("a new file", "echo $M >$O/new", "echo $T >$W/new", NEW),
    Row::new("a new file in the home", "echo $M >$H/.bashrc", "echo $T >$W/new", NEW),
    Row::new("a read-only grant", "echo $M >$R/secret", "echo $T >$G/file", Wrote("granted/file")),
    Row::new("a new file in a read-only grant", "echo $M >$R/new", "echo $T >$G/new", Wrote("granted/new")),
    Row::new(
        "the directory above the roots",
        "echo $M >$S/new",
        "echo $T >$W/sub/new",
        Wrote("work/sub/new"),
    ),
    Row::new("a denied directory", "echo $M >$D/new", "echo $T >$W/new", NEW),
    Row::new(
        "a directory where writing is denied",
        "echo $M >$W/sub/deep/new; [ -e $W/sub/deep/new ] && echo $M >$C",
        "echo $T >$W/sub/new",
        Wrote("work/sub/new"),
    )
    .only(HostRead),
    Row::new(
        "renaming the directory away",
        "mv $W/sub/deep $W/moved && echo $M >$C",
        "mv $W/sub/file $W/moved2 && echo $T >$W/moved2",
        Wrote("work/moved2"),
    )
    .only(HostRead),
    Row::new(
        "renaming its parent away",
        "mv $W/sub $W/other; mkdir -p $W/sub/deep; echo $M >$W/sub/deep/new && echo $M >$C",
        "mkdir $W/a && mv $W/a $W/b && echo $T >$W/b/new",
        Wrote("work/b/new"),
    )
    .only(HostRead),
    Row::new(
        "a symlink to a file",
        "ln -s $O/file $W/l; echo $M >$W/l",
        "ln -s $W/file $W/m; echo $T >$W/m",
        FILE,
    ),
    Row::new(
        "a symlink to a directory",
        "ln -s $O $W/l; echo $M >$W/l/new",
        "ln -s $W $W/m; echo $T >$W/m/new",
        NEW,
    ),
    Row::new(
        "an existing symlink",
        "echo $M >$W/shortcut/file",
        "ln -s $W/sub $W/m; echo $T >$W/m/file",
        Wrote("work/sub/file"),
    ),
    Row::new(
        "a relative symlink",
        "ln -s ../outside/file l; echo $M >l",
        "ln -s ../file sub/m; echo $T >sub/m",
        FILE,
    ),
    Row::new(
        "a chain of symlinks",
        "ln -s $O a; ln -s a b; ln -s b/file c; echo $M >c",
        "ln -s . d; ln -s d e; ln -s e/file f; echo $T >f",
        FILE,
    ),
    Row::new(
        "a symlink in another writable root",
        "ln -s $O $G/l; echo $M >$G/l/file",
        "ln -s $W $G/m; echo $T >$G/m/file",
        FILE,
    ),
    Row::new(
        "dot segments in a path",
        "echo $M >$W/sub/../../outside/file",
        "echo $T >$W/sub/../sub/../file",
        FILE,
    ),
    Row::new(
        "dot segments from the working directory",
        "echo $M >../outside/file",
        "cd sub; echo $T >../file",
        FILE,
    ),
    Row::new(
        "changing to the directory",
        "cd $O && echo $M >file",
        "cd $G && echo $T >file",
        Wrote("granted/file"),
    ),
    Row::new("a hard link in", "ln $O/file $W/h && echo $M >$W/h", "ln $W/file $W/i && echo $T >$W/i", FILE),
    Row::new("a hard link out", "ln $W/file $O/h", "mkdir d; ln $W/file $W/d/h; echo $T >$W/d/h", FILE),
    Row::new(
        "a hard link through a symlink",
        "ln -s $O/file l; ln -L l h && echo $M >h",
        "ln -s file m; ln -L m i && echo $T >i",
        FILE,
    ),
    Row::new(
        "a hard link to an open file",
        "$P link-opened $O/file $W/h && echo $M >$W/h",
        "$P link-opened $W/file $W/i && echo $T >$W/i",
        FILE,
    ),
    Row::new("renaming out", "echo $M >f; $P rename $W/f $O/moved", "echo $T >g; $P rename $W/g $W/new", NEW),
    Row::new("renaming in", "$P rename $O/file $W/stolen", "echo $T >g; $P rename $W/g $W/new", NEW),
    Row::new(
        "renaming onto a file in another writable root",
        "$P rename $W/file $O/file",
        "echo $T >g; $P rename g file",
        FILE,
    ),
    Row::new(
        "exchanging",
        "echo $M >f; $P exchange $W/f $O/file",
        "echo $T >g; $P exchange $W/g $W/file",
        FILE,
    ),
    Row::new(
        "renaming with a whiteout",
        "$P whiteout $O/file $O/moved",
        "echo $T >g; $P rename g file",
        FILE,
    ),
    Row::new(
        "renaming the writable root",
        "$P rename $W $S/elsewhere; mv $W $S/elsewhere",
        "mv sub/file sub/new; echo $T >sub/new",
        Wrote("work/sub/new"),
    ),
    Row::new(
        "renaming the directory above",
        "$P rename $S $S-moved",
        "mkdir a; $P rename $W/a $W/b; echo $T >b/new",
        Wrote("work/b/new"),
    ),
    Row::new(
        "removing the writable root",
        "rm -rf $G 2>&1; rmdir $G",
        "mkdir -p a/b; rmdir a/b; [ -e a/b ] || echo $T >new",
        NEW,
    ),
    Row::new("creating a directory", "mkdir $O/dir", "mkdir dir; echo $T >dir/new", Wrote("work/dir/new")),
    Row::new("removing a directory", "rmdir $O/empty", "mkdir d; rmdir d; [ -d d ] || echo $T >new", NEW),
    Row::new("removing a file", "rm -f $O/file", "rm -f file; echo $T >file", FILE),
    Row::new("truncating", "$P truncate $O/file", "$P truncate $W/file; [ -s file ] || echo $T >file", FILE),
    Row::new("truncating by opening", ": >$O/file", ": >file; echo $T >file", FILE),
    Row::new("punching a hole", "$P punch $O/file", "$P punch $W/file && echo $T >>file", FILE),
    Row::new("naming an unnamed file", "$P tmpfile $O $O/new $M", "$P tmpfile $W $W/new $T", NEW),
    Row::new(
        "linking an unnamed file elsewhere",
        "$P tmpfile $W $O/new $M",
        "mkdir d; $P tmpfile $W $W/d/new $T",
        Wrote("work/d/new"),
    ),
    Row::new("a mapping", "$P write-mapped $O/file $M", "$P write-mapped $W/file $T", FILE),
    Row::new(
        "reopening a descriptor",
        "exec 9<$O/file; echo $M >/proc/self/fd/9",
        "exec 9<$W/file; echo $T >/proc/self/fd/9",
        FILE,
    ),
    Row::new(
        "a descriptor through its other name",
        "exec 9<$O/file; echo $M >/dev/fd/9",
        "exec 9<$W/file; echo $T >/dev/fd/9",
        FILE,
    ),
    Row::new("a descriptor opened without access", "$P reopen $O/file $M", "$P reopen $W/file $T", FILE),
    Row::new(
        "a directory's descriptor",
        "exec 9<$O; echo $M >/proc/self/fd/9/new",
        "exec 9<$W; echo $T >/proc/self/fd/9/new",
        NEW,
    ),
    Row::new(
        "the root of this process",
        "echo $M >/proc/self/root$O/file",
        "echo $T >/proc/self/root$W/file",
        FILE,
    ),
    Row::new(
        "the roots of all processes",
        "for r in /proc/[0-9]*/root; do echo $M >$r$O/file; done",
        "for r in /proc/self/root; do echo $T >$r$W/file; done",
        FILE,
    ),
    Row::new(
        "the working directory of this process",
        "echo $M >/proc/self/cwd/../outside/file",
        "echo $T >/proc/self/cwd/sub/../file",
        FILE,
    ),
    Row::new(
        "the working directories of all processes",
        "for d in /proc/[0-9]*/cwd; do for n in . outside ../outside ../../outside; do echo $M >$d/$n/new-file; done; done; rm -f $W/new-file",
        "cd sub; echo $T >/proc/self/cwd/../file",
        FILE,
    ),
    Row::new("inherited descriptors", "$P descriptors $M", "exec 9<>$W/file; $P descriptors $T", FILE),
    Row::new(
        "inherited directories",
        "for d in /proc/self/fd/*; do echo $M >$d/planted; done",
        "exec 9<$W; for d in /proc/self/fd/9; do echo $T >$d/new; done",
        NEW,
    ),
    Row::new(
        "descriptors of all processes",
        "for d in /proc/[0-9]*/fd/*; do echo $M >$d/planted; done 2>&1; rm -f $W/planted",
        "exec 9<$W; echo $T >/proc/self/fd/9/new",
        NEW,
    ),
    Row::new("copying onto", "cp file $O/file", "echo $T >g; cp g file", FILE),
    Row::new(
        "copying a range",
        "echo $M >f; $P copy-range f $O/file",
        "echo $T >g; $P copy-range g file",
        FILE,
    ),
    Row::new(
        "block by block",
        "echo $M | dd of=$O/file conv=notrunc",
        "echo $T | dd of=file conv=notrunc",
        FILE,
    ),
    Row::new(
        "the mode of a file",
        "chmod 777 $O/file",
        "chmod 000 file; chmod 700 file; echo $T >file",
        FILE,
    ),
    Row::new("the mode of a directory", "chmod 777 $O", "chmod 755 $W/sub; echo $T >file", FILE),
    Row::new(
        "the mode through another call",
        "$P chmod fchmod $O/file 777; $P chmod fchmodat $O/file 777; $P chmod fchmodat2 $O/file 777",
        "$P chmod fchmod $W/file 700 && echo $T >file",
        FILE,
    ),
    Row::new("the owner", "chown $(id -u) $O/file", "chown $(id -u) file && echo $T >file", FILE),
    Row::new("the group", "chgrp $(id -g) $O/file", "chgrp $(id -g) file && echo $T >file", FILE),
    Row::new("the times", "touch -d @1 $O/file", "touch -d @1 file; echo $T >file", Wrote("work/file")),
    Row::new(
        "an extended attribute",
        "$P setxattr $O/file $M",
        "$P setxattr $W/file $T && echo $T >file",
        FILE,
    ),
    Row::new("the flags", "$P setflags $O/file", "$P setflags $W/file && echo $T >file", FILE),
    Row::new("a named pipe", "mkfifo $O/pipe", "mkfifo pipe && echo $T >file", FILE),
    Row::new("a symlink outside", "ln -s /etc/passwd $O/l", "ln -s file l && echo $T >l", FILE),
    Row::new(
        "a block device",
        "$P make block $W/disk 600; echo $M >$W/disk",
        "$P make mknod $W/new 600; echo $T >new",
        NEW,
    )
    .bare(Holds),
    Row::new(
        "a character device",
        "$P make char $W/memory 600",
        "$P make mknodat $W/new 600; echo $T >new",
        NEW,
    )
    .bare(Holds),
    Row::new(
        "a race between a directory and a symlink",
        "mkdir d; (i=0; while [ $i -lt 60 ]; do rm -rf d; ln -s $O d; rm -f d; mkdir d; i=$((i+1)); done) & i=0; while [ $i -lt 300 ]; do echo $M >d/planted; i=$((i+1)); done 2>/dev/null; wait; rm -rf d; ln -s $O d; echo $M >d/planted",
        "mkdir d2; echo $T >d2/new",
        Wrote("work/d2/new"),
    ),
    Row::new(
        "the host's temporary directory",
        "echo $M >/tmp/${S##*/}-planted",
        "cp $R/secret /tmp/mine && cat /tmp/mine",
        Said,
    ),
    Row::new(
        "the host's other temporary directory",
        "echo $M >/var/tmp/${S##*/}-planted",
        "echo $T >file",
        FILE,
    ),
    Row::new(
        "the host's shared memory files",
        "echo $M >/dev/shm/${S##*/}-planted",
        "cp $R/secret /dev/shm/mine && cat /dev/shm/mine",
        Said,
    ),
    Row::new("the system's programs", "echo $M >/usr/bin/${S##*/}-planted", "echo $T >file", FILE)
        .bare(Holds),
    Row::new(
        "the system's settings",
        "echo $M >/etc/${S##*/}-planted; echo >>/etc/hosts",
        "echo $T >file",
        FILE,
    )
    .bare(Holds),
    Row::new("the root directory", "echo $M >/${S##*/}-planted", "echo $T >file", FILE).bare(Holds),
    Row::new(
        "the program of the sandbox",
        "echo $M >>$P; for p in /proc/[0-9]*/exe; do echo $M >>$p; done",
        "echo $T >file",
        FILE,
    )
    .bare(Untried),
    Row::new(
        "setuid by chmod",
        "cp /bin/true t; $P chmod chmod $W/t 4755",
        "cp /bin/true u; $P chmod chmod $W/u 750",
        Seen(executable),
    ),
    Row::new(
        "setgid by chmod",
        "cp /bin/true t; $P chmod chmod $W/t 2755",
        "cp /bin/true u; $P chmod chmod $W/u 750",
        Seen(executable),
    ),
    Row::new(
        "setuid by fchmod",
        "cp /bin/true t; $P chmod fchmod $W/t 4755",
        "cp /bin/true u; $P chmod fchmod $W/u 750",
        Seen(executable),
    ),
    Row::new(
        "setuid by fchmodat",
        "cp /bin/true t; $P chmod fchmodat $W/t 4755",
        "cp /bin/true u; $P chmod fchmodat $W/u 750",
        Seen(executable),
    ),
    Row::new(
        "setuid by fchmodat2",
        "cp /bin/true t; $P chmod fchmodat2 $W/t 4755",
        "cp /bin/true u; $P chmod fchmodat $W/u 750",
        Seen(executable),
    ),
    Row::new("setuid by open", "$P make open $W/t 4755", "$P make open $W/u 750", Seen(executable)),
    Row::new("setuid by openat", "$P make openat $W/t 4755", "$P make openat $W/u 750", Seen(executable)),
    Row::new("setuid by openat2", "$P make openat2 $W/t 4755", "$P make openat $W/u 750", Seen(executable)),
    Row::new("setuid by creat", "$P make creat $W/t 4755", "$P make creat $W/u 750", Seen(executable)),
    Row::new(
        "setuid by mknod",
        "$P make mknod $W/t 4755; $P make mknodat $W/v 4755",
        "$P make mknod $W/u 750",
        Seen(executable),
    ),
    Row::new(
        "setgid by mkdir",
        "$P make mkdir $W/t 2755; $P make mkdirat $W/v 2755; chmod g+s sub",
        "$P make mkdir $W/u 750",
        Seen(executable),
    ),
    Row::new(
        "setuid in another writable root",
        "cp /bin/true $G/t; chmod u+s $G/t",
        "cp /bin/true u; chmod 750 u",
        Seen(executable),
    ),
];

fn executable(scene: &Scene) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(scene.path("work/u")).is_ok_and(|about| about.permissions().mode() & 0o7777 == 0o750)
}
