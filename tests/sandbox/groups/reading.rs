//! Attempts to read denied files under other names.

use crate::row::{
    Bare::Holds,
    Group, Row,
    Sign::Said,
    Views::{HostRead, Roots},
};

pub(crate) const GROUP: Group = Group { victim: true, ..Group::new("reading", ROWS) };

const ROWS: &[Row] = &[
    Row::new("a file by its path", "cat $D/secret", "cat $R/secret", Said),
    Row::new("a single denied file", "cat $R/locked", "cat $R/unlocked", Said).only(HostRead),
    Row::new(
        "a denied directory in a writable one",
        "cat $W/mixed/private/*",
        "cp $R/secret $W/mixed/s; cat $W/mixed/s",
        Said,
    )
    .only(HostRead),
    Row::new(
        "moving the directory away",
        "mv $W/mixed $W/m2; cat $W/m2/private/* $W/mixed/private/*",
        "mkdir $W/x; cp $R/secret $W/x; mv $W/x $W/y; cat $W/y/secret",
        Said,
    )
    .only(HostRead),
    Row::new(
        "renaming the directory itself",
        "mv $W/mixed/private $W/p; cat $W/p/*",
        "mkdir $W/x; cp $R/secret $W/x; mv $W/x $W/y; cat $W/y/secret",
        Said,
    )
    .only(HostRead),
    Row::new(
        "a hard link out of the directory",
        "ln $W/mixed/private/secret $W/h; cat $W/h",
        "cp $R/secret $W/s; ln $W/s $W/i; cat $W/i",
        Said,
    )
    .only(HostRead),
    Row::new("a nearby file", "cat $O/file $O/other; echo $M >$O/file", "cat $R/secret", Said).only(Roots),
    Row::new("listing the directory", "ls -la $D", "ls -la $R", Said),
    Row::new("listing every directory", "find $S/../${S##*/} -name 'name-*'; find $S", "find $R", Said),
    Row::new("matching names", "echo $D/*", "echo $R/*", Said),
    Row::new("the time of a file", "stat -c %Y $D/secret", "stat -c %n $R/*", Said),
    Row::new("the target of a symlink", "readlink $D/link", "readlink $R/link", Said),
    Row::new("a symlink", "ln -s $D/secret $W/l; cat $W/l", "ln -s $R/secret $W/m; cat $W/m", Said),
    Row::new(
        "a symlink to the directory",
        "ln -s $D $W/l; cat $W/l/secret",
        "ln -s $R $W/m; cat $W/m/secret",
        Said,
    ),
    Row::new("an existing symlink", "cat $R/shortcut/secret $S/way-to-denied/secret", "cat $R/secret", Said),
    Row::new(
        "a chain of symlinks",
        "ln -s $D a; ln -s a b; cat b/secret",
        "ln -s $R c; ln -s c d; cat d/secret",
        Said,
    ),
    Row::new("a hard link", "ln $D/secret $W/h; cat $W/h", "cp $R/secret $W/s; ln $W/s $W/i; cat $W/i", Said),
    Row::new(
        "a hard link to an open file",
        "$P link-opened $D/secret $W/h; cat $W/h",
        "cp $R/secret $W/s; $P link-opened $W/s $W/i; cat $W/i",
        Said,
    ),
    Row::new(
        "renaming the file",
        "$P rename $D/secret $W/s; cat $W/s",
        "cp $R/secret $W/a; $P rename $W/a $W/b; cat $W/b",
        Said,
    ),
    Row::new(
        "renaming the directory",
        "mv $D $W/d; cat $W/d/secret; mv $D $S/d; cat $S/d/secret",
        "mkdir a; cp $R/secret a; mv a b; cat b/secret",
        Said,
    ),
    Row::new(
        "exchanging the directory",
        "mkdir a; $P exchange $D $W/a; cat $W/a/secret",
        "mkdir b c; cp $R/secret b; $P exchange $W/b $W/c; cat c/secret",
        Said,
    ),
    Row::new(
        "dot segments",
        "cat $R/../denied/secret $D/../denied/./secret",
        "cat $R/../readable/./secret",
        Said,
    ),
    Row::new("doubled slashes", "cat /$D//secret //$D/secret", "cat /$R//secret", Said),
    Row::new("another letter case", "cat $S/DENIED/SECRET $S/Denied/Secret", "cat $R/secret", Said)
        .bare(Holds),
    Row::new("the directory as working directory", "cd $D && cat secret", "cd $R && cat secret", Said),
    Row::new(
        "the root of this process",
        "cat /proc/self/root$D/secret",
        "cat /proc/self/root$R/secret",
        Said,
    ),
    Row::new(
        "the root of the first process",
        "cat /proc/1/root$D/secret /proc/1/root/proc/1/root$D/secret",
        "cat /proc/self/root/proc/self/root$R/secret",
        Said,
    )
    .bare(Holds),
    Row::new(
        "the roots of all processes",
        "cat /proc/[0-9]*/root$D/secret",
        "cat /proc/self/root$R/secret",
        Said,
    ),
    Row::new(
        "the roots of all threads",
        "cat /proc/[0-9]*/task/*/root$D/secret",
        "cat /proc/self/task/*/root$R/secret",
        Said,
    ),
    Row::new(
        "the working directory of this process",
        "cat /proc/self/cwd/../denied/secret",
        "cat /proc/self/cwd/../readable/secret",
        Said,
    ),
    Row::new(
        "the working directories of all processes",
        "cat /proc/[0-9]*/cwd/../denied/secret /proc/[0-9]*/cwd/secret",
        "cd $R; cat /proc/self/cwd/secret",
        Said,
    ),
    Row::new(
        "the victim's open files",
        "for f in /proc/$V/fd/*; do [ -f $f ] && cat $f; done",
        "exec 9<$R/secret; cat /proc/self/fd/9",
        Said,
    ),
    Row::new(
        "the open files of all processes",
        "for f in /proc/[0-9]*/fd/*; do [ -f $f ] && cat $f; done",
        "exec 9<$R/secret; cat /proc/self/fd/9",
        Said,
    ),
    Row::new(
        "the mapped files of all processes",
        "cat /proc/[0-9]*/map_files/*",
        "$P read map $R/secret",
        Said,
    )
    .bare(Holds),
    Row::new(
        "inherited descriptors",
        "$P descriptors nothing",
        "exec 9<$R/secret; $P descriptors nothing",
        Said,
    ),
    Row::new(
        "inherited descriptors by number",
        "for n in 3 4 5 6 7 8 9; do eval \"cat <&$n\"; cat /dev/fd/$n /proc/self/fd/$n/secret; done",
        "exec 9<$R/secret; cat <&9",
        Said,
    ),
    Row::new("a mapping", "$P read map $D/secret", "$P read map $R/secret", Said),
    // These system calls return `EINVAL` for readable files too, and programs then copy the data instead.
    Row::new("splicing", "$P read splice $D/secret", "cat $R/secret", Said),
    Row::new("sending", "$P read sendfile $D/secret", "cat $R/secret", Said),
    Row::new(
        "copying a range",
        "$P copy-range $D/secret $W/copy; cat $W/copy",
        "cp $R/secret $W/own; $P copy-range $W/own $W/copy2; cat $W/copy2",
        Said,
    ),
    Row::new(
        "reopening after opening without access",
        "$P read opened $D/secret",
        "$P read opened $R/secret",
        Said,
    ),
    Row::new("opening with resolution rules", "$P read openat2 $D/secret", "$P read opened $R/secret", Said),
    Row::new("opening by handle", "$P by-handle $D/secret $W", "$P read opened $R/secret", Said).bare(Holds),
    Row::new("the file handle", "$P handle $D/secret && echo got >$C", "cat $R/secret", Said),
    Row::new("the file handle of any file", "$P handle $W/file && echo got >$C", "cat $R/secret", Said),
    Row::new("a watch on the directory", "$P watch $D", "ls $R", Said),
    Row::new("a watch on a symlink to it", "ln -s $D l; $P watch $W/l", "ls $R", Said),
    Row::new("an archive", "tar cf - -C $S denied", "tar cf - -C $S readable", Said),
    Row::new(
        "an archive of everything",
        "tar cf - $S 2>/dev/null | grep -a SECRET",
        "tar cf - -C $S readable",
        Said,
    ),
    Row::new(
        "copying",
        "cp -a $D $W/copy; cat $W/copy/secret",
        "cp -a $R $W/copy2; cat $W/copy2/secret",
        Said,
    ),
    Row::new("running a denied program", "$D/tool", "$R/tool", Said),
    Row::new("a sourced script", ". $D/tool", ". $R/tool", Said),
    Row::new("a program's loader", "LD_PRELOAD=$D/secret /bin/true; sh $D/tool", "sh $R/tool", Said),
    Row::new("the environment", "env; cat /proc/self/environ", "env", Said),
    Row::new("the environment of all processes", "cat /proc/[0-9]*/environ", "cat /proc/self/environ", Said),
    Row::new(
        "the arguments of all processes",
        "cat /proc/[0-9]*/cmdline",
        "sh -c 'cat /proc/$$/cmdline' $(cat $R/secret)",
        Said,
    ),
    Row::new(
        "the settings",
        "cat $S/settings.json $S/spec.json | grep -a SECRET; grep -ra SECRET $S 2>/dev/null",
        "grep -r OPENED $R",
        Said,
    ),
    Row::new(
        "the host's temporary directories",
        "grep -ras -D skip SECRET $S/../${S##*/} /tmp /run /dev/shm",
        "grep -r OPENED $R",
        Said,
    ),
    Row::new("an inherited key", "$P key session", "$P pair $R/secret", Said),
    Row::new("the list of keys", "cat /proc/keys | grep carried && echo keys >$C", "$P pair $R/secret", Said),
    Row::new(
        "a leftover core dump",
        "ulimit -c unlimited; $P crash; cat core* 2>/dev/null; [ -e core ] && echo core >$C",
        "ulimit -c; $P pair $R/secret",
        Said,
    ),
];
