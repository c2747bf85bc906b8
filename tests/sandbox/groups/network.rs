//! Attempts to use internet protocols without any network permission.

use crate::{
    row::{
        Bare::{Differs, Holds},
        Group, Row,
        Sign::Said,
    },
    run::listening,
};

pub(crate) const GROUP: Group = Group { listeners: true, ..Group::new("network", ROWS) };

const TCP: &str = "$P loopback 127.0.0.1:0 $R/secret";
const TCP6: &str = "$P loopback [::1]:0 $R/secret";
const UDP: &str = "$P loopback-udp 127.0.0.1:0 $R/secret";

const ROWS: &[Row] = &[
    Row::new("the host's loopback", "$P tcp 127.0.0.1:$PORT $M", TCP, Said),
    Row::new("all of the host's loopback", "for a in 127.0.0.2 127.1.2.3 127.255.255.254; do $P tcp $a:$PORT $M; done", TCP, Said),
    Row::new("the unspecified address", "$P tcp 0.0.0.0:$PORT $M", TCP, Said),
    Row::new("the host's own address", "$P tcp $LAN:$PORT $M", TCP, Said),
    Row::new("the IPv6 loopback", "$P tcp [::1]:$PORT6 $M", TCP6, Said),
    Row::new("an IPv4-mapped IPv6 address", "$P tcp [::ffff:127.0.0.1]:$PORT $M", TCP6, Said),
    Row::new("the unspecified IPv6 address", "$P tcp [::]:$PORT6 $M", TCP6, Said),
    Row::new("through the shell", "bash -c \"echo $M >/dev/tcp/127.0.0.1/$PORT\"", TCP, Said),
    Row::new("through the shell with a name", "bash -c \"echo $M >/dev/tcp/localhost/$PORT\"", TCP, Said),
    Row::new("through the shell with a number", "bash -c \"echo $M >/dev/tcp/2130706433/$PORT\"", TCP, Said),
    Row::new("through the shell with octal digits", "bash -c \"echo $M >/dev/tcp/0177.0.0.1/$PORT\"", TCP, Said),
    Row::new("multipath TCP", "$P tcp-as mptcp 127.0.0.1:$PORT $M", TCP, Said).bare(Differs),
    Row::new("TCP fast open", "$P tcp-as fast-open 127.0.0.1:$PORT $M", TCP, Said),
    Row::new("datagrams", "$P udp 127.0.0.1:$UPORT $M", UDP, Said),
    Row::new("datagrams to the host's own address", "$P udp $LAN:$UPORT $M", UDP, Said),
    Row::new("datagrams through the shell", "bash -c \"echo $M >/dev/udp/127.0.0.1/$UPORT\"", UDP, Said),
    Row::new("a name server", "timeout 3 bash -c \"printf '\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0' >/dev/udp/127.0.0.1/$UPORT\"", UDP, Said),
    Row::new("broadcast", "$P udp 255.255.255.255:$UPORT $M; $P udp 127.255.255.255:$UPORT $M", UDP, Said),
    Row::new("multicast", "$P udp $MULTICAST $M", UDP, Said).bare(Differs),
    Row::new("an echo request", "$P ping 127.0.0.1:0 && $P ping $LAN:0 && [ $LAN != 127.0.0.1 ] && echo answered >$C", UDP, Said).bare(Differs),
    Row::new("an echo request with ping", "ping -c 1 -W 1 $LAN && [ $LAN != 127.0.0.1 ] && echo answered >$C", UDP, Said).bare(Differs),
    Row::new("raw packets", "$P family 2 3 255 $C; $P family 2 3 1 $C", UDP, Said).bare(Holds),
    Row::new("raw IPv6 packets", "$P family 10 3 58 $C", UDP, Said).bare(Holds),
    Row::new("SCTP", "$P family 2 5 132 $C", TCP, Said).bare(Differs),
    Row::new("the list of the host's sockets", "cat /proc/net/tcp >$W/list", TCP, Said).also(listening),
    Row::new("the list of the host's interfaces", "tail -n +3 /proc/net/dev | grep -v ' *lo:' | head -c 200 >$C; [ -s $C ] || rm -f $C", TCP, Said).bare(Differs),
    Row::new("the list of the host's interfaces by another path", "ls /sys/class/net 2>/dev/null | grep -v '^lo$' >$C; [ -s $C ] || rm -f $C", TCP, Said).bare(Differs),
    Row::new("the host's routes", "tail -n +2 /proc/net/route | head -c 200 >$C; [ -s $C ] || rm -f $C", TCP, Said).bare(Differs),
    Row::new("the host's neighbours", "tail -n +2 /proc/net/arp | head -c 200 >$C; [ -s $C ] || rm -f $C", TCP, Said).bare(Differs),
    Row::new("another network's sockets through a process", "cat /proc/[0-9]*/net/tcp >$W/list", TCP, Said).also(listening),
    Row::new("a proxy that the launcher had", "for v in http_proxy https_proxy ALL_PROXY HTTPS_PROXY; do eval \"[ -n \\\"\\$$v\\\" ] && echo $v >>$C\"; done", TCP, Said).bare(Holds),
    Row::new("a tunnel", "(exec 9<>/dev/net/tun) && echo opened >$C", TCP, Said).bare(Differs),
];
