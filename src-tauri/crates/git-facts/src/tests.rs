//! Tests with real repositories, compared with git's own results.

mod bounds;
mod differential;
mod finding;
mod hostile;
mod own;
mod parts;
mod user;
mod wire;

use super::*;
use std::process::Command;
use std::time::{Duration, Instant};
use user::TestUser;

#[test]
fn every_remote_leads_where_git_says() {
    let user = TestUser::new();
    user.file(".gitconfig", "[url \"ssh://git@forge.example/\"]\n\tinsteadOf = forge:\n\tpushInsteadOf = https://forge.example/\n");
    user.config(
        "[remote \"origin\"]\n\turl = https://github.com/acme/app.git\n\
         [remote \"up\"]\n\turl = gh:up/app\n\turl = https://forge.example/two\n\
         [remote \"split\"]\n\turl = https://github.com/a/b\n\tpushurl = gh:a/push\n\tpushurl = git@gitlab.com:a/b\n\
         [remote \"mine\"]\n\turl = forge:mine\n\
         [remote \"https://github.com/odd/name\"]\n\turl = https://evil.example/x\n\
         [url \"git@github.com:\"]\n\tinsteadOf = gh:\n\
         [url \"https://evil.example/\"]\n\tinsteadOf = https://github.com/evil/\n\tpushInsteadOf = https://push.example/\n",
    );
    let get_url = |arguments: &[&str]| -> Vec<String> {
        let output = user.git(&[&["-C", "repo"], arguments].concat());
        output.lines().map(str::to_owned).collect()
    };
    for name in ["origin", "up", "split", "mine", "https://github.com/odd/name"] {
        assert_eq!(user.fetch(Some(name)), get_url(&["remote", "get-url", "--all", name]), "{name}");
        assert_eq!(user.push(Some(name)), get_url(&["remote", "get-url", "--push", "--all", name]), "{name}");
    }
    for address in [
        "https://github.com/evil/x",
        "https://forge.example/y",
        "forge:z",
        "https://push.example/p",
        "nobody",
        "gh:q",
    ] {
        assert_eq!(user.fetch(Some(address)), get_url(&["ls-remote", "--get-url", address]), "{address}");
        // A temporary remote reveals how git interprets an address.
        get_url(&["remote", "add", "probe", address]);
        let pushed = get_url(&["remote", "get-url", "--push", "--all", "probe"]);
        get_url(&["remote", "remove", "probe"]);
        assert_eq!(user.push(Some(address)), pushed, "{address}");
    }
    let both = user.ask("repo", RemoteUse::Push, Some("mine"), true);
    assert_eq!(
        both,
        ["forge:mine", "ssh://git@forge.example/mine"],
        "the server may lack the user's settings"
    );
}

#[test]
fn without_a_name_it_is_gits_default_remote() {
    let user = TestUser::new();
    let remote = |name: &str| format!("[remote \"{name}\"]\n\turl = https://{name}.example/x\n");
    let url = |name: &str| vec![format!("https://{name}.example/x")];
    let none: Vec<String> = Vec::new();
    assert_eq!(user.push(None), none);
    user.config(&remote("up"));
    assert_eq!(user.fetch(None), url("up"), "the only one");
    let two = remote("up") + &remote("origin");
    user.config(&two);
    assert_eq!((user.fetch(None), user.push(None)), (url("origin"), url("origin")));
    let tracking = two.clone() + "[branch \"main\"]\n\tremote = up\n";
    user.config(&tracking);
    assert_eq!((user.fetch(None), user.push(None)), (url("up"), url("up")));
    user.config(&(tracking.clone() + "[remote]\n\tpushDefault = origin\n"));
    assert_eq!((user.fetch(None), user.push(None)), (url("up"), url("origin")));
    let push_remote = tracking.clone()
        + &remote("away")
        + "[remote]\n\tpushDefault = origin\n[branch \"main\"]\n\tpushRemote = away\n";
    user.config(&push_remote);
    assert_eq!((user.fetch(None), user.push(None)), (url("up"), url("away")));
    user.config(&(two.clone() + "[branch \"main\"]\n\tremote = gone\n"));
    assert_eq!(user.push(None), url("origin"), "a name without a remote is skipped");
    user.config(&(two.clone() + "[branch \"main\"]\n\tremote = https://direct.example/y\n"));
    assert_eq!(user.push(None), ["https://direct.example/y"]);
    user.config(&(two.clone() + "[fetch]\n\tall = true\n"));
    assert_eq!(user.fetch(None), [url("up"), url("origin")].concat());
    user.config(&(two + "[remotes]\n\torigin = up https://third.example/z\n"));
    let group = [url("up"), vec!["https://third.example/z".to_owned()], url("origin")].concat();
    assert_eq!(user.fetch(Some("origin")), group, "a group takes precedence over a remote of the same name");
}

