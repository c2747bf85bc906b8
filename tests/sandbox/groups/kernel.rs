//! Attempts to use kernel interfaces that are available to any process, or to any process that appears to be root.

use std::fs;

use crate::{
    row::{
        Bare::{Breaks, Differs, Holds},
        Group, Row,
        Sign::Said,
    },
    scene::Scene,
};

pub(crate) const GROUP: Group = Group { victim: true, ..Group::new("kernel", ROWS) };

const OPEN: &str = "cat $R/secret";

/// Returns a row for a system call that must fail.
const fn call(name: &'static str, attack: &'static str, bare: crate::row::Bare) -> Row {
    Row::new(name, attack, OPEN, Said).bare(bare)
}

const ROWS: &[Row] = &[
    Row::new("shared memory", "$P shared memory", "cp $R/secret /dev/shm/s; $P read map /dev/shm/s", Said),
    Row::new("message queues", "$P shared messages", "$P pair $R/secret", Said),
    Row::new("semaphores", "$P shared semaphores", "$P pair $R/secret", Said),
    Row::new("named message queues", "$P shared queue $N", "$P pair $R/secret", Said),
    Row::new("lists of IPC objects", "ipcs -a | grep -q \"$(id -u)\\|600\" && ipcs | grep -c 600 >$C; cat /dev/mqueue$N", "$P pair $R/secret", Said),
    call("a session keyring key", "$P key session", Breaks),
    call("any keyring call", "$P call keyctl $C", Breaks),
    call("adding a key", "$P call add-key $C", Breaks),
    call("requesting a key", "$P call request-key $C", Breaks),
    call("the list of users with keys", "cat /proc/keys; grep carried /proc/keys && echo keys >$C", Breaks),
    call("BPF programs", "$P call bpf $C", Differs),
    call("performance counters", "$P call perf $C", Differs),
    call("userfaultfd", "$P call userfaultfd $C", Differs),
    call("inotify", "$P call inotify $C", Breaks),
    call("fanotify", "$P call fanotify $C", Differs),
    call("personality", "$P call personality $C", Breaks),
    call("the kernel's log", "$P call syslog $C; dmesg | head -c 20 >$C; [ -s $C ] || rm -f $C", Differs),
    call("the kernel's log through its device", "head -c 20 /dev/kmsg >$C; [ -s $C ] || rm -f $C", Differs),
    call("restarting the machine", "$P call reboot $C", Holds),
    call("loading a module", "$P call init-module $C; $P call finit-module $C", Holds),
    call("unloading a module", "$P call delete-module $C", Holds),
    call("kexec", "$P call kexec $C", Holds),
    call("swapping", "$P call swapon $C", Holds),
    call("accounting", "$P call acct $C", Holds),
    call("quotas", "$P call quotactl $C", Holds),
    call("the clock", "$P call set-clock $C", Holds),
    call("the clock's speed", "$P call adjust-clock $C", Holds),
    call("vhangup", "$P call vhangup $C", Holds),
    call("I/O ports", "$P call iopl $C; $P call ioperm $C", Holds),
    call("real-time scheduling", "$P call realtime $C", Holds),
    call("real-time I/O priority", "$P call realtime-io $C", Holds),
    call("raising the priority", "$P call nice $C", Holds),
    call("the host's name", "$P call sethostname $C; hostname escaped; [ \"$(cat /proc/sys/kernel/hostname)\" = escaped ] && echo named >$C", Holds).also(renamed),
    call("the host's domain", "$P call setdomainname $C", Holds),
    call("the core dump pattern", OPENS_CORE_PATTERN, Holds),
    call("kernel settings", "for f in /proc/sys/kernel/* /proc/sys/vm/* /proc/sys/fs/*; do case ${f##*/} in msg*|sem*|shm*|auto_msgmni|ns_last_pid|pid_max) continue;; esac; [ -f $f ] && (: >>$f) 2>/dev/null && echo $f >>$C; done", Holds),
    call("network settings", "for f in /proc/sys/net/ipv4/ip_forward /proc/sys/net/core/*; do (: >>$f) 2>/dev/null && echo $f >>$C; done", Holds),
    call("SysRq requests", "(: >>/proc/sysrq-trigger) && echo opened >$C", Holds),
    call("kernel files in sysfs", "for f in /sys/kernel/* /sys/power/* /sys/module/*/parameters/* /sys/fs/cgroup/*/cgroup.procs /sys/fs/cgroup/cgroup.procs; do [ -f $f ] && (: >>$f) 2>/dev/null && echo $f >>$C; done", Holds),
    call("creating a control group", "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do mkdir $d/escaped 2>/dev/null && echo $d >>$C && rmdir $d/escaped; done", Holds),
    call("the machine's memory", "for f in /dev/mem /dev/port /proc/kcore /proc/kpageflags /proc/kpagecount; do head -c 1 $f >$C 2>/dev/null && [ -s $C ] && break; done; [ -s $C ] || rm -f $C", Holds),
    call("kernel addresses", "grep -v '^0000000000000000' /proc/kallsyms | head -1 >$C; [ -s $C ] || rm -f $C", Differs),
    Row::new("disks", "for f in /dev/vd* /dev/sd* /dev/nvme* /dev/loop* /dev/dm-*; do head -c 512 $f >$C 2>/dev/null && [ -s $C ] && break; done; [ -s $C ] || rm -f $C", "head -c 8 /dev/zero && cat $R/secret", Said).bare(Holds),
    Row::new("virtual machines, file systems and tunnels", "for f in /dev/kvm /dev/fuse /dev/net/tun /dev/vhost-net /dev/vsock /dev/uinput /dev/input/* /dev/snd/* /dev/dri/* /dev/video*; do [ -c $f ] && (exec 9<>$f) 2>/dev/null && echo $f >>$C; done", "head -c 8 /dev/urandom >/dev/null && cat $R/secret", Said).bare(Differs),
    Row::new("any unusual device", "for f in $(find /dev -type c -o -type b); do case $f in /dev/null|/dev/zero|/dev/full|/dev/random|/dev/urandom|/dev/tty|/dev/pts/*|/dev/ptmx|/dev/console) ;; *) echo $f >>$C;; esac; done", "[ -c /dev/null ] && cat $R/secret", Said),
    Row::new("writing in /dev", "echo $M >/dev/${S##*/}; mkdir /dev/dir; [ -e /dev/${S##*/} -o -d /dev/dir ] && echo written >$C", "echo >/dev/null && cat $R/secret", Said).bare(Holds),
    Row::new("typing into the terminal", "$P type $M", "$P terminal $R/secret", Said).bare(Differs).in_terminal(),
    Row::new("pasting into the console", "$P paste && echo pasted >$C", "$P terminal $R/secret", Said).bare(Holds).in_terminal(),
    Row::new("the launcher's terminal", "echo >/dev/tty && echo opened >$C", "$P terminal $R/secret", Said).in_terminal(),
    Row::new("other terminals", "for t in /dev/pts/[0-9]*; do (exec 9<>$t) 2>/dev/null && echo $t >>$C; done", "$P terminal $R/secret", Said).in_terminal(),
];

/// Shell command that opens the file for appending but writes nothing.
const OPENS_CORE_PATTERN: &str = "(: >>/proc/sys/kernel/core_pattern) && echo opened >$C";

fn renamed(_: &Scene) -> Option<String> {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    (name.trim() == "escaped").then(|| "the host has another name".to_owned())
}
