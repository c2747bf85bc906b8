//! Tests the `filesystem` settings with allowed and refused paths for each key.

use std::fs;

use serde_json::json;

use super::CommandFixture;

#[test]
fn denied_paths_are_unreadable_except_allowed_ones_within() {
    let desk = CommandFixture::new();
    desk.fixture.file("work/secret/deep/file");
    desk.fixture.file("work/secret/open/file");
    let read = "cat secret/deep/file secret/open/file";
    assert_eq!(desk.stdout_of(read), "work/secret/deep/filework/secret/open/file");
    let desk = desk.with("filesystem/denyRead", json!(["secret"]));
    assert!(desk.stderr_of_failure("cat secret/open/file").contains("Permission denied"));
    let desk = desk.with("filesystem/allowRead", json!(["secret/open"]));
    assert_eq!(desk.stdout_of("cat secret/open/file"), "work/secret/open/file");
    assert!(desk.stderr_of_failure("cat secret/deep/file").contains("secret/deep/file"));
    let desk = desk.with("filesystem/allowRead", json!([{ "path": "secret", "literal": true }]));
    assert_eq!(desk.stdout_of(read), "work/secret/deep/filework/secret/open/file");
}

#[test]
fn only_allowed_paths_are_writable_except_denied_ones_within() {
    let desk = CommandFixture::new();
    let beside = desk.fixture.file("beside");
    desk.fixture.file("work/shut/file");
    desk.fixture.file("work/there");
    desk.stdout_of("echo x >new; echo x >shut/file; mkdir -p a/b; rm there");
    assert_eq!(fs::read_to_string(desk.path("work/new")).unwrap(), "x\n");
    assert!(desk.stderr_of_failure(&format!("echo x >{beside}")).contains("Read-only file system"));
    let desk = desk.with("filesystem/denyWrite", json!(["shut", "not-yet", "*.lock"]));
    desk.fixture.file("work/a.lock");
    for path in ["shut/file", "shut/new", "a.lock"] {
        assert!(
            desk.stderr_of_failure(&format!("echo x >{path}")).contains("Read-only file system"),
            "{path}"
        );
    }
    let outcome = desk.line("echo x >not-yet; echo x >new");
    let moved = format!("`{}` was moved to `", desk.path("work/not-yet"));
    assert!(outcome.complained.contains(&moved), "{outcome:?}");
    assert!(fs::exists(desk.path("work/new")).unwrap());
    assert!(!fs::exists(desk.path("work/not-yet")).unwrap());
    let desk = desk.with("filesystem/allowWrite", json!([]));
    assert!(desk.stderr_of_failure("echo x >new").contains("Read-only file system"));
    assert_eq!(fs::read_to_string(beside).unwrap(), "beside");
}

#[test]
fn host_tmp_is_read_only_and_tmpdir_is_elsewhere() {
    let desk = CommandFixture::new();
    assert_eq!(desk.stdout_of("echo x >$TMPDIR/x; cat $TMPDIR/x; echo $TMPDIR"), "x\n/dev/shm\n");
    assert!(desk.stderr_of_failure("echo x >/tmp/ironcurtain-test").contains("Read-only file system"));
    let own = desk.path("work");
    let outcome = desk.command(&["-c", "echo $TMPDIR"]).env("TMPDIR", &own).output().unwrap();
    assert_eq!(String::from_utf8(outcome.stdout).unwrap(), format!("{own}\n"));
}