#[test]
fn worktrees_bare_repositories_and_folders_below_are_found() {
    let user = TestUser::new();
    user.config("[remote \"origin\"]\n\turl = https://github.com/a/b\n");
    std::fs::create_dir_all(user.path("repo/deep/er").as_path()).unwrap();
    let found = |folder: &str| user.ask(folder, RemoteUse::Push, Some("origin"), false);
    assert_eq!(found("repo/deep/er"), ["https://github.com/a/b"]);
    user.commit("repo");
    user.git(&["-C", "repo", "worktree", "add", "-q", "-b", "side", "../side"]);
    assert_eq!(found("side"), ["https://github.com/a/b"]);
    user.git(&["init", "-q", "--bare", "bare.git"]);
    user.git(&["-C", "bare.git", "remote", "add", "origin", "https://github.com/bare/b"]);
    assert_eq!(found("bare.git"), ["https://github.com/bare/b"]);
    // Git itself evaluates conditional includes in the user's configuration.
    user.file(".gitconfig", "[includeIf \"gitdir:~/repo/\"]\n\tpath = ~/work.inc\n");
    user.file("work.inc", "[url \"ssh://work.example/\"]\n\tinsteadOf = https://github.com/\n");
    assert_eq!(found("repo"), ["ssh://work.example/a/b"]);
    assert_eq!(found("bare.git"), ["https://github.com/bare/b"]);
}

#[test]
fn the_source_of_a_partial_clones_missing_objects_counts_too() {
    let user = TestUser::new();
    let two = "[remote \"origin\"]\n\turl = https://github.com/a/b\n[remote \"far\"]\n\turl = https://far.example/x\n";
    let both = ["https://github.com/a/b", "https://far.example/x"];
    for (more, all) in [
        ("", &both[..1]),
        ("[remote \"far\"]\n\tpromisor = true\n", &both),
        ("[remote \"far\"]\n\tpartialCloneFilter = blob:none\n", &both),
        ("[extensions]\n\tpartialClone = far\n", &both),
        ("[remote \"origin\"]\n\tpromisor = true\n\tpartialCloneFilter = blob:none\n", &both[..1]),
    ] {
        user.config(&format!("{two}{more}"));
        assert_eq!(user.fetch(None), all, "{more}");
        assert_eq!(user.push(None), all, "{more}");
    }
}

#[test]
fn both_configuration_files_of_the_user_count() {
    let user = TestUser::new();
    user.config("[remote \"origin\"]\n\turl = one:a\n\turl = two:b\n");
    user.file(".gitconfig", "[url \"https://github.com/\"]\n\tinsteadOf = one:\n");
    user.file(".config/git/config", "[url \"https://forge.example/\"]\n\tinsteadOf = two:\n");
    let all = ["https://github.com/a", "https://forge.example/b"];
    assert_eq!(user.fetch(Some("origin")), all);
    assert_eq!(
        user.git(&["-C", "repo", "remote", "get-url", "--all", "origin"]).lines().collect::<Vec<_>>(),
        all
    );
    user.file(".config/git/config", "[includeIf \"hasconfig:remote.*.url:one:*\"]\n\tpath = ~/inc\n");
    user.is_unknown("the user's git configuration has includes that depend on a repository's remotes");
}

#[test]
fn a_submodule_is_the_repository_that_its_file_names() {
    let user = TestUser::new();
    std::fs::create_dir_all(user.path("repo/.git/modules").as_path()).unwrap();
    user.git(&["init", "-q", "-b", "main", "--separate-git-dir", "repo/.git/modules/sub", "repo/sub"]);
    user.file("repo/sub/.git", "gitdir: ../.git/modules/sub\n");
    user.git(&["-C", "repo/sub", "config", "core.worktree", "../../../sub"]);
    user.git(&["-C", "repo/sub", "remote", "add", "origin", "https://github.com/acme/sub"]);
    assert_eq!(user.ask("repo/sub", RemoteUse::Push, None, false), ["https://github.com/acme/sub"]);
    assert_eq!(user.git(&["-C", "repo/sub", "remote", "get-url", "origin"]), "https://github.com/acme/sub\n");
}

