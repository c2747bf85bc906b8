//! Parses the `tcp` and `tcp6` tables in `/proc/PID/net` to find listening ports.

/// State of a listening socket (`TCP_LISTEN` in `include/net/tcp_states.h`).
const LISTEN: &str = "0A";

/// Returns `true` if a socket in the table listens on this port, at any address.
pub(crate) fn is_listening(table: &str, port: u16) -> bool {
    let parse_line = |line: &str| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, state) = (words.next()?, words.nth(1)?);
        let number = u16::from_str_radix(local.rsplit_once(':')?.1, 16).ok()?;
        Some(state == LISTEN && number == port)
    };
    table.lines().skip(1).any(|line| parse_line(line) == Some(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 1 1 0 100 0 0 10 0
   1: 0100007F:0C38 0100007F:9C40 01 00000000:00000000 00:00000000 00000000  1000        0 2 1 0 100 0 0 10 0
   2: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 3
";

    #[test]
    fn only_listening_sockets_count() {
        assert!(is_listening(TABLE, 5432) && is_listening(TABLE, 80));
        assert!(!is_listening(TABLE, 3128), "a connection");
        assert!(!is_listening(TABLE, 40000), "the other side of a connection");
        assert!(!is_listening("", 5432) && !is_listening("x\n1: :1538\n", 5432));
    }
}
