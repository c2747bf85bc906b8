//! Creates the file tree from which the packages are built.

use super::{Making, NAME, ours, quietly};
use crate::{cargo, parts, process};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Programs in the packages.
pub(super) const PROGRAMS: [&str; 6] = [
    "ironcurtain",
    "ironcurtain-desktop",
    "ironcurtain-filesystem",
    "ironcurtain-sandbox",
    "ironcurtain-sandbox-proxy",
    "ironcurtain-shim",
];

/// Programs that are usually started by other programs, each with the text for its manual page.
const STARTED: [(&str, &str, &str); 5] = [
    (
        "ironcurtain-desktop",
        "the IronCurtain app",
        "Started from the menu. Shows the panel icon, approval dialogs and the window.",
    ),
    ("ironcurtain-filesystem", "the MCP server for files", "Started by IronCurtain, in a sandbox."),
    (
        "ironcurtain-sandbox",
        "one sandbox",
        "Started by IronCurtain for each MCP server. It can also run a command with a settings file (--help).",
    ),
    ("ironcurtain-sandbox-proxy", "network proxy of one sandbox", "Started by ironcurtain-sandbox."),
    (
        "ironcurtain-shim",
        "connects agent clients to IronCurtain",
        "Started by agent clients: `ironcurtain clients connect` writes its entry.",
    ),
];

/// Files of the checkout, each with its destination in the tree.
const FILES: [(&str, &str); 8] = [
    ("src-tauri/linux/ironcurtain.desktop", "usr/share/applications/io.github.ironcurtain-desktop.desktop"),
    ("src-tauri/linux/ironcurtain.service", "usr/lib/systemd/user/ironcurtain.service"),
    ("src-tauri/linux/ironcurtain.dbus", "usr/share/dbus-1/services/io.github.ironcurtain-desktop.service"),
    ("src-tauri/linux/ironcurtain-sandbox.apparmor", "usr/share/ironcurtain/ironcurtain-sandbox.apparmor"),
    ("icons/32x32.png", "usr/share/icons/hicolor/32x32/apps/io.github.ironcurtain-desktop.png"),
    ("icons/128x128.png", "usr/share/icons/hicolor/128x128/apps/io.github.ironcurtain-desktop.png"),
    ("icons/app.svg", "usr/share/icons/hicolor/scalable/apps/io.github.ironcurtain-desktop.svg"),
    ("LICENSE", "usr/share/doc/ironcurtain/copyright"),
];

/// Shells and the paths of their completion scripts.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/ironcurtain"),
    ("zsh", "usr/share/zsh/site-functions/_ironcurtain"),
    ("fish", "usr/share/fish/vendor_completions.d/ironcurtain.fish"),
];

/// Creates the tree and returns its root folder. `parts` is the file with the bill of materials.
pub(super) fn lay(making: &Making<'_>, parts: &Path) -> anyhow::Result<PathBuf> {
    let root = making.folder.join("tree");
    for program in PROGRAMS {
        let to = root.join("usr/bin").join(program);
        copy(cargo::find(making.built, program)?, &to)?;
        quietly(making.tool("strip").arg("--strip-unneeded").arg(&to))?;
        mode(&to, 0o755)?;
    }
    for (from, to) in FILES {
        copy(&parts::root().join(from), &root.join(to))?;
    }
    let doc = root.join("usr/share/doc").join(NAME);
    copy(parts, &doc.join(format!("{NAME}.cdx.json")))?;
    write(&doc.join("changelog"), &ours("CHANGELOG.md")?)?;
    let command = cargo::find(making.built, NAME)?;
    let manual = root.join("usr/share/man/man1");
    fs::create_dir_all(&manual)?;
    quietly(process::command(&command.display().to_string()).arg("manual").arg(&manual))?;
    for (program, is, about) in STARTED {
        let text = format!(
            ".TH {program} 1 \"\" \"ironcurtain {}\"\n.SH NAME\n{program} \\- {is}\n.SH DESCRIPTION\n{about}\n\
             .SH SEE ALSO\n.BR ironcurtain (1)\n",
            making.version
        );
        write(&manual.join(format!("{program}.1")), &text.replace("--", "\\-\\-"))?;
    }
    for page in fs::read_dir(&manual)? {
        pack(making, &page?.path())?;
    }
    pack(making, &doc.join("changelog"))?;
    for (shell, to) in SHELLS {
        let text = quietly(process::command(&command.display().to_string()).args(["completions", shell]))?;
        write(&root.join(to), &text)?;
    }
    folders(&root)?;
    Ok(root)
}

/// Compresses a manual page or changelog without storing its name or a timestamp.
pub(super) fn pack(making: &Making<'_>, file: &Path) -> anyhow::Result<()> {
    quietly(making.tool("gzip").args(["-9", "-n", "-f"]).arg(file)).map(drop)
}

pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    write(to, "")?;
    fs::copy(from, to)?;
    mode(to, 0o644)
}

pub(super) fn write(to: &Path, text: &str) -> anyhow::Result<()> {
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(to, text)?;
    mode(to, 0o644)
}

pub(super) fn mode(path: &Path, mode: u32) -> anyhow::Result<()> {
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

/// Makes all folders readable for all users, regardless of the umask.
pub(super) fn folders(root: &Path) -> anyhow::Result<()> {
    mode(root, 0o755)?;
    for entry in fs::read_dir(root)? {
        let path = entry?.path();
        if path.is_dir() {
            folders(&path)?;
        } else if path.metadata()?.permissions().mode() & 0o111 == 0 {
            mode(&path, 0o644)?;
        }
    }
    Ok(())
}
