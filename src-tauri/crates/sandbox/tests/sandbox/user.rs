//! The same, as an ordinary user: when the suite is run by root, it runs itself again without that.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::Command,
};

use ironcurtain_sandbox::PROXY_PROGRAM;

use crate::harness::{PROGRAMS, launcher, probe, supervisor};

/// No such user need exist.
const USER: u32 = 64_321;

#[test]
fn everything_holds_for_an_ordinary_user_too() {
    if !rustix::process::getuid().is_root() {
        // Then every other test of this suite has just shown it.
        return;
    }
    let copies = tempfile::Builder::new().prefix("sb").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(copies.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let own = std::env::current_exe().unwrap();
    let proxy = supervisor().with_file_name(PROXY_PROGRAM);
    for program in [own.as_path(), &supervisor(), &proxy, Path::new(&probe()), &launcher()] {
        fs::copy(program, copies.path().join(program.file_name().unwrap())).unwrap();
    }
    let place = copies.path().join("tmp");
    fs::create_dir(&place).unwrap();
    chown(&place, Some(USER), Some(USER)).unwrap();

    let id = USER.to_string();
    let run = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
        .arg(copies.path().join(own.file_name().unwrap()))
        .args(["--skip", "everything_holds_for_an_ordinary_user_too"])
        .env(PROGRAMS, copies.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("killing_the_launching_process_at_any_instant_leaves_nothing ... ok"), "{said}");
}
