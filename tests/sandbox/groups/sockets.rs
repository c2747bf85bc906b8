//! Attempts to use sockets other than internet sockets, and other system calls that create sockets.

use crate::row::{
    Bare::{Differs, Holds},
    Group, Row,
    Sign::{Said, Wrote},
};

pub(crate) const GROUP: Group = Group { listeners: true, ..Group::new("sockets", ROWS) };

const PAIR: &str = "$P pair $R/secret";
const PASS: &str = "$P pass $R/secret";

const ROWS: &[Row] = &[
    Row::new("a socket by path", "$P unix stream $USTREAM $M", PAIR, Said),
    Row::new("a datagram socket", "$P unix datagram $UDGRAM $M", PASS, Said),
    Row::new("a datagram socket, from a socket pair", "$P from-pair sent $UDGRAM $M", PASS, Said),
    Row::new(
        "a datagram socket, through a reconnected socket pair",
        "$P from-pair connected $UDGRAM $M",
        PASS,
        Said,
    ),
    Row::new("a socket in the session sandbox directory", "$P unix stream $UWORK $M", PAIR, Said)
        .own_socket(),
    Row::new("a socket through a symlink", "ln -s $USTREAM $W/l; $P unix stream $W/l $M", PAIR, Said),
    Row::new("a socket through a hard link", "ln $UWORK $W/l; $P unix stream $W/l $M", PAIR, Said)
        .own_socket(),
    Row::new("a socket through a moved path", "mv $UWORK $W/l; $P unix stream $W/l $M", PAIR, Said)
        .own_socket(),
    Row::new(
        "a socket through the root of a process",
        "for r in /proc/[0-9]*/root; do $P unix stream $r$UWORK $M; done",
        PAIR,
        Said,
    ),
    Row::new(
        "a socket through a descriptor",
        "exec 9<$W; $P unix stream /proc/self/fd/9/stream $M",
        PAIR,
        Said,
    ),
    Row::new("a socket through a relative path", "cd $W && $P unix stream ./stream $M", PAIR, Said)
        .own_socket(),
    Row::new(
        "a named pipe in a granted directory, written to",
        "timeout 1 sh -c \"echo $M >$UPIPE\"",
        PAIR,
        Said,
    ),
    Row::new("a named pipe in a granted directory, emptied", "timeout 1 head -c 5 $UPIPE", PAIR, Said),
    Row::new("an abstract socket", "$P unix stream @$N $M; $P unix stream @${N} $M", PAIR, Said),
    Row::new("the display", "$P unix stream $UX11 $M", PAIR, Said),
    Row::new(
        "the session bus",
        "$P unix stream ${DBUS_SESSION_BUS_ADDRESS#unix:path=} $M; $P unix stream $UBUS $M",
        PAIR,
        Said,
    ),
    Row::new("the ssh agent", "$P unix stream $SSH_AUTH_SOCK $M; $P unix stream $UAGENT $M", PAIR, Said),
    Row::new("the container daemon", "$P unix stream $UDOCKER $M", PAIR, Said),
    Row::new(
        "a bus through its client",
        "DBUS_SESSION_BUS_ADDRESS=unix:path=$UBUS timeout 1 dbus-send --session / a.b.c; $P unix stream $UBUS $M",
        PAIR,
        Said,
    ),
    Row::new(
        "a new socket in a granted directory",
        "$P bind-unix $W/mine; [ -S $W/mine ] && echo bound >$C",
        "mkfifo $W/pipe && echo $T >$W/told",
        Wrote("work/told"),
    )
    .own_socket(),
    Row::new("names of all sockets", "cat /proc/net/unix", PAIR, Said),
    Row::new("names of all sockets through netlink", "$P diag", PAIR, Said),
    Row::new("a family: unix", "$P family 1 1 0 $C", "$P loopback 127.0.0.1:0 $R/secret", Said).own_socket(),
    Row::new("a family: netlink, routes", "$P family 16 3 0 $C", PASS, Said),
    Row::new("a family: netlink, audit", "$P family 16 3 9 $C", PASS, Said),
    Row::new("a family: netlink, device events", "$P family 16 3 15 $C", PASS, Said),
    Row::new("a family: netlink, netfilter", "$P family 16 3 12 $C", PASS, Said),
    Row::new("a family: packets", "$P family 17 3 768 $C", PASS, Said).bare(Holds),
    Row::new("a family: packets without link-layer headers", "$P family 17 2 768 $C", PASS, Said).bare(Holds),
    Row::new("a family: virtual machines", "$P family 40 1 0 $C", PASS, Said).bare(Differs),
    Row::new("a family: the kernel's ciphers", "$P family 38 5 0 $C", PASS, Said).bare(Differs),
    Row::new("a family: bluetooth", "$P family 31 3 1 $C", PASS, Said).bare(Differs),
    Row::new("a family: CAN bus", "$P family 29 3 1 $C", PASS, Said).bare(Differs),
    Row::new("a family: NFC", "$P family 39 5 0 $C", PASS, Said).bare(Differs),
    Row::new("a family: Phonet", "$P family 35 2 0 $C", PASS, Said).bare(Differs),
    Row::new("a family: keys", "$P family 15 3 2 $C", PASS, Said).bare(Differs),
    Row::new("a family: TIPC", "$P family 30 1 0 $C", PASS, Said).bare(Differs),
    Row::new("a family: shared memory", "$P family 43 1 0 $C", PASS, Said).bare(Differs),
    Row::new("a family: XDP", "$P family 44 3 0 $C", PASS, Said).bare(Differs),
    Row::new("through the 32-bit system calls", "$P door32 unix $UWORK $M", PAIR, Said).bare(Differs),
    Row::new("the 32-bit entry point", "$P door32 offered && echo open >$C", PAIR, Said).bare(Differs),
    Row::new("the x32 entry point", "$P x32 $C", PAIR, Said).bare(Differs),
    Row::new("through io_uring", "$P uring unix $UWORK $M", PAIR, Said).bare(Differs),
    Row::new("io_uring", "$P call io-uring $C", PAIR, Said).bare(Differs),
];
