//! The number of descriptors that this process may have.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Takes all that the system lets this process have. What it is started with is often 1,024, which the connections of a
/// few servers fill; and a message with descriptors is refused while those on their way, of any program of the user, are
/// more than that (`unix(7)`, `ETOOMANYREFS`). What it starts inherits it; a server has a limit of its own.
pub(crate) fn take_all() -> rustix::io::Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })
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
