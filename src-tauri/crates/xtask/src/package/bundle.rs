//! Packages the shim as a bundle (`.mcpb`) for desktop clients. Users install IronCurtain itself separately, and then
//! open the bundle in their client.

use super::tree::{copy, mode, write};
use super::{Making, NAME, ours, quietly};
use crate::{cargo, parts};
use std::path::PathBuf;

/// Name of the shim program.
const SHIM: &str = "ironcurtain-shim";

/// Builds the bundle. Returns its path.
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
    // All files get a fixed timestamp and no owner.
    let script = "find . -exec touch -d \"@$1\" {} + ; find . -type f | LC_ALL=C sort | zip -q -X -@ \"$2\"";
    quietly(making.tool("sh").current_dir(&tree).args(["-ec", script, "sh", &making.moment]).arg(&bundle))?;
    std::fs::remove_dir_all(tree)?;
    Ok(bundle)
}
