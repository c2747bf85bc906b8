//! Tests size limits and supported formats, at each limit and just beyond it.

use super::parts::{EVIL, FOREIGN, GITHUB, NOT_PLAIN, NOT_UNDERSTOOD, ORIGIN};
use super::*;

const TOO_BIG: &str = "(unknown: the repository's configuration is too large)";

const CONDITIONAL: &str = "(unknown: the repository's configuration has conditional includes)";

/// Configuration that redirects the test repository's address.
const REPLACED: &str = "[url \"https://evil.example/\"]\n\tinsteadOf = https://github.com/acme/\n";

#[test]
fn includes_nest_as_deep_as_in_git() {
    let user = TestUser::new();
    user.config(&format!("{ORIGIN}[include]\n\tpath = 1\n"));
    for depth in 1..11 {
        user.file(&format!("repo/.git/{depth}"), &format!("[include]\n\tpath = {}\n", depth + 1));
    }
    user.file("repo/.git/11", REPLACED);
    let of_git = || user.git(&["-C", "repo", "remote", "get-url", "origin"]);
    assert_eq!((user.push(None), of_git()), (vec![NOT_UNDERSTOOD.to_owned()], String::new()));
    user.file("repo/.git/10", REPLACED);
    assert_eq!(user.push(None), ["https://evil.example/app"]);
    assert_eq!(of_git(), "https://evil.example/app\n");
}

#[test]
fn the_limits_of_settings_and_file_size_are_exact() {
    let user = TestUser::new();
    let settings = |count: usize| {
        // The version and the address count as settings too.
        user.config(&format!("{ORIGIN}[x]\n{}", "\ty\n".repeat(count - 2)));
        user.push(None)
    };
    assert_eq!((settings(20_000), settings(20_001)), (vec![GITHUB.to_owned()], vec![TOO_BIG.to_owned()]));
    let bytes = |count: usize| {
        let text = format!("{ORIGIN}#");
        user.file("repo/.git/config", &format!("{text}{}", "x".repeat(count - text.len())));
        user.push(None)
    };
    assert_eq!((bytes(1 << 20), bytes((1 << 20) + 1)), (vec![GITHUB.to_owned()], vec![TOO_BIG.to_owned()]));
}

#[test]
fn the_output_of_git_is_limited() {
    let user = TestUser::new();
    // Git prints the section with every setting, so the output for a permitted file can exceed the output limit.
    let many = format!("[x \"{}\"]\n{}", "s".repeat(400), "\ty\n".repeat(10_000));
    let addresses = |more: usize| {
        user.config(&format!("{ORIGIN}{many}[z]\n\tz = {}\n", "z".repeat(more)));
        user.push(None)
    };
    user.config(&format!("{ORIGIN}{many}[z]\n\tz = z\n"));
    let length = user.git(&["config", "--file", "repo/.git/config", "--list", "-z"]).len();
    let remaining = 4 * 1024 * 1024 - length;
    assert_eq!(
        (addresses(remaining + 1), addresses(remaining + 2)),
        (vec![GITHUB.to_owned()], vec![TOO_BIG.to_owned()])
    );
}

#[test]
fn one_remote_over_the_limit_makes_all_unknown() {
    let user = TestUser::new();
    let remotes = |count: usize| {
        let others: String = (1..count).map(|at| format!("[remote \"{at}\"]\n\turl = x\n")).collect();
        user.config(&format!("{ORIGIN}{others}"));
        user.push(Some("origin"))
    };
    assert_eq!((remotes(1000), remotes(1001)), (vec![GITHUB.to_owned()], vec![TOO_BIG.to_owned()]));
}

#[test]
fn an_include_with_a_special_prefix_is_unknown() {
    let user = TestUser::new();
    let included = |path: &str| {
        user.config(&format!("{ORIGIN}[include]\n\tpath = {path}\n"));
        user.push(None)
    };
    for path in ["%(prefix)/x", ":(optional)x"] {
        assert_eq!(included(path), [CONDITIONAL], "{path}");
    }
    for path in ["~", "~root/x"] {
        assert_eq!(included(path), [NOT_PLAIN], "{path}");
    }
    user.file("repo/.git/%x", REPLACED);
    user.file("x", REPLACED);
    for path in ["%x", "~/x"] {
        assert_eq!(included(path), ["https://evil.example/app"], "{path}");
    }
}

#[test]
fn a_format_that_some_versions_of_git_lack_is_unknown() {
    let user = TestUser::new();
    for (version, extension, expected) in [
        ("", "", GITHUB),
        ("0", "", GITHUB),
        ("1", "", GITHUB),
        ("2", "", FOREIGN),
        ("0", "worktreeConfig = false", GITHUB),
        ("", "worktreeConfig = false", FOREIGN),
        ("0", "noop", GITHUB),
        ("", "noop", FOREIGN),
        ("1", "objectFormat = sha1", GITHUB),
        ("0", "objectFormat = sha1", FOREIGN),
        ("1", "refStorage = files", GITHUB),
        ("0", "refStorage = files", FOREIGN),
        ("1", "refStorage = reftable", FOREIGN),
        ("0", "refStorage = reftable", FOREIGN),
        ("1", "refStorage", FOREIGN),
        ("1", "other = 1", FOREIGN),
    ] {
        let version = format!("[core]\n\trepositoryFormatVersion = {version}\n");
        let version = if version.ends_with("= \n") { "" } else { &version };
        user.file("repo/.git/config", &format!("{version}{ORIGIN}[extensions]\n\t{extension}\n"));
        assert_eq!(user.push(None), [expected], "{version}{extension}");
    }
}

#[test]
fn a_remote_without_a_name_is_invalid() {
    let user = TestUser::new();
    user.config(&format!("{ORIGIN}[remote \"\"]\n\turl = https://evil.example/x\n"));
    assert_eq!(user.push(None), [NOT_UNDERSTOOD]);
    user.config(&format!("{ORIGIN}{EVIL}"));
    assert_eq!(user.push(Some("origin")), [GITHUB]);
}

#[test]
fn head_is_a_branch_or_a_commit() {
    let user = TestUser::new();
    user.config(&format!("{ORIGIN}{EVIL}[branch \"a/b.c\"]\n\tremote = evil\n"));
    let commit = "0123456789abcdefABCDEF0123456789abcdef01";
    for (head, expected) in [
        ("ref: refs/heads/main\n", GITHUB),
        ("ref: refs/heads/a/b.c\n", "https://evil.example/x"),
        (commit, GITHUB),
        (&format!("{commit}\n"), GITHUB),
        (&commit[1..], NOT_UNDERSTOOD),
        (&format!("{}g", &commit[1..]), NOT_UNDERSTOOD),
        (&format!("{commit}0"), NOT_UNDERSTOOD),
        ("ref: refs/heads/\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a//b\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/.a\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a/.b\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a.lock\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a.lock/b\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a.\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a..b\n", NOT_UNDERSTOOD),
        ("ref: refs/heads/a@{b\n", NOT_UNDERSTOOD),
    ] {
        user.file("repo/.git/HEAD", head);
        assert_eq!(user.push(None), [expected], "{head}");
    }
}
