//! Installs the system packages that tasks need.
//!
//! - No package manager is started if all packages are installed.
//! - If packages cannot be installed automatically, the error contains the command to run.

mod packages;
mod sandboxes;

pub(crate) use packages::Purpose;

use crate::process;
use crate::terminal::{say, somebody_is_there};
use anyhow::bail;
use packages::Package;
use std::process::Command;

/// Package manager of the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manager {
    Apt,
    Dnf,
    Pacman,
    Unknown,
}

/// Installs the packages for these purposes and checks that they work.
pub(crate) fn prepare(purposes: &[Purpose]) -> anyhow::Result<()> {
    if cfg!(target_os = "linux") {
        let manager = manager();
        let missing: Vec<&Package> = packages::wanted(purposes).filter(|p| !is_there(p, manager)).collect();
        if !missing.is_empty() {
            install(manager, &missing)?;
        }
    }
    if purposes.contains(&Purpose::Sandbox) {
        sandboxes::must_work()?;
    }
    Ok(())
}

fn manager() -> Manager {
    let known = [("apt-get", Manager::Apt), ("dnf", Manager::Dnf), ("pacman", Manager::Pacman)];
    known
        .iter()
        .find(|(program, _)| process::exists(program))
        .map_or(Manager::Unknown, |(_, manager)| *manager)
}

/// Returns `true` if the package is installed according to its [`packages::Proof`].
fn is_there(package: &Package, manager: Manager) -> bool {
    if manager == Manager::Apt && installed_by_apt(package.apt) {
        return true;
    }
    match package.proof {
        packages::Proof::Program(program) => process::exists(program),
        packages::Proof::Module(_) if manager == Manager::Apt => false,
        packages::Proof::Module(module) => {
            process::answer(Command::new("pkg-config").args(["--exists", module])).is_some()
        }
        packages::Proof::Apt => manager != Manager::Apt,
    }
}

fn installed_by_apt(package: &str) -> bool {
    process::answer(Command::new("dpkg-query").args([
        "--show",
        "--showformat=${db:Status-Status}\n",
        package,
    ]))
    .is_some_and(|status| status.lines().any(|line| line == "installed"))
}

fn install(manager: Manager, missing: &[&Package]) -> anyhow::Result<()> {
    let line = command_line(manager, missing);
    if manager != Manager::Apt {
        bail!("system packages are missing; {line}");
    }
    let Some(prefix) = privilege() else {
        bail!("system packages are missing and installing them needs root; run: sudo {line}")
    };
    let mut refresh = prefix.clone();
    refresh.extend(["apt-get", "update", "-q"]);
    let mut words = prefix;
    words.extend(line.split(' '));
    for words in [refresh, words] {
        say(&format!("$ {}", words.join(" ")))?;
        let (program, arguments) = words.split_first().map_or(("true", [].as_slice()), |(p, a)| (*p, a));
        process::run(process::command(program).args(arguments).env("DEBIAN_FRONTEND", "noninteractive"))?;
    }
    Ok(())
}

/// Returns `true` in CI, where no user can be asked.
pub(crate) fn is_unattended() -> bool {
    std::env::var_os("CI").is_some_and(|v| !v.is_empty())
}

/// Returns the command prefix that grants root privileges, such as `sudo`, or `None` if this process cannot install
/// packages.
fn privilege() -> Option<Vec<&'static str>> {
    let user = process::answer(Command::new("id").arg("-u"));
    let unattended = is_unattended();
    // `sudo` resets the environment, so the variables for apt must come after it.
    match (user.as_deref().map(str::trim), process::exists("sudo")) {
        (Some("0"), _) => Some(vec![]),
        (_, true) if unattended => Some(vec!["sudo", "-n", "DEBIAN_FRONTEND=noninteractive"]),
        (_, true) if somebody_is_there() => Some(vec!["sudo", "DEBIAN_FRONTEND=noninteractive"]),
        _ => None,
    }
}

/// Returns the command with which the user can install the packages, or other instructions.
fn command_line(manager: Manager, missing: &[&Package]) -> String {
    let names = |name: fn(&Package) -> Option<&'static str>| {
        let known: Vec<&str> = missing.iter().filter_map(|p| name(p)).collect();
        let unknown: Vec<&str> = missing.iter().filter(|p| name(p).is_none()).map(|p| p.apt).collect();
        (known.join(" "), unknown.join(", "))
    };
    let other = |start: &str, (known, unknown): (String, String)| match (known.is_empty(), unknown.is_empty())
    {
        (false, true) => format!("run: {start} {known}"),
        (false, false) => {
            format!("run: {start} {known}; and install the equivalents of the Debian packages {unknown}")
        }
        (true, _) => format!("install the equivalents of the Debian packages {unknown}"),
    };
    match manager {
        Manager::Apt => format!("apt-get install -y -q --no-install-recommends {}", names(|p| Some(p.apt)).0),
        Manager::Dnf => other("sudo dnf install", names(|p| p.dnf)),
        Manager::Pacman => other("sudo pacman -S --needed", names(|p| p.pacman)),
        Manager::Unknown => other("", names(|_| None)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_line_can_be_typed() {
        let missing: Vec<&Package> = packages::wanted(&[Purpose::Compile, Purpose::Sandbox]).collect();
        assert_eq!(
            command_line(Manager::Apt, &missing),
            "apt-get install -y -q --no-install-recommends build-essential bubblewrap"
        );
        assert_eq!(command_line(Manager::Dnf, &missing), "run: sudo dnf install gcc bubblewrap");
        assert_eq!(
            command_line(Manager::Unknown, &missing),
            "install the equivalents of the Debian packages build-essential, bubblewrap"
        );
    }

    #[test]
    fn installed_packages_are_detected() {
        let shell = Package {
            apt: "no-such-package",
            dnf: None,
            pacman: None,
            proof: packages::Proof::Program("sh"),
        };
        let nothing = Package { proof: packages::Proof::Program("no-such-program"), ..shell };
        assert!(is_there(&shell, Manager::Apt));
        assert!(!is_there(&nothing, Manager::Apt));
        assert!(!is_there(&nothing, Manager::Unknown));
    }
}
