//! Determines whether a program still waits for its connection. A program that gives up sends no packet, but the kernel
//! removes its socket.

use super::packet::Flow;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::net::Ipv4Addr;

/// State of a connecting socket (`TCP_SYN_SENT` in `include/net/tcp_states.h`).
const SYN_SENT: &str = "02";
/// Maximum size in bytes of a table. A longer table has tens of thousands of sockets.
const MAX_TABLE_LEN: u64 = 8 * 1024 * 1024;

/// The kernel's tables of TCP sockets.
#[derive(Debug)]
pub(super) struct ConnectingSockets {
    tables: Vec<File>,
}

impl ConnectingSockets {
    pub(super) fn new(tables: Vec<File>) -> Self {
        Self { tables }
    }

    /// Returns the connections for which a socket waits, or `None` if they are unknown.
    pub(super) fn find(&mut self) -> Option<HashSet<Flow>> {
        if self.tables.is_empty() {
            return None;
        }
        let mut flows = HashSet::new();
        for table in &mut self.tables {
            let text = read(table).ok()?;
            if u64::try_from(text.len()).is_ok_and(|length| length >= MAX_TABLE_LEN) {
                return None;
            }
            flows.extend(text.lines().skip(1).filter_map(parse_connecting));
        }
        Some(flows)
    }
}

fn read(mut table: &File) -> io::Result<String> {
    let mut text = String::new();
    table.rewind()?;
    table.take(MAX_TABLE_LEN).read_to_string(&mut text)?;
    Ok(text)
}

/// Parses a line (`proc_pid_net(5)`). Addresses are numbers in the byte order of the machine. Those of IPv6 sockets with
/// an IPv4 target end with the IPv4 address.
fn parse_connecting(line: &str) -> Option<Flow> {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (local, remote, state) = (words.next()?, words.next()?, words.next()?);
    let number = |digits: &str| u16::from_str_radix(digits, 16).ok();
    let (address, port) = remote.rsplit_once(':')?;
    let address = address.get(address.len().checked_sub(8)?..)?;
    let address = u32::from_str_radix(address, 16).ok()?;
    let flow = Flow {
        client_port: number(local.rsplit_once(':')?.1)?,
        address: Ipv4Addr::from(address.to_ne_bytes()),
        port: number(port)?,
    };
    (state == SYN_SENT).then_some(flow)
}

#[cfg(all(test, target_endian = "little"))]
mod tests {
    use super::*;

    #[test]
    fn connecting_sockets_of_both_families_are_found() {
        let flow = |client_port, address: [u8; 4], port| Flow { client_port, address: address.into(), port };
        for (line, expected) in [
            ("0: 020012C6:9C40 010112C6:01BB 02 0:0", Some(flow(40000, [198, 18, 1, 1], 443))),
            (
                "1: 0000000000000000FFFF0000020012C6:9C41 0000000000000000FFFF000008080808:0035 02 0:0",
                Some(flow(40001, [8, 8, 8, 8], 53)),
            ),
            ("2: 020012C6:9C40 010112C6:01BB 01 0:0", None),
            ("3: 0100007F:1538 00000000:0000 0A 0:0", None),
            ("4: 020012C6:9C40 12C6:01BB 02", None),
            ("5: 020012C6 010112C6:01BB 02", None),
            ("", None),
        ] {
            assert_eq!(parse_connecting(line), expected, "{line}");
        }
    }
}
