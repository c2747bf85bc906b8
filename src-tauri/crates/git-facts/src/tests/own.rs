//! Tests that run in their own process, because they set git's environment variables.

use super::*;

/// Environment variable set in the child process.
const INSIDE: &str = "IRONCURTAIN_TEST_OF_GIT";

/// Hosts that the configuration files redirect, one per file.
const HOSTS: [&str; 5] = ["machine", "usual", "base", "own", "global"];

/// Names and values of environment variables.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Writes a configuration file that redirects `host:` to an address identifying the file.
fn leads(user: &TestUser, file: &str, host: &str) {
    user.file(file, &format!("[url \"https://{host}.example/\"]\n\tinsteadOf = {host}:\n"));
}

#[test]
fn variables_name_the_files_of_the_machine_and_the_user() {
    if std::env::var_os(INSIDE).is_some() {
        return query_remote();
    }
    let user = TestUser::new();
    let urls: String = HOSTS.iter().map(|host| format!("\turl = {host}:x\n")).collect();
    user.config(&format!("[remote \"origin\"]\n{urls}"));
    leads(&user, "machine", "machine");
    leads(&user, ".config/git/config", "usual");
    leads(&user, "base/git/config", "base");
    leads(&user, ".gitconfig", "own");
    leads(&user, "global", "global");
    let at = |below: &str| user.path(below).to_string();
    let (machine, base, global) = (at("machine"), at("base"), at("global"));
    let machine = ("GIT_CONFIG_SYSTEM", machine.as_str());
    let no_machine = ("GIT_CONFIG_NOSYSTEM", "1");
    let all: [(Variables<'_>, &[&str]); 5] = [
        (&[], &["machine", "usual", "own"]),
        (&[("XDG_CONFIG_HOME", "")], &["machine", "usual", "own"]),
        (&[("XDG_CONFIG_HOME", &base)], &["machine", "base", "own"]),
        (&[("XDG_CONFIG_HOME", &base), ("GIT_CONFIG_GLOBAL", &global)], &["machine", "global"]),
        (&[no_machine], &["usual", "own"]),
    ];
    for (variables, known) in all {
        let mut expected = HOSTS.map(|host| address(host, known.contains(&host))).to_vec();
        let has_machine = !variables.contains(&no_machine);
        let variables = variables.iter().copied().chain([machine]);
        let mut git = Command::new("git");
        git.args(["remote", "get-url", "--all", "origin"]).current_dir(user.path("repo").as_path());
        let of_git = clean(&mut git, &user).envs(variables.clone()).output().unwrap();
        assert_eq!(String::from_utf8(of_git.stdout).unwrap().lines().collect::<Vec<_>>(), expected);
        if !has_machine {
            // The server's environment may lack the variable, so both addresses are reported.
            let (with, without) = (address("machine", true), std::mem::take(&mut expected[0]));
            expected[0] = with;
            expected.push(without);
        }
        rerun("variables_name_the_files_of_the_machine_and_the_user", |again| {
            clean(again, &user).envs(variables).env(INSIDE, expected.join(" "));
        });
    }
}

#[test]
fn limits_apply_before_output_is_read() {
    if std::env::var_os(INSIDE).is_some() {
        return query_remote();
    }
    let user = TestUser::new();
    user.config(parts::ORIGIN);
    let (wrote, folders) = (user.path("wrote"), std::env::var("PATH").unwrap());
    // The script succeeds only after the limits are set.
    let bounds = "[ \"$(ulimit -f) $(ulimit -c) $(ulimit -v)\" = '0 0 524288' ]";
    let script = format!(
        "#!/bin/sh\nuntil {bounds}; do :; done\n(echo x > {wrote})\nPATH='{folders}' exec git \"$@\"\n"
    );
    user.program("bin/git", &script);
    let path = format!("{}:{folders}", user.path("bin"));
    rerun("limits_apply_before_output_is_read", |again| {
        clean(again, &user).env("PATH", &path).env(INSIDE, parts::GITHUB);
    });
    assert_eq!(std::fs::read_to_string(wrote.as_path()).unwrap(), "", "it cannot write files");
}

/// Runs one of this file's tests in a new process.
#[track_caller]
fn rerun(test: &str, prepare: impl FnOnce(&mut Command)) {
    let (_, module) = module_path!().split_once("::").unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    prepare(again.args(["--exact", &format!("{module}::{test}"), "--nocapture"]));
    let output = again.output().unwrap();
    let output_text = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && output_text.contains("1 passed"), "{output_text}\n{complained}");
}

fn address(host: &str, is_known: bool) -> String {
    if is_known { format!("https://{host}.example/x") } else { format!("{host}:x") }
}

/// Removes git's variables from a command and sets the user's home directory.
fn clean<'a>(command: &'a mut Command, user: &TestUser) -> &'a mut Command {
    for name in ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"] {
        command.env_remove(name);
    }
    command.env("HOME", user.path("").as_path())
}

/// Prints addresses determined with the process's own home directory.
fn query_remote() {
    let home = CanonicalPath::assume_canonical(&std::env::var("HOME").unwrap()).unwrap();
    let question = RemoteQuery {
        repositories: vec![home.join("repo").unwrap()],
        remote_use: RemoteUse::Fetch,
        values: vec![(0, Some("origin".to_owned()))],
    };
    let answer = question.resolve_addresses(&GitContext { home, in_sandbox: false }, &|_| true);
    let [(0, Fact::Remotes(all))] = answer.as_slice() else { panic!("{answer:?}") };
    assert_eq!(all.join(" "), std::env::var(INSIDE).unwrap());
}
