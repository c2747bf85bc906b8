//! The sandbox of macOS as a value: a Seatbelt profile, and what is passed to it. Nothing runs it yet: on macOS no sandbox is
//! launched.
//!
//! - INVARIANT: no path and no word of a [`Spec`] is part of the profile's text. Each is a parameter, so that no name can
//!   change what the profile says.
//! - Of several rules that match the last one counts, as Seatbelt has it: they go from the shallow to the deep, and at the
//!   same path what denies comes last.
//! - Names are compared whatever their case, since the file systems of macOS do so.

mod rules;

use ironcurtain_sandbox::{NetworkAccess, Spec, SpecError};
use rules::SeatbeltRules;

/// A profile and its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seatbelt {
    /// The text of the profile, the same for all paths.
    pub profile: String,
    /// The values that `(param "NAME")` stands for in it.
    pub parameters: Vec<(String, String)>,
}

/// The rules that every program needs to run at all: itself, what it starts, a few devices, and facts about the machine.
const BASE: &str = r#"(version 1)
(deny default)
(allow process-exec process-fork)
(allow signal process-info* (target same-sandbox))
(allow sysctl-read)
(allow ipc-posix-sem)
(allow mach-lookup
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.trustd.agent"))
(allow file-read* file-write-data file-ioctl
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/tty") (literal "/dev/dtracehelper"))
(allow file-read* (literal "/dev/random") (literal "/dev/urandom") (subpath "/dev/fd"))
"#;

/// Programs and libraries of the system, and the few files of its configuration that runtimes read.
const SYSTEM: &str = r#"(allow file-read* (literal "/")
  (subpath "/usr") (subpath "/bin") (subpath "/sbin") (subpath "/System") (subpath "/Library/Frameworks")
  (subpath "/Library/Apple") (subpath "/opt/homebrew") (subpath "/private/var/db/dyld")
  (subpath "/private/var/db/timezone") (subpath "/private/etc/ssl")
  (literal "/private/etc/hosts") (literal "/private/etc/localtime") (literal "/private/etc/resolv.conf"))
(allow file-read-metadata (literal "/private") (literal "/private/var") (literal "/private/etc")
  (literal "/var") (literal "/etc") (literal "/tmp"))
"#;

/// The host's tree.
const EVERYTHING: &str = "(allow file-read*)\n";

impl Seatbelt {
    /// The sandbox that `spec` asks for; its proxy, if it has one, listens on this port of the host's loopback.
    ///
    /// # Errors
    /// When the spec cannot be carried out as written.
    pub fn of(spec: &Spec, proxy_port: u16) -> Result<Self, SpecError> {
        spec.validate()?;
        let mut rules = SeatbeltRules::new(BASE);
        rules.view(&spec.view, &spec.mounts);
        rules.close(&spec.closed);
        if spec.network == NetworkAccess::Proxied {
            rules.proxy(proxy_port);
        }
        Ok(rules.finish())
    }

    /// The command line that runs the program of `spec` in it.
    #[must_use]
    pub fn command(&self, spec: &Spec) -> Vec<String> {
        let mut command = vec!["/usr/bin/sandbox-exec".to_owned(), "-p".to_owned(), self.profile.clone()];
        for (name, value) in &self.parameters {
            command.extend(["-D".to_owned(), format!("{name}={value}")]);
        }
        command.extend(spec.argv.iter().cloned());
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_sandbox::{Mount, MountAccess, View};

    #[test]
    fn roots_show_the_system_and_what_is_granted() {
        let spec = Spec {
            mounts: vec![
                Mount::new("/Users/u/notes", MountAccess::ReadOnly),
                Mount::new("/Users/u/work", MountAccess::ReadWrite),
            ],
            ..spec(View::Roots { session_dir: "/Users/u/ic/s".into(), programs: vec!["/opt/srv".into()] })
        };
        let seatbelt = Seatbelt::of(&spec, 0).unwrap();
        let expected = format!(
            r#"{BASE}{SYSTEM}(allow file-read-metadata (literal (param "ABOVE_0")))
(allow file-read* (subpath (param "READ_0")))
(allow file-read-metadata (literal (param "ABOVE_1")))
(allow file-read-metadata (literal (param "ABOVE_2")))
(allow file-read* (subpath (param "READ_1")))
(allow file-read* (subpath (param "READ_2")))
(allow file-write* (subpath (param "WRITE_0")))
(allow file-read-metadata (literal (param "ABOVE_3")))
(allow file-read* (subpath (param "READ_3")))
(allow file-write* (subpath (param "WRITE_1")))
"#
        );
        assert_eq!(seatbelt.profile, expected);
        let parameters = [
            ("ABOVE_0", "/opt"),
            ("READ_0", "/opt/srv"),
            ("ABOVE_1", "/Users"),
            ("ABOVE_2", "/Users/u"),
            ("READ_1", "/Users/u/notes"),
            ("READ_2", "/Users/u/work"),
            ("WRITE_0", "/Users/u/work"),
            ("ABOVE_3", "/Users/u/ic"),
            ("READ_3", "/Users/u/ic/s"),
            ("WRITE_1", "/Users/u/ic/s"),
        ];
        assert_eq!(seatbelt.parameters, owned(&parameters));
    }

    #[test]
    fn the_host_is_read_only_but_for_what_is_named() {
        let spec = spec(View::HostRead {
            session_dir: Some("/s".into()),
            deny_read: vec!["/Users/u/.ssh".into(), "/Users/u/.aws".into()],
            allow_read: vec!["/Users/u/.ssh/known_hosts".into()],
            allow_write: vec!["/Users/u/work".into()],
            deny_write: vec!["/Users/u/work/keep".into()],
            private_tmp: true,
        });
        let seatbelt = Seatbelt::of(&spec, 0).unwrap();
        let expected = format!(
            r#"{BASE}{EVERYTHING}(allow file-read* file-write* (subpath (param "WRITE_0")))
(allow file-read* file-write* (subpath (param "WRITE_1")))
(deny file-read* file-write* file-link (subpath (param "HIDDEN_0")))
(deny file-read* file-write* file-link (subpath (param "HIDDEN_1")))
(allow file-read* (subpath (param "READ_0")))
(deny file-write* file-link (subpath (param "KEPT_0")))
(deny file-write-unlink (literal (param "FIXED_0")))
(deny file-write-unlink (literal (param "FIXED_1")))
(deny file-write-unlink (literal (param "FIXED_2")))
"#
        );
        assert_eq!(seatbelt.profile, expected);
        let parameters = [
            ("WRITE_0", "/s"),
            ("WRITE_1", "/Users/u/work"),
            ("HIDDEN_0", "/Users/u/.ssh"),
            ("HIDDEN_1", "/Users/u/.aws"),
            ("READ_0", "/Users/u/.ssh/known_hosts"),
            ("KEPT_0", "/Users/u/work/keep"),
            ("FIXED_0", "/Users"),
            ("FIXED_1", "/Users/u"),
            ("FIXED_2", "/Users/u/work"),
        ];
        assert_eq!(seatbelt.parameters, owned(&parameters));
    }

    #[test]
    fn a_hostile_name_is_a_parameter_and_not_text() {
        let evil = r#"/Users/u/") (allow default) (subpath ""#;
        let spec = spec(View::Roots { session_dir: evil.into(), programs: vec![] });
        let seatbelt = Seatbelt::of(&spec, 0).unwrap();
        assert!(!seatbelt.profile.contains("allow default"), "{}", seatbelt.profile);
        assert!(seatbelt.parameters.contains(&("WRITE_0".to_owned(), evil.to_owned())));
        let command = seatbelt.command(&spec);
        assert_eq!(command.first().map(String::as_str), Some("/usr/bin/sandbox-exec"));
        assert!(command.contains(&format!("WRITE_0={evil}")));
        assert_eq!(command.last().map(String::as_str), Some("true"));
    }

    #[test]
    fn only_the_proxy_is_reached() {
        let view = || View::Roots { session_dir: "/s".into(), programs: vec![] };
        let without = Seatbelt::of(&spec(view()), 4711).unwrap();
        assert!(!without.profile.contains("network"), "{}", without.profile);
        let with = Seatbelt::of(&Spec { network: NetworkAccess::Proxied, ..spec(view()) }, 4711).unwrap();
        let rule =
            "(allow network-outbound (remote tcp (string-append \"localhost:\" (param \"PROXY_PORT\"))))\n";
        assert_eq!(with.profile, format!("{}{rule}", without.profile));
        assert_eq!(with.parameters.last(), Some(&("PROXY_PORT".to_owned(), "4711".to_owned())));
    }

    #[test]
    fn what_is_closed_is_not_written_whatever_is_granted_around_it() {
        let mounts = vec![Mount::new("/p", MountAccess::ReadWrite)];
        let spec = Spec { mounts, ..spec(View::Roots { session_dir: "/s".into(), programs: vec![] }) };
        let open = Seatbelt::of(&spec, 0).unwrap();
        let closed = Seatbelt::of(&Spec { closed: vec!["/p/.git/hooks".into()], ..spec }, 0).unwrap();
        let more = closed.profile.strip_prefix(&open.profile).unwrap();
        assert!(more.starts_with("(deny file-write* file-link (subpath (param \"CLOSED_0\")))\n"), "{more}");
        assert!(closed.parameters.contains(&("CLOSED_0".to_owned(), "/p/.git/hooks".to_owned())));
    }

    fn owned(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn spec(view: View) -> Spec {
        let view = serde_json::to_value(view).unwrap();
        let spec = serde_json::json!({ "argv": ["true"], "env": {}, "view": view, "stateDir": "/state" });
        serde_json::from_value(spec).unwrap()
    }
}
