//! The limit on this process's file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the soft limit to the hard limit. The usual default of 1,024 is used up by the connections of a few servers; and the kernel
/// refuses messages with descriptors while the user's programs have more than that in transit (`unix(7)`, `ETOOMANYREFS`).
/// Child processes inherit the limit, except servers, which get their own limit.
pub(crate) fn raise_limit() -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
}

/// Maximum number of descriptors per session, including its server's connections.
const OF_SESSION: u64 = 16;

/// Number of descriptors reserved for everything else.
const OF_OTHERS: u64 = 128;

/// Returns the number of sessions that the limit allows.
pub(crate) fn sessions() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OF_OTHERS) / OF_SESSION).unwrap_or(usize::MAX)
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
