//! File descriptor limit of this process.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit for file descriptors to the hard limit, because a few servers exhaust the typical soft limit
/// of 1,024. The limit also applies to descriptors that the user's processes have in transit: beyond it, the kernel
/// refuses to pass more (unix(7), `ETOOMANYREFS`). Child processes inherit the limit, except for servers, which get
/// their own.
pub(crate) fn raise_limit() -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
}

/// Maximum number of descriptors that one session uses, including its server's connections.
const PER_SESSION: u64 = 16;

/// Number of descriptors reserved for other purposes.
const RESERVED: u64 = 128;

/// Returns the maximum number of sessions that the descriptor limit permits.
pub(crate) fn max_sessions() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(RESERVED) / PER_SESSION).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raises_the_soft_limit_to_the_hard_limit() {
        raise_limit().unwrap();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
