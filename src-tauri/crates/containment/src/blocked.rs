//! Marks a server's error messages that the sandbox probably caused.
//!
//! - This is a guess from the message text. Only messages of sandboxed servers are marked.

/// Prefix of a marked message.
const PREFIX: &str = "[SANDBOX BLOCKED] ";

/// Lower-case phrases with which operating systems and common programs report a denial.
const DENIAL_PHRASES: [&str; 6] =
    ["eacces", "eperm", "erofs", "operation not permitted", "permission denied", "read-only file system"];

/// Returns the message with `PREFIX` if it looks like a denial by the sandbox, otherwise `None`.
#[must_use]
pub fn annotate(message: &str, sandboxed: bool) -> Option<String> {
    let resembles_denial = || {
        let message = message.to_ascii_lowercase();
        DENIAL_PHRASES.iter().any(|sign| message.contains(sign))
    };
    (sandboxed && resembles_denial()).then(|| format!("{PREFIX}{message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_sandboxed_servers_errors_that_resemble_denials_are_marked() {
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