#[test]
fn a_repositorys_includes_count_where_they_may_be_read() {
    let user = TestUser::new();
    user.config("[remote \"origin\"]\n\turl = https://github.com/a/b\n[include]\n\tpath = ../shared\n");
    user.file("repo/shared", "[url \"https://evil.example/\"]\n\tinsteadOf = https://github.com/\n");
    assert_eq!(user.fetch(Some("origin")), ["https://evil.example/a/b"]);
    let shared = user.path("repo/shared");
    let all = user.ask_where("repo", RemoteUse::Fetch, Some("origin"), false, &|path| *path != shared);
    assert!(all[0].starts_with("(unknown: the repository's configuration is in a location"), "{all:?}");
    user.file("repo/shared", "[include]\n\tpath = shared\n");
    user.is_unknown("git cannot parse the repository's configuration");
    user.config("[include]\n\tpath = ~/home.inc\n[remote \"origin\"]\n\turl = https://github.com/a/b\n");
    user.file("home.inc", "[url \"https://home.example/\"]\n\tinsteadOf = https://github.com/\n");
    assert_eq!(user.fetch(Some("origin")), ["https://home.example/a/b"]);
    user.config("[includeIf \"onbranch:main\"]\n\tpath = ~/home.inc\n");
    user.is_unknown("the repository's configuration has conditional includes");
}

#[test]
fn a_repository_that_points_elsewhere_is_read_only_where_allowed() {
    let user = TestUser::new();
    user.git(&["init", "-q", "secret"]);
    user.git(&["-C", "secret", "remote", "add", "origin", "https://secret.example/x"]);
    std::fs::remove_dir_all(user.path("repo/.git").as_path()).unwrap();
    let (repo, secret) = (user.path("repo"), user.path("secret"));
    let outside = |path: &CanonicalPath| !secret.contains(path);
    let asked = |may_access: &dyn Fn(&CanonicalPath) -> bool| {
        user.ask_where("repo", RemoteUse::Push, None, false, may_access)
    };
    let refused = ["(unknown: the repository's configuration is in a location that may not be read)"];
    user.file("repo/.git", "gitdir: ../secret/.git\n");
    assert_eq!(asked(&outside), refused);
    assert_eq!(asked(&|_| true), ["https://secret.example/x"]);
    std::fs::remove_file(repo.join(".git").unwrap().as_path()).unwrap();
    std::os::unix::fs::symlink("../secret/.git", repo.join(".git").unwrap().as_path()).unwrap();
    assert_eq!(asked(&outside), refused);
    std::fs::remove_file(repo.join(".git").unwrap().as_path()).unwrap();
    user.git(&["init", "-q", "repo"]);
    let config = repo.join(".git/config").unwrap();
    std::fs::remove_file(config.as_path()).unwrap();
    std::os::unix::fs::symlink("../../secret/.git/config", config.as_path()).unwrap();
    assert_eq!(asked(&outside), refused);
    assert_eq!(asked(&|_| true), ["https://secret.example/x"]);
    std::fs::remove_dir_all(repo.join(".git").unwrap().as_path()).unwrap();
    user.git(&["init", "-q", "."]);
    user.git(&["remote", "add", "origin", "https://above.example/x"]);
    assert_eq!(asked(&|path| repo.contains(path)), refused, "the repository above is not the named one");
    assert_eq!(asked(&|_| true), ["https://above.example/x"]);
}

