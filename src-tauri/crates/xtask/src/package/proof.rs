//! Checks that packages are reproducible and complete, and that removing them leaves no files behind.

use super::tree::PROGRAMS;
use super::{NAME, Packages, quietly};
use crate::parts;
use crate::process::{self, command};
use crate::totals::Totals;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Files in a package that are not programs.
const FILES: [&str; 12] = [
    "/usr/lib/systemd/user/ironcurtain.service",
    "/usr/share/applications/io.github.ironcurtain-desktop.desktop",
    "/usr/share/bash-completion/completions/ironcurtain",
    "/usr/share/dbus-1/services/io.github.ironcurtain-desktop.service",
    "/usr/share/doc/ironcurtain/changelog.gz",
    "/usr/share/doc/ironcurtain/copyright",
    "/usr/share/doc/ironcurtain/ironcurtain.cdx.json",
    "/usr/share/icons/hicolor/128x128/apps/io.github.ironcurtain-desktop.png",
    "/usr/share/ironcurtain/ironcurtain-sandbox.apparmor",
    "/usr/share/man/man1/ironcurtain-clients-connect.1.gz",
    "/usr/share/man/man1/ironcurtain-shim.1.gz",
    "/usr/share/zsh/site-functions/_ironcurtain",
];

/// Checks packages built twice from the same programs.
pub(super) fn compare(one: &Packages, two: &Packages) -> anyhow::Result<Totals> {
    let mut totals = Totals::default();
    let facts: [fn(&Packages, &Packages) -> anyhow::Result<()>; 6] =
        [same, complete, listed, bundled, installed, installed_by_rpm];
    for fact in facts {
        fact(one, two)?;
        totals.add(Totals::ONE_SUCCESS);
    }
    Ok(totals)
}

fn same(one: &Packages, two: &Packages) -> anyhow::Result<()> {
    for (one, two) in one.files().into_iter().zip(two.files()) {
        ensure!(fs::read(one)? == fs::read(two)?, "`{}` differs from the first build", two.display());
    }
    Ok(())
}

/// Checks that all files exist, belong to root and are writable only by root.
fn complete(packages: &Packages, _: &Packages) -> anyhow::Result<()> {
    let deb = quietly(command("dpkg-deb").arg("--contents").arg(&packages.deb))?;
    let rpm = quietly(command("rpm").args(["-qplv"]).arg(&packages.rpm))?;
    let programs = PROGRAMS.iter().map(|program| format!("/usr/bin/{program}"));
    for path in programs.chain(FILES.map(ToOwned::to_owned)) {
        ensure!(deb.lines().any(|line| line.ends_with(&format!(" .{path}"))), "the .deb has no `{path}`");
        ensure!(rpm.lines().any(|line| line.ends_with(&format!(" {path}"))), "the .rpm has no `{path}`");
    }
    for line in deb.lines() {
        let mode: Vec<char> = line.chars().take(10).collect();
        let others_write = [5, 8].iter().any(|at| mode.get(*at) == Some(&'w'));
        ensure!(line.contains(" root/root ") && !others_write, "in the .deb: {line}");
    }
    let others = rpm.lines().find(|line| !line.contains(" root "));
    ensure!(others.is_none(), "in the .rpm: {others:?}");
    let script = quietly(command("dpkg-deb").arg("--field").arg(&packages.deb).args(["Depends"]))?;
    ensure!(script.contains("bubblewrap"), "the .deb does not depend on bubblewrap");
    Ok(())
}

/// Checks that the bill of materials lists the project's packages and dependencies with their licences.
fn listed(packages: &Packages, _: &Packages) -> anyhow::Result<()> {
    let list: Value = serde_json::from_str(&fs::read_to_string(&packages.parts)?)?;
    let components = list
        .get("components")
        .and_then(Value::as_array)
        .context("the bill of materials has no components")?;
    for name in ["ironcurtain-daemon", "tokio", "rusqlite", "tauri"] {
        let one = components.iter().find(|one| one.get("name").is_some_and(|found| found == name));
        let one = one.with_context(|| format!("the bill of materials lacks `{name}`"))?;
        ensure!(one.get("licenses").is_some(), "`{name}` has no licence");
    }
    let tests_only = components.iter().any(|one| one.get("name").is_some_and(|name| name == "proptest"));
    ensure!(!tests_only, "the bill of materials includes test dependencies");
    Ok(())
}

