//! The .deb in a Debian that has nothing yet: installed with what it depends on, used, and taken out again.
//!
//! - For root on Debian, with a network; some minutes and 1.5 GB for as long as it takes.
//! - The demo is not in the package: it is put beside its programs for as long as it runs.

use super::{NAME, Packages, quietly};
use crate::process::{self, command};
use crate::terminal::{heading, say};
use crate::{parts, process::run};
use anyhow::ensure;
use std::fs;
use std::path::Path;

/// The Debian that it is tried in.
const RELEASE: &str = "bookworm";

/// Enters the root, with devices, processes and temporary folders of its own, and runs the rest of the words there. It is the root
/// of everything then: in one that was only changed to (`chroot`) the kernel makes no user namespaces.
const ENTER: &str = r#"
    cd "$0"; mount --bind . .; cd "$0"
    mount -t proc proc proc; mount --rbind /dev dev; mount -t tmpfs run run; mount -t tmpfs tmp tmp
    cp -L /etc/resolv.conf etc/resolv.conf; cp "$1" tmp/package.deb; shift
    mkdir -p .old; pivot_root . .old; umount -l /.old; rmdir /.old
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI=true DEBIAN_FRONTEND=noninteractive "$@""#;

/// Does all of it. `demo` is the demo as it was built.
pub(super) fn prove(packages: &Packages, demo: &Path) -> anyhow::Result<()> {
    let root = parts::root().join("target/clean-root");
    remove(&root)?;
    heading("A Debian that has nothing yet")?;
    quietly(command("debootstrap").args(["--variant=minbase", RELEASE]).arg(&root))?;
    let done = used(packages, demo, &root);
    remove(&root)?;
    done
}

fn used(packages: &Packages, demo: &Path, root: &Path) -> anyhow::Result<()> {
    let inside = |words: &[&str]| {
        let mut enter = command("unshare");
        enter.args(["--mount", "--pid", "--fork", "--propagation", "private", "sh", "-ec", ENTER]);
        enter.arg(root).arg(&packages.deb).args(words);
        enter
    };
    heading("The package in it")?;
    let install = "apt-get update -q && apt-get install -y -q --no-install-recommends /tmp/package.deb";
    quietly(&mut inside(&["sh", "-ec", install]))?;
    say(&quietly(&mut inside(&[NAME, "--version"]))?)?;
    let examples = root.join("usr/bin/examples");
    fs::create_dir(&examples)?;
    fs::copy(demo, examples.join("demo"))?;
    run(&mut inside(&["/usr/bin/examples/demo", "--answer", "allow"]))?;
    fs::remove_dir_all(&examples)?;
    quietly(&mut inside(&["apt-get", "purge", "-y", "-q", NAME]))?;
    let find = ["find", "/", "-xdev", "-iname", "*ironcurtain*"];
    let left = process::answer(&mut inside(&find)).unwrap_or_else(|| "what cannot be looked for".to_owned());
    ensure!(left.is_empty(), "taken out again, it leaves: {left}");
    say("Taken out again, it leaves nothing.")
}

fn remove(root: &Path) -> anyhow::Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    Ok(())
}