#[test]
fn hostile_configuration_runs_nothing_and_blocks_nothing() {
    let user = TestUser::new();
    let ran = user.path("ran");
    let script = user.path("evil");
    user.program("evil", &format!("#!/bin/sh\necho $0 >> {ran}\n"));
    let config = format!(
        "[core]\n\tfsmonitor = {script}\n\tpager = {script}\n\teditor = {script}\n\
         \taskPass = {script}\n\thooksPath = {hooks}\n\talternateRefsCommand = {script}\n\
         [credential]\n\thelper = !{script}\n[pager]\n\tconfig = {script}\n\tremote = {script}\n\
         [alias]\n\tconfig = !{script}\n\tremote = !{script}\n[filter \"x\"]\n\tclean = {script}\n\
         [gpg]\n\tprogram = {script}\n[diff]\n\texternal = {script}\n[trace2]\n\teventTarget = {ran}\n\
         [remote \"origin\"]\n\turl = https://github.com/a/b\n",
        hooks = user.path("hooks"),
    );
    user.config(&config);
    user.file("hooks/post-index-change", "#!/bin/sh\n");
    assert_eq!(user.push(Some("origin")), ["https://github.com/a/b"]);
    assert_eq!(user.ask("repo", RemoteUse::Either, None, true), ["https://github.com/a/b"]);
    user.config(&format!("{config}[core]\n\tsshCommand = {script}\n\tgitProxy = {script}\n"));
    user.is_unknown("the repository's configuration changes how git connects");
    assert!(!ran.as_path().exists(), "{}", std::fs::read_to_string(ran.as_path()).unwrap_or_default());
    // Running the script directly shows that it works.
    assert!(Command::new(script.as_path()).status().unwrap().success() && ran.as_path().exists());
}

#[test]
fn unusual_files_are_not_read() {
    let user = TestUser::new();
    let config = user.path("repo/.git/config");
    let not_plain = "the repository's configuration is not in regular files";
    for device in ["/dev/zero", "/dev/tty"] {
        user.config(&format!("[include]\n\tpath = {device}\n"));
        let all = user.ask_where("repo", RemoteUse::Push, None, true, &|_| true);
        assert_eq!(all, [format!("(unknown: {not_plain})")], "{device}");
    }
    std::fs::remove_file(config.as_path()).unwrap();
    assert!(Command::new("mkfifo").arg(config.as_path()).status().unwrap().success());
    user.is_unknown(not_plain);
    std::fs::remove_file(config.as_path()).unwrap();
    user.config(&"[remote \"origin\"]\n\turl = https://github.com/a/b\n".repeat(30_000));
    user.is_unknown("the repository's configuration is too large");
    user.config("[remote \"origin\"\n\turl = x\n");
    user.is_unknown("git cannot parse the repository's configuration");
    user.config("[remote \"origin\"]\n\turl = x\n\tvcs = ext\n");
    let all = user.push(Some("origin"));
    assert_eq!(all, ["(unknown: the remote uses a helper program)"]);
    user.config("[extensions]\n\trefStorage = reftable\n");
    user.is_unknown("not every version of git supports the repository's format");
}

#[test]
fn a_user_configuration_that_blocks_times_out() {
    let user = TestUser::new();
    user.config("[remote \"origin\"]\n\turl = https://github.com/a/b\n");
    let own = user.path(".gitconfig");
    assert!(Command::new("mkfifo").arg(own.as_path()).status().unwrap().success());
    let began = Instant::now();
    assert_eq!(user.push(Some("origin")), ["(unknown: git timed out)"]);
    assert!(began.elapsed() < Duration::from_secs(6), "{:?}", began.elapsed());
    std::fs::remove_file(own.as_path()).unwrap();
    assert_eq!(user.push(Some("origin")), ["https://github.com/a/b"]);
}

#[test]
fn secrets_in_addresses_are_not_passed_on() {
    let display = |address: &str| address::for_display(address).map_err(|why| why.to_string());
    for (address, bare) in [
        ("https://token@github.com/a/b", "https://github.com/a/b"),
        ("https://u:p@github.com/a@b", "https://github.com/a@b"),
        ("https://u:p@github.com?q=a@b", "https://github.com?q=a@b"),
        ("ssh://git:pw@h:22/x", "ssh://git@h:22/x"),
        ("ftp://u:p@h/x", "ftp://u@h/x"),
    ] {
        assert_eq!(display(address), Ok(bare.to_owned()));
    }
    for same in ["git@github.com:a/b", "ssh://git@h/x", "/a/path", "https://h", "git@h:my b", "ftp://u@h/x"] {
        assert_eq!(display(same), Ok(same.to_owned()));
    }
    let unknown = Err("programs may interpret the remote's address differently".to_owned());
    for hidden in ["https://u:p/w@github.com/a", "https://u:p?w@github.com/a", "https://u:p#w@github.com/a"] {
        assert_eq!(display(hidden), unknown, "{hidden}");
    }
    // These addresses have surrounding whitespace, or characters that some programs ignore or treat as a slash.
    for odd in [" https://github.com/a", "git@h:x\u{a0}", "https://github.com/a\tb", "git@h:a\\b"] {
        assert_eq!(display(odd), unknown, "{odd}");
    }
}
