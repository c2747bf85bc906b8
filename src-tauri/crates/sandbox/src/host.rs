//! What of the host's system tree there is to show: found out once per launch, then a plain value.
//!
//! - Only names from the fixed lists below are looked at; nothing of the person's is among them.

use std::{fs, path::Path};

/// The parts of the host a sandbox is built from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Host {
    /// Whose sandbox it is.
    pub(crate) uid: u32,
    /// Their group.
    pub(crate) gid: u32,
    /// `/bin` and its like, as they are on the host.
    pub(crate) tops: Vec<(String, Top)>,
    /// Files and directories below `/etc` that programs need to run.
    pub(crate) etc: Vec<String>,
    /// Files of `/proc` that tell about, or change, the machine.
    pub(crate) masked: Vec<String>,
    /// Directories of `/proc` to be read-only.
    pub(crate) frozen: Vec<String>,
}

/// How a top-level entry is on the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Top {
    /// A symlink, nowadays mostly into `/usr`.
    Link(String),
    /// A directory of its own.
    Dir,
}

const TOPS: &[&str] = &["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

const ETC: &[&str] = &[
    "/etc/alternatives",
    "/etc/ca-certificates",
    "/etc/hosts",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/nsswitch.conf",
    "/etc/pki/ca-trust",
    "/etc/pki/tls/certs",
    "/etc/resolv.conf",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
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
const FROZEN: &[&str] = &[
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

impl Host {
    /// Looks at this machine.
    pub(crate) fn look(uid: u32, gid: u32) -> Self {
        let tops = TOPS.iter().filter_map(|path| Some(((*path).to_owned(), Top::of(Path::new(path))?)));
        // For an ordinary user the kernel's own file modes guard these; global root walks past modes.
        let guard = |list: &[&str]| if uid == 0 { existing(list) } else { vec![] };
        Self {
            uid,
            gid,
            tops: tops.collect(),
            etc: existing(ETC),
            masked: guard(MASKED),
            frozen: guard(FROZEN),
        }
    }
}

impl Top {
    fn of(path: &Path) -> Option<Self> {
        if let Ok(target) = fs::read_link(path) {
            return target.to_str().map(|target| Self::Link(target.to_owned()));
        }
        path.is_dir().then_some(Self::Dir)
    }
}

fn existing(paths: &[&str]) -> Vec<String> {
    paths.iter().filter(|path| Path::new(path).exists()).map(|path| (*path).to_owned()).collect()
}
