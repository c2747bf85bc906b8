//! The paths that no agent touches, whatever rules, grants and people say: what gives away every other lock.
//!
//! - Spelled, not resolved: the caller resolves each and adds the folders of its own.
//! - Platforms are not told apart: a path that another platform has costs nothing here.

use ironcurtain_paths::CanonicalPath;

/// The protected paths for a person with this home.
#[must_use]
pub fn protected(home: &CanonicalPath) -> Vec<CanonicalPath> {
    let below_home = IN_HOME.iter().filter_map(|below| home.join(below).ok());
    let system = SYSTEM.iter().filter_map(|path| CanonicalPath::assume_canonical(path).ok());
    below_home.chain(system).collect()
}

/// Below the home.
const IN_HOME: &[&str] = &[
    // Private keys, and who may log in.
    ".ssh",
    ".gnupg",
    ".pki",
    ".age",
    ".config/age",
    ".config/sops",
    ".putty",
    // Logins of cloud and cluster tools.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".config/doctl",
    ".config/hcloud",
    ".config/fly",
    ".fly",
    ".oci",
    ".terraform.d",
    ".terraformrc",
    ".vault-token",
    ".kube",
    // Logins of registries, and the socket that makes anyone root.
    ".docker",
    ".config/containers",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".config/pip",
    ".pip",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings.xml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".composer/auth.json",
    ".config/composer/auth.json",
    ".nuget/NuGet/NuGet.Config",
    // Logins of git and code hosts.
    ".git-credentials",
    ".config/git/credentials",
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    // Logins of databases and file stores.
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".config/rclone",
    ".s3cfg",
    ".boto",
    ".config/borg",
    // Logins of mail programs.
    ".thunderbird",
    ".msmtprc",
    ".mbsyncrc",
    ".fetchmailrc",
    // Key rings and password stores.
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".kde/share/apps/kwallet",
    ".password-store",
    ".config/keepassxc",
    ".config/1Password",
    ".config/op",
    ".config/Bitwarden",
    ".config/Bitwarden CLI",
    ".local/share/pass",
    ".local/share/gopass",
    "Library/Keychains",
    // Browsers: cookies and saved passwords are logins to everything.
    ".mozilla",
    ".config/google-chrome",
    ".config/google-chrome-beta",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/opera",
    ".config/vivaldi",
    ".librewolf",
    ".zen",
    ".var/app/org.mozilla.firefox",
    ".var/app/com.google.Chrome",
    ".var/app/org.chromium.Chromium",
    ".var/app/com.brave.Browser",
    ".var/app/com.microsoft.Edge",
    "snap/firefox",
    "snap/chromium",
    "snap/brave",
    "Library/Application Support/Firefox",
    "Library/Application Support/Google/Chrome",
    "Library/Application Support/Chromium",
    "Library/Application Support/BraveSoftware",
    "Library/Application Support/Microsoft Edge",
    "Library/Application Support/Arc",
    "Library/Safari",
    "Library/Cookies",
    // Histories hold whatever was typed: passwords, tokens, hosts.
    ".bash_history",
    ".zsh_history",
    ".zhistory",
    ".histfile",
    ".local/share/fish/fish_history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
    ".lesshst",
    ".viminfo",
    // Money.
    ".bitcoin",
    ".ethereum",
    ".electrum",
    ".config/solana",
    // The desktop session: its sockets act as the person.
    ".ICEauthority",
    ".Xauthority",
];

/// Of the machine.
const SYSTEM: &[&str] = &[
    // Other processes' memory and environment, devices and kernel switches.
    "/proc",
    "/sys",
    "/dev",
    // Sockets of the desktop session, key agents and daemons, secrets handed to services.
    "/run/user",
    "/run/secrets",
    "/run/credentials",
    "/run/docker.sock",
    "/run/containerd",
    "/run/podman",
    "/run/dbus",
    "/run/systemd",
    "/tmp/.X11-unix",
    "/tmp/.ICE-unix",
    // Password hashes, who may become root, host keys, stored network passwords.
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/master.passwd",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/security/opasswd",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/wireguard",
    "/etc/openvpn",
    "/etc/NetworkManager/system-connections",
    "/etc/wpa_supplicant",
    "/etc/ppp",
    "/etc/kubernetes",
    "/root/.ssh",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/lib/NetworkManager",
    "/var/lib/sss",
    "/Library/Keychains",
    "/private/etc/master.passwd",
    "/var/db/dslocal",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_entry_is_a_canonical_path_and_stands_once() {
        let home = CanonicalPath::assume_canonical("/home/ann").unwrap();
        let protected = protected(&home);
        assert_eq!(protected.len(), IN_HOME.len() + SYSTEM.len());
        for (at, path) in protected.iter().enumerate() {
            assert!(!protected[..at].contains(path), "{path} stands twice");
            assert!(!path.contains(&home), "{path} would close the home");
        }
        assert!(protected.iter().any(|path| path.as_str() == "/home/ann/.ssh"));
    }
}
