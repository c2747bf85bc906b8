//! Classifies IP addresses, in order to refuse names that resolve to this machine, its network or a cloud metadata
//! service. Performs no I/O, except in [`is_local_address`].
//!
//! - An address that embeds an IPv4 address (mapped, NAT64, 6to4) is classified as the embedded address.
//! - IPv6 addresses outside global unicast are never public.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

/// Scope of an address that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressScope {
    /// The unspecified address, `0.0.0.0` or `::`.
    Unspecified,
    /// A loopback address of this machine.
    Loopback,
    /// A link-local address.
    LinkLocal,
    /// A cloud provider's metadata service, which provides this machine's credentials.
    Metadata,
    /// An address in a private network (RFC 1918, or an IPv6 unique local address).
    Private,
    /// An address in the provider's shared address space (carrier-grade NAT, RFC 6598).
    Shared,
    /// The address of a multicast group.
    Multicast,
    /// An address reserved for documentation, benchmarks, tunnels or future use.
    Reserved,
    /// A public address that is assigned to this machine.
    Own,
}

impl fmt::Display for AddressScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "is the unspecified address",
            Self::Loopback => "is this machine itself",
            Self::LinkLocal => "is a link-local address",
            Self::Metadata => "hands out this machine's credentials",
            Self::Private => "is in a private network",
            Self::Shared => "is in the provider's shared address space",
            Self::Multicast => "is a multicast address",
            Self::Reserved => "is not a public address",
            Self::Own => "is this machine's own",
        })
    }
}

/// Returns the scope of a non-public address, or `None` if the address is public.
#[must_use]
pub fn scope(address: IpAddr) -> Option<AddressScope> {
    match address {
        IpAddr::V4(v4) => scope_v4(v4),
        IpAddr::V6(v6) => scope_v6(v6),
    }
}

