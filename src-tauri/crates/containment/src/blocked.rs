//! Marks errors that the sandbox, not the server, caused.
//!
//! - Guessed from the error text, and only for servers that really run in a sandbox.

/// Prefix of a marked error.
const PREFIX: &str = "[SANDBOX BLOCKED] ";

/// Error texts of operating systems and common programs, in lower case.
const SIGNS: [&str; 6] =
    ["eacces", "eperm", "erofs", "operation not permitted", "permission denied", "read-only file system"];

/// Returns the error with the prefix if it resembles a sandbox denial.
#[must_use]
pub fn annotate(message: &str, sandboxed: bool) -> Option<String> {
    let resembles_denial = || {
        let message = message.to_ascii_lowercase();
        SIGNS.iter().any(|sign| message.contains(sign))
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