/// Checks that the bundle format's own tool accepts the bundle, and that its shim runs.
fn bundled(packages: &Packages, _: &Packages) -> anyhow::Result<()> {
    let folder = packages.bundle.with_file_name("unpacked");
    let program = parts::root().join("target/clients/node_modules/@anthropic-ai/mcpb/dist/cli/cli.js");
    let mcpb = |doing: &str, what: &Path| {
        quietly(
            command("node").arg(&program).arg(doing).arg(what).args((doing == "unpack").then_some(&folder)),
        )
    };
    mcpb("unpack", &packages.bundle)?;
    let printed = mcpb("validate", &folder.join("manifest.json"))?;
    ensure!(printed.contains("passes"), "{printed}");
    let shim = folder.join("server/ironcurtain-shim");
    let version = process::answer(command(&shim.display().to_string()).arg("--version"));
    ensure!(
        version.context("the shim does not run")?.starts_with("ironcurtain-shim"),
        "the bundle contains another program"
    );
    Ok(())
}

/// Installs the `.deb` in an empty root with AppArmor rules for user namespaces, and checks that removing it leaves no
/// files behind.
fn installed(packages: &Packages, _: &Packages) -> anyhow::Result<()> {
    let root = packages.deb.with_file_name("root");
    for folder in ["var/lib/dpkg/info", "var/lib/dpkg/updates", "etc/apparmor.d/abi", "usr/bin", "tmp"] {
        fs::create_dir_all(root.join(folder))?;
    }
    fs::write(root.join("etc/apparmor.d/abi/4.0"), "")?;
    fs::write(root.join("var/lib/dpkg/status"), "")?;
    let before = files(&root)?;
    dpkg(&root, &["--install"], &packages.deb)?;
    let profile = root.join("etc/apparmor.d/ironcurtain-sandbox");
    ensure!(profile.is_file(), "installing does not add the AppArmor profile");
    let printed = quietly(command("readlink").arg("-e").arg(root.join("usr/bin/ironcurtain")))?;
    let version =
        process::answer(command(printed.trim()).arg("--version")).context("the program does not run")?;
    ensure!(version.starts_with(NAME), "unexpected version `{version}`");
    // An upgrade must keep the AppArmor profile.
    dpkg(&root, &["--install"], &packages.deb)?;
    ensure!(profile.is_file(), "an upgrade removes the AppArmor profile");
    dpkg(&root, &["--purge"], Path::new(NAME))?;
    let left: Vec<PathBuf> = files(&root)?.into_iter().filter(|file| !before.contains(file)).collect();
    ensure!(left.is_empty(), "removing leaves {left:?}");
    Ok(())
}

/// Installs the `.rpm` in an empty root, and checks that removing it leaves no files behind. Its scripts cannot run in
/// an empty root, but they equal those of the `.deb`, whose test runs them.
fn installed_by_rpm(packages: &Packages, _: &Packages) -> anyhow::Result<()> {
    let root = packages.rpm.with_file_name("rpm-root");
    fs::create_dir_all(&root)?;
    let rpm = |words: &[&str]| {
        let mut rpm = command("unshare");
        rpm.args(["--map-root-user", "rpm", "--dbpath=/db", "--nodeps", "--noscripts"]);
        quietly(rpm.arg(format!("--root={}", root.display())).args(words))
    };
    let package = packages.rpm.display().to_string();
    rpm(&["--install", &package])?;
    let version =
        process::answer(command(&root.join("usr/bin/ironcurtain").display().to_string()).arg("--version"));
    ensure!(
        version.context("the program does not run")?.starts_with(NAME),
        "the .rpm contains another program"
    );
    rpm(&["--erase", NAME])?;
    fs::remove_dir_all(root.join("db"))?;
    let left: Vec<PathBuf> = files(&root)?.into_iter().filter(|path| !path.is_dir()).collect();
    ensure!(left.is_empty(), "removing leaves {left:?}");
    let scripts = quietly(command("rpm").args(["--query", "--package", "--scripts"]).arg(&packages.rpm))?;
    for name in ["after-install.sh", "after-remove.sh"] {
        let script = super::ours(&format!("src-tauri/linux/{name}"))?;
        ensure!(scripts.contains(script.trim_end()), "the .rpm has a different `{name}` script");
    }
    Ok(())
}

fn dpkg(root: &Path, doing: &[&str], what: &Path) -> anyhow::Result<()> {
    let mut dpkg = command("fakeroot");
    dpkg.arg("dpkg").arg(format!("--root={}", root.display()));
    dpkg.args(["--force-depends", "--force-not-root", "--force-bad-path", "--force-script-chrootless"]);
    dpkg.arg(format!("--log={}", root.join("tmp/log").display()));
    quietly(dpkg.args(doing).arg(what)).map(drop)
}

/// Returns all files and folders except those of the package manager itself.
fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.ends_with("var/lib/dpkg") || path.ends_with("tmp") {
            continue;
        }
        if path.is_dir() {
            all.extend(files(&path)?);
        }
        all.push(path);
    }
    Ok(all)
}