#[test]
fn patterns_match_existing_paths() {
    let desk = CommandFixture::new();
    for file in ["work/.env", "work/a/.env", "work/a/b/.env", "work/a/keep", "work/[x]/file"] {
        desk.fixture.file(file);
    }
    let desk = desk.with("filesystem/denyRead", json!(["**/.env", "[x]"]));
    for path in [".env", "a/.env", "a/b/.env", "'[x]/file'"] {
        assert!(desk.stderr_of_failure(&format!("cat {path}")).contains("Permission denied"), "{path}");
    }
    assert_eq!(desk.stdout_of("cat a/keep"), "work/a/keep");
    let desk = desk.with("filesystem/denyRead", json!([{ "path": "**/.env", "literal": true }, "a/**"]));
    assert_eq!(desk.stdout_of("cat .env '[x]/file'"), "work/.envwork/[x]/file");
    desk.stderr_of_failure("cat a/keep");

    let desk = CommandFixture::new().with("filesystem/allowWrite", json!(["*.log", "out/**"]));
    fs::create_dir(desk.path("work/out")).unwrap();
    desk.fixture.file("work/a.log");
    let outcome = desk.line("echo x >out/new && cat out/new; echo x >a.log");
    assert_eq!((outcome.status, outcome.output.as_str()), (Some(1), "x\n"));
    assert!(
        outcome.complained.contains("`*.log` is a pattern, but writable paths cannot be patterns"),
        "{outcome:?}"
    );
    assert!(outcome.complained.contains("a.log: Read-only file system"), "{outcome:?}");
    for (pattern, why) in
        [("/**/*.pem", "searching all of `/` is not supported"), ("/a/*/", "ends in a slash")]
    {
        let output =
            CommandFixture::new().with("filesystem/denyRead", json!([pattern])).expect_rejected_settings();
        assert!(output.contains("filesystem.denyRead") && output.contains(why), "{output}");
    }
}

#[test]
fn autostart_files_are_closed_or_quarantined_except_allowed_git_configuration() {
    let desk = CommandFixture::new();
    let config = "[core]\n\tbare = false\n";
    for (path, text) in [("config", config), ("hooks/sample", ""), ("HEAD", "ref: refs/heads/main\n")] {
        fs::write(desk.fixture.file(&format!("work/.git/{path}")), text).unwrap();
    }
    desk.fixture.file("work/.bashrc");
    for path in [".bashrc", ".git/config", ".git/hooks/pre-commit"] {
        assert!(
            desk.stderr_of_failure(&format!("echo x >{path}")).contains("Read-only file system"),
            "{path}"
        );
    }
    for (path, goes) in [
        (".zshrc", ".zshrc"),
        (".vscode/settings.json", ".vscode"),
        (".mcp.json", ".mcp.json"),
        (".gitattributes", ".gitattributes"),
        ("a/.envrc", "a/.envrc"),
    ] {
        let outcome = desk.line(&format!("mkdir -p .vscode a; echo x >{path}"));
        let moved = format!("`{}` was moved to `", desk.path(&format!("work/{goes}")));
        assert!(outcome.complained.contains(&moved), "{path}: {outcome:?}");
        assert!(!fs::exists(desk.path(&format!("work/{path}"))).unwrap(), "{path}");
    }
    desk.stdout_of("echo ref: refs/heads/other >.git/HEAD");
    let desk = desk.with("filesystem/allowGitConfig", json!(true));
    desk.stdout_of("echo '[core]' >.git/config");
    desk.stderr_of_failure("echo x >.git/hooks/pre-commit");
    assert_eq!(fs::read_to_string(desk.path("work/.git/config")).unwrap(), "[core]\n");
}

#[test]
fn root_can_be_named() {
    let desk = CommandFixture::new().with("filesystem/denyRead", json!(["/"]));
    let lists = json!(["/usr", "/lib", "/lib64", "/bin", "/etc", "."]);
    // Symlinks into `/usr` need no entry of their own.
    let there = |path: &&serde_json::Value| {
        let path = path.as_str().unwrap();
        path == "." || !fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink())
    };
    let open: Vec<_> = lists.as_array().unwrap().iter().filter(there).collect();
    let desk = desk.with("filesystem/allowRead", json!(open));
    let beside = desk.fixture.file("beside");
    assert!(desk.stderr_of_failure(&format!("cat {beside}")).contains("beside"));
    assert_eq!(desk.stdout_of("echo x >new; cat new; test -r /etc/passwd && echo yes"), "x\nyes\n");
    let desk = CommandFixture::new().with("filesystem/denyWrite", json!(["/"]));
    assert!(desk.stderr_of_failure("echo x >new").contains("Read-only file system"));
}

#[test]
fn path_through_a_symlink_is_not_opened() {
    let desk = CommandFixture::new();
    fs::create_dir(desk.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(desk.path("elsewhere"), desk.path("work/link")).unwrap();
    let desk = desk.with("filesystem/allowWrite", json!(["link"]));
    let output = desk.expect_rejected_settings();
    assert!(output.contains("contains a symlink") && output.contains("elsewhere"), "{output}");
    let desk = desk.with("filesystem/allowWrite", json!(["../elsewhere"]));
    desk.stdout_of("echo x >../elsewhere/new");
}
