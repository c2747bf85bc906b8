//! Determines which user owns the other end of a loopback connection.
//!
//! - Other users of this computer can see the port and, while the browser is starting, the login page's URL in the
//!   browser's command line. They could use both to send a forged redirect.

use rustix::process::getuid;
use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};
use tokio::net::TcpStream;

/// Kernel tables of TCP sockets. An IPv4 connection is in the second table if its socket is IPv6.
const TABLES: [&str; 2] = ["/proc/self/net/tcp", "/proc/self/net/tcp6"];

/// Index of the column with the owner's user id.
const OWNER_COLUMN: usize = 7;

/// Returns `true` if the current user owns the peer's socket.
pub(super) fn is_own_peer(stream: &TcpStream) -> bool {
    let (Ok(peer), Ok(own)) = (stream.peer_addr(), stream.local_addr()) else { return false };
    let owner = TABLES.iter().find_map(|table| owner(&std::fs::read_to_string(table).ok()?, peer, own));
    owner == Some(getuid().as_raw())
}

/// Returns the user id of the owner of the socket with local address `from` and remote address `to`.
fn owner(table: &str, from: SocketAddr, to: SocketAddr) -> Option<u32> {
    let (from, to) = (kernel_format(from), kernel_format(to));
    table.lines().find_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let [local, remote] = [columns.get(1)?, columns.get(2)?];
        let matches = local.ends_with(&from) && remote.ends_with(&to);
        matches.then(|| columns.get(OWNER_COLUMN)?.parse().ok()).flatten()
    })
}

/// Formats an address as in the kernel's tables, which use words of 32 bits in native byte order.
fn kernel_format(address: SocketAddr) -> String {
    let octets = match address.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    for word in octets.as_chunks().0 {
        let _ = write!(text, "{:08X}", u32::from_ne_bytes(*word));
    }
    let _ = write!(text, ":{:04X}", address.port());
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::net::TcpListener;

    #[test]
    fn the_owner_is_that_of_the_connecting_socket() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 1\n   \
                     1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1001        0 2\n";
        let address = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        assert_eq!(owner(table, address(50_000), address(8080)), Some(1001));
        assert_eq!(owner(table, address(8080), address(50_000)), Some(1000));
        assert_eq!(owner(table, address(50_001), address(8080)), None);
    }

    #[tokio::test]
    async fn a_connection_of_this_process_is_of_this_user() {
        for loopback in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(loopback).await.unwrap();
            let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (server, _) = listener.accept().await.unwrap();
            assert!(is_own_peer(&server), "{loopback}");
            drop(client);
        }
    }
}
