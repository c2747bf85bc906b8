//! The parts of this repository, and where it is.

use std::path::{Path, PathBuf};

/// The package that needs GTK and a display.
pub(crate) const APP: &str = "ironcurtain-desktop";

/// The packages of the programs that the app and the demo start, and that lie beside them.
pub(crate) const HELPERS: [&str; 4] =
    ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem", "ironcurtain-cli"];

/// The package whose examples are the demo and the benchmark.
pub(crate) const DAEMON: &str = "ironcurtain-daemon";

/// The package of the record, whose example times it.
pub(crate) const AUDIT: &str = "ironcurtain-audit";

/// The package whose example times the judge.
pub(crate) const POLICY: &str = "ironcurtain-policy";

/// The package of the sandbox, whose program has the same name.
pub(crate) const SANDBOX: &str = "ironcurtain-sandbox";

/// The checkout.
pub(crate) fn root() -> PathBuf {
    let here = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), PathBuf::from);
    here.ancestors().nth(3).map_or_else(|| here.clone(), Path::to_path_buf)
}
