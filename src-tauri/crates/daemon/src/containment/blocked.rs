//! Telling an agent that it was the sandbox that held its call back, and no fault of the server.
//!
//! - A guess from the words of the error; only made of servers that really run in a sandbox.

/// The words before such an error.
const PREFIX: &str = "[SANDBOX BLOCKED] ";

/// The words of operating systems, and of programs on them, for it; in lower case.
const SIGNS: [&str; 6] =
    ["eacces", "eperm", "erofs", "operation not permitted", "permission denied", "read-only file system"];

/// The error with the prefix, when it sounds like one of a sandbox.
#[must_use]
pub fn annotate(message: &str, sandboxed: bool) -> Option<String> {
    let sounds_like_it = || {
        let message = message.to_ascii_lowercase();
        SIGNS.iter().any(|sign| message.contains(sign))
    };
    (sandboxed && sounds_like_it()).then(|| format!("{PREFIX}{message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_of_sandboxed_servers_that_sound_like_it_are_marked() {
        for message in [
            "EACCES: permission denied, open '/etc/shadow'",
            "eperm",
            "mkdir: Operation not permitted",
            "OSError: [Errno 30] Read-only file system: '/x'",
            "EROFS",
        ] {
            assert_eq!(annotate(message, true), Some(format!("[SANDBOX BLOCKED] {message}")));
            assert_eq!(annotate(message, false), None);
        }
        assert_eq!(annotate("ENOENT: no such file or directory", true), None);
        assert_eq!(annotate("", true), None);
    }
}
