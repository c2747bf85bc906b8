//! Determines which parts of the host's file system a sandbox shows, once per launch.
//!
//! - The roots view shows only the fixed paths below, which belong to the system rather than to the user.

use std::{fs, io, path::Path};

use crate::spec::View;

/// Host paths from which a sandbox's file system is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostTree {
    /// Shown entries of the host's root directory: system directories such as `/bin`, or all entries.
    pub(crate) root_entries: Vec<(String, RootEntry)>,
    /// Paths below `/etc` that programs need, for the roots view.
    pub(crate) etc: Vec<String>,
    /// Files in `/proc` to hide, because they describe or change the machine.
    pub(crate) masked: Vec<String>,
    /// Directories in `/proc` to make read-only.
    pub(crate) read_only_paths: Vec<String>,
}

/// Kind of an entry in the root directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum RootEntry {
    /// Symlink with this target. On most current systems, `/bin` and similar paths link into `/usr`.
    Link(String),
    /// Directory or, rarely, a file.
    Present,
}

const SYSTEM_DIRS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Directories in which some distributions keep programs and libraries outside `/usr`.
const STORES: &[&str] = &["/nix", "/gnu"];

/// Parts of `/sys` about processors and memory pages, which programs need. The rest is hidden, because it describes
/// the machine and its network, even in a separate network namespace.
const SYS: &[&str] = &["/sys/devices/system", "/sys/kernel/mm"];

/// Names the DNS servers. A sandbox with a TUN device has its own.
pub(crate) const RESOLVER_FILE: &str = "/etc/resolv.conf";
/// Contains addresses of names. A sandbox with a TUN device has its own.
pub(crate) const HOSTS_FILE: &str = "/etc/hosts";

const ETC: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    HOSTS_FILE,
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    RESOLVER_FILE,
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
];

/// Files in `/etc` for shells and command-line tools, shown to runs in addition to [`ETC`].
const ETC_OF_RUNS: &[&str] = &[
    "/etc/bash.bashrc",
    "/etc/gai.conf",
    "/etc/gitconfig",
    "/etc/host.conf",
    "/etc/inputrc",
    "/etc/os-release",
    "/etc/profile",
    "/etc/profile.d",
    "/etc/protocols",
    "/etc/services",
    "/etc/timezone",
];

const MASKED: &[&str] = &[
    "/proc/interrupts",
    "/proc/kallsyms",
    "/proc/kcore",
    "/proc/keys",
    "/proc/kmsg",
    "/proc/kpagecgroup",
    "/proc/kpagecount",
    "/proc/kpageflags",
    "/proc/latency_stats",
    "/proc/mtrr",
    "/proc/sched_debug",
    "/proc/slabinfo",
    "/proc/timer_list",
    "/proc/vmallocinfo",
];
/// File that is masked even for ordinary users. Keyrings are not namespaced, so the file lists the host's keyrings.
const MASKED_FOR_USERS: &[&str] = &["/proc/keys"];

const READ_ONLY: &[&str] = &[
    "/proc/acpi",
    "/proc/asound",
    "/proc/bus",
    "/proc/driver",
    "/proc/fs",
    "/proc/irq",
    "/proc/scsi",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

impl HostTree {
    /// Inspects this machine for a sandbox with this view, and possibly a TUN device.
    pub(crate) fn inspect(is_root: bool, view: &View, has_tun: bool) -> io::Result<Self> {
        let root_entries = match view {
            View::Roots { .. } | View::Served { .. } => Self::system_entries(),
            View::HostRead { private_tmp, .. } => Self::all_entries(*private_tmp)?,
        };
        // For ordinary users, file modes protect these paths. Root bypasses file modes.
        let existing_if_root = |list: &[&str]| if is_root { existing(list) } else { vec![] };
        let masked = existing(if is_root { MASKED } else { MASKED_FOR_USERS });
        let mut etc = match view {
            View::Roots { .. } => existing(ETC),
            View::Served { .. } => existing(&[ETC, ETC_OF_RUNS].concat()),
            View::HostRead { .. } => vec![],
        };
        etc.retain(|path| !has_tun || ![RESOLVER_FILE, HOSTS_FILE].contains(&path.as_str()));
        Ok(Self { root_entries, etc, masked, read_only_paths: existing_if_root(READ_ONLY) })
    }

    /// Returns the entries that must be mounted before the sandbox's first program runs.
    pub(crate) fn frame(&self) -> impl Iterator<Item = &(String, RootEntry)> {
        self.root_entries.iter().filter(|top| is_frame(top))
    }

    /// Returns the paths of the remaining entries, which are mounted after the frame.
    pub(crate) fn rest(&self) -> impl Iterator<Item = &String> {
        self.root_entries.iter().filter(|top| !is_frame(top)).map(|(path, _)| path)
    }

    fn system_entries() -> Vec<(String, RootEntry)> {
        let root_entries = ["/usr"]
            .iter()
            .chain(SYSTEM_DIRS)
            .filter_map(|path| Some(((*path).to_owned(), RootEntry::at(Path::new(path))?)));
        root_entries.collect()
    }

    fn all_entries(private_tmp: bool) -> io::Result<Vec<(String, RootEntry)>> {
        let mut root_entries = Vec::new();
        for entry in fs::read_dir("/")? {
            // No program uses top-level names that are not UTF-8.
            let Ok(name) = entry?.file_name().into_string() else { continue };
            if matches!(name.as_str(), "proc" | "dev" | "sys") || (private_tmp && name == "tmp") {
                continue;
            }
            let path = format!("/{name}");
            if let Some(top) = RootEntry::at(Path::new(&path)) {
                root_entries.push((path, top));
            }
        }
        root_entries.extend(existing(SYS).into_iter().map(|path| (path, RootEntry::Present)));
        root_entries.sort();
        Ok(root_entries)
    }
}

impl RootEntry {
    fn at(path: &Path) -> Option<Self> {
        if let Ok(target) = fs::read_link(path) {
            return target.to_str().map(|target| Self::Link(target.to_owned()));
        }
        path.exists().then_some(Self::Present)
    }
}

fn is_frame((path, top): &(String, RootEntry)) -> bool {
    *top != RootEntry::Present || path == "/usr" || [SYSTEM_DIRS, STORES].concat().contains(&path.as_str())
}

fn existing(paths: &[&str]) -> Vec<String> {
    paths.iter().filter(|path| Path::new(path).exists()).map(|path| (*path).to_owned()).collect()
}
