//! Looks up host keys in known hosts files (`sshd(8)`, SSH_KNOWN_HOSTS FILE FORMAT).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// Result of looking up a host key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostNames {
    /// The key belongs to a host with these names.
    Named(Vec<String>),
    /// The key belongs to a known host whose names are hashed.
    Hashed,
    /// The key is unknown or revoked.
    Unknown,
}

/// Returns the names of the host that a key belongs to.
#[must_use]
pub fn find_host_names(key: &[u8], known_hosts: &str) -> HostNames {
    let (mut names, mut is_known) = (Vec::<String>::new(), false);
    for line in known_hosts.lines() {
        let mut words = line.split_ascii_whitespace().peekable();
        let marker = words.next_if(|word| word.starts_with('@'));
        let (Some(hosts), Some(_), Some(encoded)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        if hosts.starts_with('#') || STANDARD.decode(encoded).ok().as_deref() != Some(key) {
            continue;
        }
        match marker {
            Some("@revoked") => return HostNames::Unknown,
            // A certificate authority's key does not belong to a host.
            Some(_) => continue,
            None => {}
        }
        for host in hosts.split(',') {
            let is_pattern = host.contains(['*', '?', '!']);
            is_known |= !is_pattern;
            if !is_pattern && !host.starts_with('|') && !names.iter().any(|name| name == host) {
                names.push(host.to_owned());
            }
        }
    }
    match (names.is_empty(), is_known) {
        (false, _) => HostNames::Named(names),
        (true, true) => HostNames::Hashed,
        (true, false) => HostNames::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_entries_of_the_same_key_give_names() {
        let (key, other) = (STANDARD.encode("key"), STANDARD.encode("other"));
        let text = format!(
            "# a comment\nhost.example,10.0.0.1 ssh-ed25519 {key} me\n\
             other.example ssh-ed25519 {other}\n*.example,!bad ssh-ed25519 {key}\nbroken\n\
             |1|salt|hash ssh-ed25519 {other}\n@cert-authority ca.example ssh-ed25519 {key}\n\
             @revoked evil ssh-ed25519 {}\nevil.example ssh-ed25519 {}\n|1|s|h ssh-ed25519 {}\n",
            STANDARD.encode("evil"),
            STANDARD.encode("evil"),
            STANDARD.encode("hidden"),
        );
        let named = HostNames::Named(vec!["host.example".into(), "10.0.0.1".into()]);
        assert_eq!(find_host_names(b"key", &text), named);
        assert_eq!(find_host_names(b"other", &text), HostNames::Named(vec!["other.example".into()]));
        assert_eq!(find_host_names(b"hidden", &text), HostNames::Hashed);
        assert_eq!(find_host_names(b"evil", &text), HostNames::Unknown);
        assert_eq!(find_host_names(b"ke", &text), HostNames::Unknown);
    }
}
