//! A `managed.json` that a user could have changed stops the start, and the reason is named.

use super::Organization;
use crate::hostile;
use crate::machine::Machine;
use crate::world::is_root;
use ironcurtain_config::{Config, MANAGED_FILE};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::json;
use std::fs::{Permissions, rename, set_permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

const FOLDER: &str = "/etc/ironcurtain";

/// File of another user. Only root can create it, and only outside the namespace.
const OTHERS: &str = "/var/tmp/ic-managed-of-another-user.json";

#[test]
fn untrusted_file_is_named_and_stops_the_start() {
    if is_inside() {
        return refuses_untrusted_files();
    }
    if is_root() {
        std::fs::write(OTHERS, "{}").unwrap();
        chown(OTHERS, Some(12345), None).unwrap();
    }
    run_inside("managed::untrusted_file::untrusted_file_is_named_and_stops_the_start", &["--mount"]);
    if is_root() {
        std::fs::remove_file(OTHERS).unwrap();
    }
}

fn refuses_untrusted_files() {
    let organization = Organization::new();
    organization.manages_settings(&json!({}));
    let mut machine = Machine::new(hostile::install);
    let refused = |machine: &Machine, why: &str| {
        assert_eq!(Config::load(&machine.home).unwrap_err().to_string(), why);
        let daemon = machine.command(&["daemon", "--ask", "terminal", "--allow-root"]);
        let said = String::from_utf8_lossy(&daemon.stderr).into_owned();
        assert!(!daemon.status.success() && said.contains(why), "{said}");
    };
    let (real, real_folder) = (Path::new("/etc/ironcurtain/real.json"), Path::new("/etc/real"));

    rename(MANAGED_FILE, real).unwrap();
    symlink(real, MANAGED_FILE).unwrap();
    let link = "is refused: it is a symbolic link; replace the link with what it leads to";
    refused(&machine, &format!("`{MANAGED_FILE}` {link}"));
    rename(real, MANAGED_FILE).unwrap();
    symlink("/etc/ironcurtain/nothing.json", real).unwrap();
    rename(MANAGED_FILE, "/etc/kept.json").unwrap();
    rename(real, MANAGED_FILE).unwrap();
    refused(&machine, &format!("`{MANAGED_FILE}` {link}"));
    rename("/etc/kept.json", MANAGED_FILE).unwrap();

    rename(FOLDER, real_folder).unwrap();
    symlink(real_folder, FOLDER).unwrap();
    refused(&machine, &format!("`{FOLDER}` {link}"));
    std::fs::remove_file(FOLDER).unwrap();
    rename(real_folder, FOLDER).unwrap();

    let writable = "is refused: other users can write to it; run `chmod go-w` on it";
    for (path, open, closed) in [(FOLDER, 0o775, 0o755), (MANAGED_FILE, 0o646, 0o644)] {
        set_permissions(path, Permissions::from_mode(open)).unwrap();
        refused(&machine, &format!("`{path}` {writable}"));
        set_permissions(path, Permissions::from_mode(closed)).unwrap();
    }

    let of_another_user = |file: &PathBuf| file.metadata().is_ok_and(|found| found.uid() != 0);
    let others = [OTHERS, "/usr/bin/env"].map(PathBuf::from).into_iter().find(of_another_user).unwrap();
    mounts(&["--bind".as_ref(), others.as_path(), MANAGED_FILE.as_ref()], "mount");
    let owner = "is refused: it does not belong to root; run `chown root:root` on it";
    refused(&machine, &format!("`{MANAGED_FILE}` {owner}"));
    mounts(&[MANAGED_FILE.as_ref()], "umount");

    Config::load(&machine.home).unwrap();
    machine.start();
    machine.connect().plain("now").ok();
    machine.kill();
}

fn mounts(arguments: &[&Path], program: &str) {
    assert!(Command::new(program).args(arguments).status().unwrap().success());
}
