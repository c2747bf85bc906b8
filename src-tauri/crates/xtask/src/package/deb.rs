//! Builds the Debian package with `dpkg-deb`.

use super::tree::{mode, write};
use super::{MAINTAINER, Making, NAME, SUMMARY, ours, quietly, size};
use std::path::{Path, PathBuf};

/// Dependencies of the Debian package.
const DEPENDS: &str = "bubblewrap, libayatana-appindicator3-1, libc6 (>= 2.34), libdbus-1-3, libgcc-s1, libgtk-3-0, \
                       libwebkit2gtk-4.1-0";

/// Files that only the Debian package contains, with their destinations.
const OWN_FILES: [(&str, &str); 2] = [
    ("deb-copyright", "usr/share/doc/ironcurtain/copyright"),
    ("deb-overrides", "usr/share/lintian/overrides/ironcurtain"),
];

/// Path of the compressed changelog in Debian's format.
const CHANGES: &str = "usr/share/doc/ironcurtain/changelog.Debian";

/// Builds the package from a copy of the tree.
pub(super) fn make(making: &Making<'_>, tree: &Path) -> anyhow::Result<PathBuf> {
    let own = making.folder.join("deb");
    quietly(making.tool("cp").arg("-a").arg(tree).arg(&own))?;
    let made = pack(making, &own)?;
    std::fs::remove_dir_all(own)?;
    Ok(made)
}

fn pack(making: &Making<'_>, tree: &Path) -> anyhow::Result<PathBuf> {
    for (from, to) in OWN_FILES {
        write(&tree.join(to), &ours(&format!("src-tauri/linux/{from}"))?)?;
    }
    let version = format!("{}-1", making.version);
    let date = quietly(making.tool("date").args(["--rfc-email", "--date", &format!("@{}", making.moment)]))?;
    let changes = format!(
        "{NAME} ({version}) unstable; urgency=medium\n\n  * {} says what changed.\n\n -- {MAINTAINER}  {}\n",
        "/usr/share/doc/ironcurtain/changelog.gz",
        date.trim(),
    );
    write(&tree.join(CHANGES), &changes)?;
    super::tree::pack(making, &tree.join(CHANGES))?;
    super::tree::folders(tree)?;
    let control = tree.join("DEBIAN");
    let architecture = quietly(making.tool("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let kilobytes = size(tree)?.div_ceil(1024);
    let facts = format!(
        "Package: {NAME}\nVersion: {}\nArchitecture: {architecture}\nMaintainer: {MAINTAINER}\n\
         Installed-Size: {kilobytes}\nDepends: {DEPENDS}\nRecommends: gnome-keyring | kwalletmanager\nSection: utils\n\
         Priority: optional\nHomepage: {}\nDescription: {SUMMARY}\n \
         A tray app that stands between AI agents and your files: each call of a\n \
         tool is judged by your policy, asked about where it matters, and done in a\n sandbox.\n",
        version,
        env!("CARGO_PKG_REPOSITORY"),
    );
    let sums = quietly(
        making
            .tool("sh")
            .current_dir(tree)
            .args(["-ec", "find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum"]),
    )?;
    write(&control.join("control"), &facts)?;
    write(&control.join("md5sums"), &sums)?;
    for (name, script) in [("postinst", "after-install.sh"), ("postrm", "after-remove.sh")] {
        write(&control.join(name), &ours(&format!("src-tauri/linux/{script}"))?)?;
        mode(&control.join(name), 0o755)?;
    }
    mode(&control, 0o755)?;
    let package = making.folder.join(format!("{NAME}_{version}_{architecture}.deb"));
    let pressed: &[&str] = if making.is_release { &["-Zxz", "-z9"] } else { &["-Zgzip", "-z1"] };
    quietly(
        making
            .tool("dpkg-deb")
            .args(["--root-owner-group", "--threads-max=1"])
            .args(pressed)
            .arg("--build")
            .arg(tree)
            .arg(&package),
    )?;
    Ok(package)
}
