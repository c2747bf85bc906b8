//! The servers that tests compare ours with, and run behind it: pinned in `tests/package-lock.json`.

use crate::process::{self, command};
use crate::{parts, terminal};
use std::fs;

const FILES: [&str; 3] = ["package.json", "package-lock.json", ".npmrc"];

/// Installs them into `target/npm`, unless just these are there.
pub(crate) fn install() -> anyhow::Result<()> {
    let (from, to) = (parts::root().join("tests"), parts::root().join("target/npm"));
    let done = to.join("installed");
    let lock = fs::read(from.join("package-lock.json"))?;
    if fs::read(&done).is_ok_and(|installed| installed == lock) {
        return terminal::say("target/npm is up to date");
    }
    fs::create_dir_all(&to)?;
    for file in FILES {
        fs::copy(from.join(file), to.join(file))?;
    }
    process::run(command("npm").args(["ci", "--ignore-scripts", "--prefix", "target/npm"]))?;
    Ok(fs::write(done, lock)?)
}
