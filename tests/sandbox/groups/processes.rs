//! Attempts to read, change, signal or slow down processes on the host.

use crate::row::{
    Bare::{Differs, Holds},
    Group, Row,
    Sign::{Said, Wrote},
};

pub(crate) const GROUP: Group = Group { victim: true, ..Group::new("processes", ROWS) };

const TOLD: crate::row::Sign = Wrote("work/told");

const ROWS: &[Row] = &[
    Row::new("attaching", "$P attach $V $A", "$P own-mem $R/secret", Said),
    Row::new("seizing", "$P seize $V $A", "$P own-mem $R/secret", Said),
    Row::new("being traced", "$P call ptrace $C", "$P own-mem $R/secret", Said),
    Row::new("its memory through /proc", "$P mem-read $V $A", "$P own-mem $R/secret", Said),
    Row::new("writing its memory through /proc", "$P mem-write $V $A $M", "$P own-mem $R/secret", Said),
    Row::new("its memory through a system call", "$P vm-read $V $A", "$P own-mem $R/secret", Said),
    Row::new(
        "writing its memory through a system call",
        "$P vm-write $V $A $M",
        "$P own-mem $R/secret",
        Said,
    ),
    Row::new(
        "its own memory through that system call",
        "$P call process-vm-readv $C",
        "$P own-mem $R/secret",
        Said,
    ),
    Row::new(
        "the memory of all processes",
        "for p in /proc/[0-9]*; do $P mem-read ${p#/proc/} $A; done",
        "$P own-mem $R/secret",
        Said,
    ),
    Row::new("its descriptors", "$P steal $V", "exec 9<$R/secret; cat <&9", Said),
    Row::new("taking a descriptor", "$P call pidfd-getfd $C", "exec 9<$R/secret; cat <&9", Said),
    Row::new(
        "comparing kernel resources",
        "$P hobble kcmp $V && echo same >$C",
        "$P own-mem $R/secret",
        Said,
    ),
    Row::new("advising its memory", "$P call process-madvise $C", "$P own-mem $R/secret", Said).bare(Differs),
    Row::new("its environment", "cat /proc/$V/environ", "cat /proc/self/environ", Said),
    Row::new("its arguments", "cat /proc/$V/cmdline", "sh -c 'cat /proc/$$/cmdline' $(cat $R/secret)", Said),
    Row::new(
        "its open files",
        "for f in /proc/$V/fd/*; do [ -f $f ] && cat $f; done",
        "exec 9<$R/secret; cat /proc/self/fd/9",
        Said,
    ),
    Row::new(
        "its root and working directory",
        "cat /proc/$V/root$D/secret /proc/$V/cwd/denied/secret",
        "cat /proc/self/root$R/secret",
        Said,
    ),
    Row::new("its threads", "cat /proc/$V/task/*/environ", "cat /proc/self/task/*/environ", Said),
    Row::new("a list of all processes", "ps axeww", "sh -c 'ps axww' $(cat $R/secret) x", Said),
    Row::new("killing", "$P signal kill $V", "$P signal-child term $W/told $T", TOLD),
    Row::new("terminating", "$P signal term $V", "$P signal-child term $W/told $T", TOLD),
    Row::new("stopping", "$P signal stop $V", "$P signal-child term $W/told $T", TOLD),
    Row::new("a signal to a thread", "$P signal thread $V", "$P signal-child thread $W/told $T", TOLD),
    Row::new("a signal to a group", "$P signal group $V", "$P signal-child group $W/told $T", TOLD),
    Row::new("a signal by descriptor", "$P signal pidfd $V", "$P signal-child pidfd $W/told $T", TOLD),
    Row::new("a queued signal", "$P signal queue $V", "$P signal-child queue $W/told $T", TOLD),
    Row::new("a signal from a socket", "$P signal owner $V", "$P signal-child term $W/told $T", TOLD),
    Row::new(
        "a signal from the shell",
        "kill -9 $V",
        "sleep 100 & kill $! && wait $!; [ $? = 143 ] && echo $T >$W/told",
        TOLD,
    ),
    Row::new("its CPU affinity", "$P hobble affinity $V", "$P hobble affinity 0 && cat $R/secret", Said),
    Row::new("its niceness", "$P hobble nice $V; renice 19 $V", "$P hobble nice 0 && cat $R/secret", Said),
    Row::new("its scheduling", "$P hobble idle $V", "$P hobble idle 0 && cat $R/secret", Said),
    Row::new("its I/O priority", "$P hobble io $V", "$P hobble io 0 && cat $R/secret", Said),
    Row::new(
        "its limits",
        "$P hobble limit $V; prlimit --pid $V --nofile=7:7",
        "$P hobble limit 0 && cat $R/secret",
        Said,
    ),
    Row::new(
        "its priority for the OOM killer",
        "echo 1000 >/proc/$V/oom_score_adj",
        "echo 1000 >/proc/self/oom_score_adj && cat $R/secret",
        Said,
    ),
    Row::new(
        "its core dump",
        "echo 0x7f >/proc/$V/coredump_filter",
        "echo 0x7f >/proc/self/coredump_filter && cat $R/secret",
        Said,
    ),
    Row::new(
        "its page tables",
        "cat /proc/$V/pagemap | head -c 8 >$C; [ -s $C ] || rm -f $C",
        "head -c 8 /proc/self/maps && cat $R/secret",
        Said,
    ),
    Row::new(
        "its mappings",
        "cat /proc/$V/maps | head -c 8 >$C; [ -s $C ] || rm -f $C",
        "head -c 8 /proc/self/maps && cat $R/secret",
        Said,
    ),
    Row::new(
        "its kernel stack",
        "cat /proc/$V/stack | head -c 8 >$C; [ -s $C ] || rm -f $C",
        "head -c 8 /proc/self/stat && cat $R/secret",
        Said,
    )
    .bare(Holds),
    Row::new(
        "detecting that it exists",
        "[ -d /proc/$V/fd ] && echo there >$C",
        "[ -d /proc/$$/fd ] && cat $R/secret",
        Said,
    ),
];
