//! The number of descriptors that this process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes all that the system lets this process have. What it is started with is often 1,024, which the connections of a
/// few servers fill; and a message with descriptors is refused while those on their way, of any program of the user, are
/// more than that (`unix(7)`, `ETOOMANYREFS`). What it starts inherits it; a server has a limit of its own.
pub(crate) fn take_all() -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
}

/// The number of descriptors that one session may come to have, with the connections of its server.
const OF_SESSION: u64 = 16;

/// The number that everything else may come to have.
const OF_OTHERS: u64 = 128;

/// The number of sessions that this process has descriptors for.
pub(crate) fn sessions() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    usize::try_from(limit.saturating_sub(OF_OTHERS) / OF_SESSION).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_to_take() {
        take_all().unwrap();
        let limit = getrlimit(Resource::Nofile);
        assert_eq!(limit.current, limit.maximum);
    }
}
