//! The shim as a bundle (`.mcpb`), which desktop clients install by opening it. IronCurtain itself is installed apart.

use super::tree::{copy, mode, write};
use super::{Making, NAME, ours, quietly};
use crate::{cargo, parts};
use std::path::PathBuf;

/// The shim, as it is called.
const SHIM: &str = "ironcurtain-shim";

/// Makes it.
pub(super) fn make(making: &Making<'_>) -> anyhow::Result<PathBuf> {
    let tree = making.folder.join("bundle");
    let manifest = ours("src-tauri/linux/bundle-manifest.json")?.replace("VERSION", &making.version);
    write(&tree.join("manifest.json"), &manifest)?;
    copy(&parts::root().join("icons/128x128.png"), &tree.join("icon.png"))?;
    let shim = tree.join("server").join(SHIM);
    copy(cargo::find(making.built, SHIM)?, &shim)?;
    quietly(making.tool("strip").arg("--strip-unneeded").arg(&shim))?;
    mode(&shim, 0o755)?;
    let bundle = making.folder.join(format!("{NAME}-{}.mcpb", making.version));
    // Without the time of this moment, and without whose the files are.
    let script = "find . -exec touch -d \"@$1\" {} + ; find . -type f | LC_ALL=C sort | zip -q -X -@ \"$2\"";
    quietly(making.tool("sh").current_dir(&tree).args(["-ec", script, "sh", &making.moment]).arg(&bundle))?;
    std::fs::remove_dir_all(tree)?;
    Ok(bundle)
}
