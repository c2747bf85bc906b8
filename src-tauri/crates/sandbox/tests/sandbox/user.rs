//! Runs the suite again as an ordinary user if root runs it.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    process::Command,
};

use ironcurtain_sandbox::PROXY_PROGRAM;

use crate::harness::{PROGRAMS, USER, launcher, probe, supervisor, tool};

#[test]
fn tests_pass_as_an_ordinary_user() {
    if !rustix::process::getuid().is_root() {
        // The other tests have already run as an ordinary user.
        return;
    }
    let copies = tempfile::Builder::new().prefix("sb").tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(copies.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let own = std::env::current_exe().unwrap();
    let proxy = supervisor().with_file_name(PROXY_PROGRAM);
    let tools = [tool("pjdfstest"), tool("fsx")];
    let programs = [own.clone(), supervisor(), proxy, probe().into(), launcher()];
    for program in programs.iter().chain(&tools) {
        fs::copy(program, copies.path().join(program.file_name().unwrap())).unwrap();
    }
    let fixture = copies.path().join("tmp");
    fs::create_dir(&fixture).unwrap();
    chown(&fixture, Some(USER), Some(USER)).unwrap();

    let id = USER.to_string();
    let run = Command::new("setpriv")
        .args(["--reuid", &id, "--regid", &id, "--clear-groups", "--"])
        .arg(copies.path().join(own.file_name().unwrap()))
        .args(["--skip", "tests_pass_as_an_ordinary_user"])
        .env(PROGRAMS, copies.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&run.stdout);
    // The results of passed tests would hide the failures in a shortened output.
    let failures = output.split_once("\nfailures:\n").map_or(&*output, |(_, failures)| failures);
    assert!(run.status.success(), "{failures}\n{}", String::from_utf8_lossy(&run.stderr));
    assert!(output.contains("killing_the_launcher_at_any_time_leaves_nothing ... ok"), "{output}");
}
