//! Tests the `.deb` in a minimal Debian system: installs it with its dependencies, uses it and removes it.
//!
//! - Requires root on Debian, network access, several minutes and 1.5 GB of temporary space.
//! - The demo, which is not part of the package, is copied next to the installed programs.

use super::{NAME, Packages, quietly};
use crate::process::{self, command};
use crate::terminal::{heading, say};
use crate::{parts, process::run};
use anyhow::ensure;
use std::fs;
use std::path::Path;

/// Debian release in which the package is tested.
const RELEASE: &str = "bookworm";

/// Shell script that enters the new root with its own devices, processes and temporary folders, and runs the remaining
/// arguments there. It uses `pivot_root`, because the kernel refuses to create user namespaces in a `chroot`.
const ENTER: &str = r#"
    cd "$0"; mount --bind . .; cd "$0"
    mount -t proc proc proc; mount --rbind /dev dev; mount -t tmpfs run run; mount -t tmpfs tmp tmp
    cp -L /etc/resolv.conf etc/resolv.conf; cp "$1" tmp/package.deb; shift
    mkdir -p .old; pivot_root . .old; umount -l /.old; rmdir /.old
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root CI=true DEBIAN_FRONTEND=noninteractive "$@""#;

/// Runs the test. `demo` is the path of the demo program.
pub(super) fn prove(packages: &Packages, demo: &Path) -> anyhow::Result<()> {
    let root = parts::root().join("target/clean-root");
    remove(&root)?;
    heading("Creating a bare Debian")?;
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
    heading("Installing the package in it")?;
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
    let left = process::answer(&mut inside(&find)).unwrap_or_else(|| "(search failed)".to_owned());
    ensure!(left.is_empty(), "removing the package leaves: {left}");
    say("Removing the package leaves nothing behind.")
}

fn remove(root: &Path) -> anyhow::Result<()> {
    if root.exists() {
        fs::remove_dir_all(root)?;
    }
    Ok(())
}
