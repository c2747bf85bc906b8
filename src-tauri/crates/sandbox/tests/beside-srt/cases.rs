//! Commands that both programs run, and the intended differences.

/// Command and its settings.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Settings as `section/key` and value. `PORT` stands for the port of a server on the host.
    pub(crate) settings: &'static [(&'static str, &'static str)],
    pub(crate) arguments: &'static [&'static str],
    pub(crate) expected: Expected,
}

/// Expected result of the comparison.
pub(crate) enum Expected {
    Same,
    /// The results differ. Contains each program's status and first line.
    Differs {
        ours: &'static str,
        theirs: &'static str,
        #[expect(dead_code, reason = "documents the difference")]
        because: &'static str,
    },
}

type Settings = &'static [(&'static str, &'static str)];

const fn same(name: &'static str, settings: Settings, arguments: &'static [&'static str]) -> Case {
    Case { name, settings, arguments, expected: Expected::Same }
}

const fn differs(
    name: &'static str,
    settings: Settings,
    arguments: &'static [&'static str],
    [ours, theirs, because]: [&'static str; 3],
) -> Case {
    Case { name, settings, arguments, expected: Expected::Differs { ours, theirs, because } }
}

const NONE: Settings = &[];
const HOSTS: Settings = &[("network/allowedDomains", r#"["localhost:PORT", "127.0.0.1:PORT"]"#)];

pub(crate) const CASES: &[Case] = &[
    same("says", NONE, &["-c", "echo hello; pwd"]),
    same("status", NONE, &["-c", "exit 3"]),
    same("status of a signal", NONE, &["-c", "kill -TERM $$"]),
    same("status of a kill", NONE, &["-c", "kill -KILL $$"]),
    same("missing program in a line", NONE, &["-c", "no-such-program"]),
    same("missing program", NONE, &["no-such-program", "x"]),
    same("quoting in a line", NONE, &["-c", r#"printf '%s|' "a  b" $((1+1)) 'it'\''s' $HOME*"#]),
    same("words", NONE, &["printf", "%s|", "a  b", "$HOME", "*", "'", "`id`"]),
    same("who", NONE, &["-c", "id -u; id -g; umask"]),
    same("write inside", NONE, &["-c", "echo x >new; echo x >file; mkdir d; rm .env"]),
    same("write beside", NONE, &["-c", "echo x >../beside/file || echo no"]),
    same("write to the home", NONE, &["-c", "echo x >~/new || echo no"]),
    same("write to the system", NONE, &["-c", "echo x >/usr/new || echo no; echo x >/etc/new || echo no"]),
    same("write to /tmp", NONE, &["-c", "echo x >/tmp/beside-srt || echo no"]),
    same("write through a symlink", NONE, &["-c", "ln -s ../beside/file link; echo x >link || echo no"]),
    same("a hard link from beside", NONE, &["-c", "ln ../beside/file link || echo no"]),
    same("nothing is writable", &[("filesystem/allowWrite", "[]")], &["-c", "echo x >new || echo no"]),
    same("read all", NONE, &["-c", "cat secret/deep ../beside/file ~/notes"]),
    same(
        "deny a directory",
        &[("filesystem/denyRead", r#"["secret"]"#)],
        &["-c", "cat secret/deep || echo no; cat file"],
    ),
    same(
        "deny a file",
        &[("filesystem/denyRead", r#"["file"]"#)],
        &["-c", "test -s file && cat file || echo no; cat .env"],
    ),
    same(
        "deny by home",
        &[("filesystem/denyRead", r#"["~/notes"]"#)],
        &["-c", "test -s ~/notes && cat ~/notes || echo no"],
    ),
    same(
        "allow within what is denied",
        &[("filesystem/denyRead", r#"["secret"]"#), ("filesystem/allowRead", r#"["secret/open"]"#)],
        &["-c", "cat secret/deep || echo no; cat secret/open/file"],
    ),
    same(
        "allow the file that is denied",
        &[("filesystem/denyRead", r#"["file"]"#), ("filesystem/allowRead", r#"["file"]"#)],
        &["-c", "cat file"],
    ),
    same(
        "deny a pattern",
        &[("filesystem/denyRead", r#"["**/.env"]"#)],
        &["-c", "for f in .env sub/.env; do test -s $f && cat $f || echo no; done; cat file"],
    ),
    same(
        "deny a directory with its stars",
        &[("filesystem/denyRead", r#"["secret/**"]"#)],
        &["-c", "cat secret/deep || echo no"],
    ),
    same(
        "a literal entry",
        &[("filesystem/denyRead", r#"[{"path":"**/.env","literal":true}]"#)],
        &["-c", "cat .env sub/.env"],
    ),
    same(
        "deny writing to a directory",
        &[("filesystem/denyWrite", r#"["secret"]"#)],
        &["-c", "echo x >secret/deep || echo no; echo x >secret/new || echo no; echo x >new"],
    ),
    same(
        "deny writing to a file",
        &[("filesystem/denyWrite", r#"["file"]"#)],
        &["-c", "echo x >file || echo no; mv file f || echo no"],
    ),
    same(
        "deny writing to what is not there",
        &[("filesystem/denyWrite", r#"["later"]"#)],
        &["-c", "echo x >later || echo no"],
    ),
    same("deny writing above", &[("filesystem/denyWrite", r#"[".."]"#)], &["-c", "echo x >new || echo no"]),
    same(
        "allow with its stars",
        &[("filesystem/allowWrite", r#"["sub/**"]"#)],
        &["-c", "echo x >sub/new; echo x >new || echo no"],
    ),
    same("allow a pattern", &[("filesystem/allowWrite", r#"["*.env"]"#)], &["-c", "echo x >.env || echo no"]),
    same(
        "start-up files",
        NONE,
        &["-c", "for f in .bashrc .zshrc .profile .gitconfig .mcp.json; do echo x >$f || echo no; done"],
    ),
    same(
        "git's hooks and configuration",
        NONE,
        &[
            "-c",
            "cd sub; echo x >.git/hooks/post-commit || echo no; echo x >.git/config || echo no; echo x >.git/HEAD",
        ],
    ),
    same(
        "git's configuration, allowed",
        &[("filesystem/allowGitConfig", "true")],
        &["-c", "cd sub; echo x >.git/config; echo x >.git/hooks/pre-commit || echo no"],
    ),
    same(
        "unix sockets",
        NONE,
        &["-c", "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX)' 2>/dev/null || echo no"],
    ),
    same(
        "unix sockets, allowed",
        &[("network/allowAllUnixSockets", "true")],
        &["-c", "/usr/bin/python3 -c 'import socket; socket.socket(socket.AF_UNIX)' && echo yes"],
    ),
    same(
        "its own loopback",
        NONE,
        &[
            "-c",
            "/usr/bin/python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0)); socket.create_connection(s.getsockname()); print(\"in\")'",
        ],
    ),
    same("the host's loopback", NONE, &["-c", "curl -s --noproxy '*' http://127.0.0.1:PORT/ || echo no"]),
    same("another user namespace", NONE, &["-c", "unshare -U true 2>/dev/null || echo no"]),
    same(
        "an allowed host",
        HOSTS,
        &["-c", "curl -s http://localhost:PORT/ --noproxy ''; curl -s --noproxy '' http://127.0.0.1:PORT/"],
    ),
    same(
        "a host that is not allowed",
        HOSTS,
        &["-c", "curl -s -o /dev/null -w '%{http_code}' http://other.example.test/"],
    ),
    same(
        "a host that is denied",
        &[("network/allowedDomains", r#"["localhost:PORT"]"#), ("network/deniedDomains", r#"["localhost"]"#)],
        &["-c", "curl -s --noproxy '' -o /dev/null -w '%{http_code}' http://localhost:PORT/"],
    ),
    same(
        "a variable that is denied",
        &[("credentials", r#"{"envVars":[{"name":"SECRET","mode":"deny"}]}"#)],
        &["-c", "echo secret=$SECRET"],
    ),
    same(
        "a file that is denied as a credential",
        &[("credentials", r#"{"files":[{"path":"file","mode":"deny"}]}"#)],
        &["-c", "test -s file && cat file || echo no"],
    ),
    same(
        "directories that git trusts",
        &[("git", r#"{"safeDirectories":["/a"]}"#)],
        &["-c", "git config --get-all safe.directory"],
    ),
    differs(
        "the environment",
        NONE,
        &["-c", "echo secret=$SECRET"],
        ["0 secret=", "0 secret=s", "variables often hold tokens; `--pass-env` passes them on"],
    ),
    differs(
        "keys of the home",
        NONE,
        &["-c", "cat ~/.ssh/id || echo no"],
        ["0 no", "0 home/.ssh/id", "keys and logins are hidden unless `allowRead` names them"],
    ),
    differs(
        "more start-up files",
        NONE,
        &["-c", "echo x >.envrc || echo no"],
        ["0 no", "0", "our list is longer"],
    ),
    differs(
        "rights of a file",
        NONE,
        &["-c", "chmod u+s file 2>/dev/null || echo no"],
        ["0 no", "0", "a setuid program could be left behind"],
    ),
    differs(
        "open files",
        NONE,
        &["-c", "test $(ulimit -Hn) -le 4096 && echo few || echo many"],
        ["0 few", "0 many", "limits apply without `--no-limits`"],
    ),
    differs(
        "an unknown key",
        &[("network/allowedDomain", "[]")],
        &["-c", "echo ran"],
        ["125", "0 ran", "a misspelled rule would not apply"],
    ),
    differs(
        "a missing key",
        &[("filesystem", r#"{"denyRead":[],"allowWrite":[]}"#)],
        &["-c", "echo ran"],
        ["125", "1", "our errors have a distinct status"],
    ),
    differs(
        "a weaker sandbox",
        &[("enableWeakerNestedSandbox", "true")],
        &["-c", "echo ran"],
        ["125", "0 ran", "not supported"],
    ),
    differs(
        "deny writing to a pattern",
        &[("filesystem/denyWrite", r#"["*.env"]"#)],
        &["-c", "echo x >.env || echo no"],
        ["0 no", "0", "a pattern in `denyWrite` is applied, not ignored"],
    ),
    differs(
        "a pattern for the whole disk",
        &[("filesystem/denyRead", r#"["/**/*.pem"]"#)],
        &["-c", "echo ran"],
        ["125", "0 ran", "it would have no effect"],
    ),
];
