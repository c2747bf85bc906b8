//! Facts about this machine that affect sandboxing, and the missing requirements derived from them.

use std::fs;

use rustix::{process::getuid, system::uname};

use super::{Availability, bwrap_version, check_tun, describe_missing_tun};

/// Facts about a machine that affect sandboxing.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    root: bool,
    kernel: Option<(u32, u32)>,
    bwrap: Option<(u32, u32)>,
    /// `true` if `user.max_user_namespaces` is zero, or Debian's older setting disables user namespaces.
    namespaces_off: bool,
    /// `true` if AppArmor removes the privileges of user namespaces (Ubuntu).
    apparmor_restricts: bool,
    /// Reason there can be no TUN device, if any.
    no_tun: Option<String>,
    os_release: String,
}

const OLDEST_KERNEL: (u32, u32) = (5, 14);
const OLDEST_BWRAP: (u32, u32) = (0, 8);

impl Facts {
    /// Collects the facts about this machine.
    pub(super) fn find() -> Self {
        let setting = |path: &str| fs::read_to_string(path).ok().map(|text| text.trim().to_owned());
        let is = |path: &str, value: &str| setting(path).is_some_and(|found| found == value);
        Self {
            root: getuid().is_root(),
            kernel: uname().release().to_str().ok().and_then(version),
            bwrap: bwrap_version(),
            namespaces_off: is("/proc/sys/user/max_user_namespaces", "0")
                || is("/proc/sys/kernel/unprivileged_userns_clone", "0"),
            apparmor_restricts: is("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"),
            no_tun: check_tun().err().map(|error| error.to_string()),
            os_release: setting("/etc/os-release").unwrap_or_default(),
        }
    }

    /// Returns the requirements that this machine does not seem to meet, and the command that fixes the first one.
    pub(super) fn availability(&self) -> Availability {
        let mut missing = Vec::new();
        let mut fixes = Vec::new();
        let mut add_missing = |problem: String, fix: Option<&str>| {
            missing.push(problem);
            fixes.extend(fix.map(str::to_owned));
        };
        match self.bwrap {
            None => add_missing("bubblewrap is not installed".into(), self.install_bubblewrap()),
            Some(version) if version < OLDEST_BWRAP => {
                let (major, minor) = version;
                add_missing(
                    format!("bubblewrap {major}.{minor} is too old; version 0.8 or newer is required"),
                    self.install_bubblewrap(),
                );
            }
            Some(_) => {}
        }
        if let Some((major, minor)) = self.kernel.filter(|kernel| *kernel < OLDEST_KERNEL) {
            add_missing(format!("Linux {major}.{minor} is too old; version 5.14 or newer is required"), None);
        }
        if self.namespaces_off {
            let fix = "sudo sysctl -w user.max_user_namespaces=15000 kernel.unprivileged_userns_clone=1";
            add_missing("user namespaces are disabled on this system".into(), Some(fix));
        }
        if self.apparmor_restricts {
            // The AppArmor profile in the package applies only to the installed program.
            let fix = "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0";
            let problem = "AppArmor restricts user namespaces on this system, and no profile permits them for this program";
            add_missing(problem.into(), Some(fix));
        }
        let root = "running as root: only masks protect the kernel's own files, and the process limit is not enforced";
        let mut warnings = if self.root { vec![root.to_owned()] } else { vec![] };
        warnings.extend(self.no_tun.as_deref().map(describe_missing_tun));
        Availability { usable: false, missing, fix_command: fixes.into_iter().next(), warnings }
    }

    fn install_bubblewrap(&self) -> Option<&'static str> {
        let fields = self.os_release.lines().filter_map(|line| line.split_once('='));
        let ids = fields
            .filter(|(name, _)| matches!(*name, "ID" | "ID_LIKE"))
            .map(|(_, ids)| ids.trim_matches('"'));
        ids.flat_map(str::split_whitespace).find_map(|id| match id {
            "debian" | "ubuntu" => Some("sudo apt install bubblewrap"),
            "fedora" | "rhel" => Some("sudo dnf install bubblewrap"),
            "arch" => Some("sudo pacman -S bubblewrap"),
            "suse" | "opensuse" => Some("sudo zypper install bubblewrap"),
            "alpine" => Some("sudo apk add bubblewrap"),
            "void" => Some("sudo xbps-install bubblewrap"),
            "gentoo" => Some("sudo emerge sys-apps/bubblewrap"),
            _ => None,
        })
    }
}

/// Parses the major and minor version at the start of `text`.
pub(super) fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|character: char| !character.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suitable_machine_has_nothing_missing() {
        let nothing = Availability { usable: false, missing: vec![], fix_command: None, warnings: vec![] };
        assert_eq!(supported_machine().availability(), nothing);
        assert_eq!(Facts { root: true, ..supported_machine() }.availability().warnings.len(), 1);
        let without = Facts { no_tun: Some("`/dev/net/tun`: not found".into()), ..supported_machine() }
            .availability()
            .warnings;
        assert_eq!(
            without,
            ["programs that ignore the proxy variables have no network: `/dev/net/tun`: not found"]
        );
    }

    #[test]
    fn names_everything_missing_with_command_for_the_first() {
        let bad = Facts {
            bwrap: Some((0, 6)),
            kernel: Some((5, 10)),
            namespaces_off: true,
            apparmor_restricts: true,
            ..supported_machine()
        };
        let expected = Availability {
            usable: false,
            missing: vec![
                "bubblewrap 0.6 is too old; version 0.8 or newer is required".into(),
                "Linux 5.10 is too old; version 5.14 or newer is required".into(),
                "user namespaces are disabled on this system".into(),
                "AppArmor restricts user namespaces on this system, and no profile permits them for this program"
                    .into(),
            ],
            fix_command: Some("sudo apt install bubblewrap".into()),
            warnings: vec![],
        };
        assert_eq!(bad.availability(), expected);
    }

    #[test]
    fn install_command_matches_distribution() {
        let on = |os_release: &str| {
            Facts { bwrap: None, os_release: os_release.into(), ..supported_machine() }
                .availability()
                .fix_command
        };
        assert_eq!(on("ID=debian"), Some("sudo apt install bubblewrap".into()));
        assert_eq!(
            on("NAME=x\nID=rocky\nID_LIKE=\"rhel centos fedora\""),
            Some("sudo dnf install bubblewrap".into())
        );
        assert_eq!(
            on("ID=\"opensuse-tumbleweed\"\nID_LIKE=\"opensuse suse\""),
            Some("sudo zypper install bubblewrap".into())
        );
        assert_eq!(on("ID=nobody-knows"), None);
    }

    #[test]
    fn versions_are_read() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("0.8.0"), Some((0, 8)));
        assert_eq!(version("bubblewrap"), None);
    }

    fn supported_machine() -> Facts {
        Facts {
            root: false,
            kernel: Some((6, 1)),
            bwrap: Some((0, 8)),
            namespaces_off: false,
            apparmor_restricts: false,
            no_tun: None,
            os_release: "ID=ubuntu".into(),
        }
    }
}