/// Returns `true` if the address is assigned to this machine. In that case, it is also the source address of the
/// kernel's route to it. Sends no packet.
#[must_use]
pub fn is_local_address(address: IpAddr) -> bool {
    let from: SocketAddr = match address {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let route = || -> std::io::Result<IpAddr> {
        let socket = UdpSocket::bind(from)?;
        socket.connect((address, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    // Without a route, no connection to the address is possible.
    route().is_ok_and(|source| source == address)
}

fn scope_v4(address: Ipv4Addr) -> Option<AddressScope> {
    match address.octets() {
        // Only the first address (Azure) would otherwise count as public. The others are in ranges that the arms below
        // cover.
        [168, 63, 129, 16]
        | [169, 254, 169, 254]
        | [169, 254, 170, 2 | 23]
        | [100, 100, 100, 200]
        | [192, 0, 0, 192] => Some(AddressScope::Metadata),
        [0, ..] => Some(AddressScope::Unspecified),
        [127, ..] => Some(AddressScope::Loopback),
        [169, 254, ..] => Some(AddressScope::LinkLocal),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(AddressScope::Private),
        [100, 64..=127, ..] => Some(AddressScope::Shared),
        [224..=239, ..] => Some(AddressScope::Multicast),
        [192, 0, 0 | 2, _]
        | [192, 88, 99, _]
        | [198, 18 | 19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [240..=255, ..] => Some(AddressScope::Reserved),
        _ => None,
    }
}

fn scope_v6(address: Ipv6Addr) -> Option<AddressScope> {
    if let Some(inner) = embedded_ipv4(address) {
        return scope_v4(inner);
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(AddressScope::Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(AddressScope::Loopback),
        [0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254] | [0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254] => {
            Some(AddressScope::Metadata)
        }
        [0xfe80..=0xfeff, ..] => Some(AddressScope::LinkLocal),
        [0xfc00..=0xfdff, ..] => Some(AddressScope::Private),
        [0xff00..=0xffff, ..] => Some(AddressScope::Multicast),
        // Teredo, ORCHID, benchmark and documentation ranges inside global unicast.
        [0x2001, 0x0000 | 0x0002 | 0x0010..=0x002f | 0x0db8, ..] | [0x3fff, 0x0000..=0x0fff, ..] => {
            Some(AddressScope::Reserved)
        }
        [0x2000..=0x3fff, ..] => None,
        _ => Some(AddressScope::Reserved),
    }
}

/// Returns the IPv4 address embedded in a mapped, translated, NAT64 (well-known prefix) or 6to4 address, or `None`.
fn embedded_ipv4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let v4 = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, a, b]
        | [0, 0, 0, 0, 0xffff, 0, a, b]
        | [0x64, 0xff9b, 0, 0, 0, 0, a, b]
        | [0x2002, a, b, ..] => Some(v4(a, b)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope_of(text: &str) -> Option<AddressScope> {
        scope(text.parse().unwrap())
    }

    #[test]
    fn each_range_is_refused_at_both_ends_and_its_neighbours_are_public() {
        for (first, last, expected, before, after) in [
            ("10.0.0.0", "10.255.255.255", AddressScope::Private, Some("9.255.255.255"), Some("11.0.0.0")),
            (
                "172.16.0.0",
                "172.31.255.255",
                AddressScope::Private,
                Some("172.15.255.255"),
                Some("172.32.0.0"),
            ),
            (
                "192.168.0.0",
                "192.168.255.255",
                AddressScope::Private,
                Some("192.167.255.255"),
                Some("192.169.0.0"),
            ),
            (
                "100.64.0.0",
                "100.127.255.255",
                AddressScope::Shared,
                Some("100.63.255.255"),
                Some("100.128.0.0"),
            ),
            (
                "127.0.0.0",
                "127.255.255.255",
                AddressScope::Loopback,
                Some("126.255.255.255"),
                Some("128.0.0.0"),
            ),
            (
                "169.254.0.0",
                "169.254.255.255",
                AddressScope::LinkLocal,
                Some("169.253.255.255"),
                Some("169.255.0.0"),
            ),
            ("0.0.0.0", "0.255.255.255", AddressScope::Unspecified, None, Some("1.0.0.0")),
            ("224.0.0.0", "239.255.255.255", AddressScope::Multicast, Some("223.255.255.255"), None),
            (
                "198.18.0.0",
                "198.19.255.255",
                AddressScope::Reserved,
                Some("198.17.255.255"),
                Some("198.20.0.0"),
            ),
            ("240.0.0.0", "255.255.255.255", AddressScope::Reserved, None, None),
            ("fc00::", "fdff:ffff::", AddressScope::Private, None, None),
            ("fe80::", "febf::", AddressScope::LinkLocal, None, None),
            ("ff00::", "ffff::", AddressScope::Multicast, None, None),
            ("2001:db8::", "2001:db8:ffff::", AddressScope::Reserved, Some("2001:db7::"), Some("2001:db9::")),
            ("2001::", "2001:0:ffff::", AddressScope::Reserved, None, Some("2001:1::")),
            ("64:ff9b:1::", "64:ff9b:1:ffff::", AddressScope::Reserved, None, None),
        ] {
            assert_eq!((scope_of(first), scope_of(last)), (Some(expected), Some(expected)), "{first}");
            for neighbour in [before, after].into_iter().flatten() {
                assert_eq!(scope_of(neighbour), None, "{neighbour}");
            }
        }
    }

    #[test]
    fn metadata_services_have_their_own_scope() {
        for text in
            ["169.254.169.254", "fd00:ec2::254", "100.100.100.200", "168.63.129.16", "::ffff:169.254.169.254"]
        {
            assert_eq!(scope_of(text), Some(AddressScope::Metadata), "{text}");
        }
    }

    #[test]
    fn an_embedded_address_is_judged_as_itself() {
        for form in ["::ffff:{}", "::ffff:0:{}", "64:ff9b::{}"] {
            let embed = |inner: &str| scope_of(&form.replace("{}", inner));
            assert_eq!(embed("127.0.0.1"), Some(AddressScope::Loopback), "{form}");
            assert_eq!(embed("10.1.2.3"), Some(AddressScope::Private), "{form}");
            assert_eq!(embed("1.1.1.1"), None, "{form}");
        }
        assert_eq!(
            (scope_of("2002:7f00:1::"), scope_of("2002:a01:203::1")),
            (Some(AddressScope::Loopback), Some(AddressScope::Private))
        );
        assert_eq!(
            (scope_of("2002:101:101::1"), scope_of("::127.0.0.1")),
            (None, Some(AddressScope::Reserved))
        );
        assert_eq!(
            (scope_of("::1"), scope_of("::")),
            (Some(AddressScope::Loopback), Some(AddressScope::Unspecified))
        );
        assert_eq!(scope_of("2606:4700::1111"), None);
    }

    #[test]
    fn the_route_to_our_own_address_starts_at_it() {
        assert!(is_local_address("127.0.0.1".parse().unwrap()));
        assert!(!is_local_address("192.0.2.1".parse().unwrap()));
    }
}
