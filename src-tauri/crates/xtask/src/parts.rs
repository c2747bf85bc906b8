//! Names of the packages in this repository, and the location of the checkout.

use std::path::{Path, PathBuf};

/// Package that needs GTK and a display.
pub(crate) const APP: &str = "ironcurtain-desktop";

/// Packages of the programs that the app and the demo start and expect in their own directory.
pub(crate) const HELPERS: [&str; 4] =
    ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem", "ironcurtain-cli"];

/// Package whose examples are the demo and the benchmark.
pub(crate) const DAEMON: &str = "ironcurtain-daemon";

/// Package whose example measures the audit log.
pub(crate) const AUDIT: &str = "ironcurtain-audit";

/// Package whose example simulates many desktops.
pub(crate) const EXPORT: &str = "ironcurtain-export";

/// Package whose example measures policy decisions.
pub(crate) const POLICY: &str = "ironcurtain-policy";

/// Package of the sandbox, which shares its name with the program.
pub(crate) const SANDBOX: &str = "ironcurtain-sandbox";

/// Returns the root of the checkout.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.ancestors().nth(3).map_or_else(|| here.clone(), Path::to_path_buf)
}
