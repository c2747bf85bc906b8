//! Attempts to create, enter and change namespaces and mounts, and to gain the privileges for that.

use crate::row::{
    Bare::{Breaks, Differs, Holds},
    Group, Row,
    Sign::Said,
};

pub(crate) const GROUP: Group = Group { victim: true, ..Group::new("namespaces", ROWS) };

const OPEN: &str = "cat $R/secret";
const FILES: &str = "$P call unshare-files /dev/null && cat $R/secret";

/// Returns a row for a system call that must fail.
const fn call(name: &'static str, attack: &'static str, bare: crate::row::Bare) -> Row {
    Row::new(name, attack, FILES, Said).bare(bare)
}

const ROWS: &[Row] = &[
    call("a user namespace", "$P call unshare-user $C", Breaks),
    call("a user namespace by clone", "$P call clone-user $C", Breaks),
    call("a user namespace by clone3", "$P call clone3-user $C", Breaks),
    call("a user namespace with unshare", "unshare -Ur sh -c \"echo root >$C\"", Breaks),
    call("a mount namespace", "$P call unshare-mount $C", Holds),
    call("a network namespace", "$P call unshare-net $C", Holds),
    call("a process namespace", "$P call unshare-pid $C", Holds),
    call("an IPC namespace", "$P call unshare-ipc $C", Holds),
    call("a host name namespace", "$P call unshare-uts $C", Holds),
    call("a control group namespace", "$P call unshare-cgroup $C", Holds),
    call("a time namespace", "$P call unshare-time $C", Holds),
    call(
        "all namespaces at once",
        "unshare -Urmpf --mount-proc sh -c \"cat $D/secret; echo all >$C\"",
        Breaks,
    ),
    call("entering the mounts of this process", "$P call setns $C", Holds),
    call("entering the user namespace of the first process", "$P call setns-user $C", Holds),
    call("entering the victim", "nsenter -t $V -a cat $D/secret && echo entered >$C", Holds),
    call("entering the first process", "nsenter -t 1 -m -n -p cat $D/secret && echo entered >$C", Holds),
    call("mounting", "$P call mount $C", Holds),
    call("mounting with mount", "mount -t tmpfs none /tmp && echo mounted >$C", Holds),
    call("bind mounting", "$P call bind $C", Holds),
    call("bind mounting over the read-only grant", "mount --bind $W $R && echo $M >$R/secret", Holds),
    call(
        "remounting writable",
        "$P call remount $C; mount -o remount,rw,bind $R && echo $M >$R/secret",
        Holds,
    ),
    call("unmounting", "$P call umount $C", Holds),
    call(
        "unmounting a mask",
        "umount -l $D; umount -l $S; umount -l /; cat $D/secret && echo uncovered >$C",
        Breaks,
    ),
    call("pivot_root", "$P call pivot-root $C", Holds),
    call("chroot", "$P call chroot $C; chroot $W true && echo changed >$C", Holds),
    call("a copy of a tree", "$P call open-tree $C", Holds),
    call("a new file system", "$P call fsopen $C", Holds),
    call("reconfiguring a file system", "$P call fspick $C", Holds),
    call("the attributes of mounts", "$P call mount-setattr $C", Holds),
    call(
        "mounting a new file system",
        "fusermount3 -V && echo fuse >$C; fusermount3 -o rw,fsname=x -- $W/sub && echo mounted >$C; rm -f $C",
        Holds,
    ),
    call("more capabilities", "$P call capset $C", Holds),
    call("securebits", "$P call securebits $C", Holds),
    call("becoming another user", "$P call setuid $C", Holds),
    call("dropping all groups", "$P call setgroups $C", Holds),
    call(
        "any capability",
        "grep '^Cap...:' /proc/self/status | grep -v 0000000000000000 | grep -v CapBnd >$C; [ -s $C ] || rm -f $C",
        Holds,
    ),
    call(
        "the capability bounding set",
        "grep '^CapBnd:' /proc/self/status | grep -v 0000000000000000 >$C; [ -s $C ] || rm -f $C",
        Breaks,
    ),
    call("gaining new privileges", "grep '^NoNewPrivs:.1' /proc/self/status || echo none >$C", Breaks),
    call("running without a seccomp filter", "grep '^Seccomp:.2' /proc/self/status || echo none >$C", Breaks),
    call(
        "a setuid-root program",
        "for p in /usr/bin/su /usr/bin/mount /usr/bin/passwd ${P%/*}/becomes-root; do echo; done; ${P%/*}/becomes-root call setuid $C",
        Differs,
    ),
    call(
        "a program that switches users",
        "echo | timeout 1 su -c \"cat $D/secret\" && echo became >$C",
        Holds,
    ),
    Row::new(
        "the loader of a setuid-root program",
        "LD_PRELOAD=$W/none.so mount; LD_AUDIT=$W/none.so su --version",
        OPEN,
        Said,
    )
    .bare(Holds),
];
