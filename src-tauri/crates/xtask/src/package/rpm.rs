//! Builds the Fedora package with `rpmbuild`.

use super::tree::write;
use super::{BUGS, MAINTAINER, Making, NAME, SUMMARY, ours, quietly};
use anyhow::Context;
use std::path::{Path, PathBuf};

/// Dependencies of the Fedora package.
const REQUIRES: [&str; 5] =
    ["bubblewrap", "dbus-libs", "gtk3", "libayatana-appindicator-gtk3", "webkit2gtk4.1"];

/// RPM macros that make the build reproducible and independent of this machine.
const SAME: [&str; 8] = [
    "_buildhost localhost",
    "_build_id_links none",
    "debug_package %{nil}",
    "__os_install_post %{nil}",
    "use_source_date_epoch_as_buildtime 1",
    "clamp_mtime_to_source_date_epoch 1",
    "build_mtime_policy clamp_to_source_date_epoch",
    "_rpmfilename %%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
];

/// Builds the package from the tree.
pub(super) fn make(making: &Making<'_>, tree: &Path) -> anyhow::Result<PathBuf> {
    let top = making.folder.join("rpm");
    let spec = top.join("ironcurtain.spec");
    let script = |name: &str| ours(&format!("src-tauri/linux/{name}")).map(|text| text.replace('%', "%%"));
    let requires: String = REQUIRES.iter().map(|name| format!("Requires: {name}\n")).collect();
    let text = format!(
        "Name: {NAME}\nVersion: {}\nRelease: 1\nSummary: {SUMMARY}\nLicense: Apache-2.0\nURL: {}\nPackager: {MAINTAINER}\nBugURL: {BUGS}\nAutoReqProv: no\n{requires}\n\
         %description\nA tray app that stands between AI agents and your files: each call of a tool is judged by your policy,\n\
         asked about where it matters, and done in a sandbox.\n\n\
         %install\nmkdir -p %{{buildroot}}\ncp -a '{}'/. %{{buildroot}}/\n\n\
         %post\n{}\n%postun\n{}\n%files\n{}",
        making.version,
        env!("CARGO_PKG_REPOSITORY"),
        tree.display(),
        script("after-install.sh")?,
        script("after-remove.sh")?,
        files(tree, tree)?,
    );
    write(&spec, &text)?;
    let pressed = if making.is_release { "w19.zstdio" } else { "w1.gzdio" };
    let mut rpmbuild = making.tool("rpmbuild");
    rpmbuild.args(["-bb", "--quiet", "--define"]).arg(format!("_topdir {}", top.display()));
    rpmbuild.arg("--define").arg(format!("_rpmdir {}", making.folder.display()));
    rpmbuild.arg("--define").arg(format!("_binary_payload {pressed}"));
    for line in SAME {
        rpmbuild.args(["--define", line]);
    }
    quietly(rpmbuild.arg(&spec))?;
    std::fs::remove_dir_all(top)?;
    let mut made = std::fs::read_dir(&making.folder)?.filter_map(|entry| Some(entry.ok()?.path()));
    made.find(|path| path.extension().is_some_and(|end| end == "rpm"))
        .context("`rpmbuild` created no package")
}

/// Lists the tree's files, one per line, without folders that belong to the distribution.
fn files(tree: &Path, folder: &Path) -> anyhow::Result<String> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    let mut lines = String::new();
    for path in entries {
        let relative = path.strip_prefix(tree)?.display();
        if !path.is_dir() {
            lines.push_str(&format!("%attr(-, root, root) \"/{relative}\"\n"));
            continue;
        }
        if path.file_name().is_some_and(|name| name == NAME) {
            lines.push_str(&format!("%dir %attr(0755, root, root) \"/{relative}\"\n"));
        }
        lines.push_str(&files(tree, &path)?);
    }
    Ok(lines)
}
