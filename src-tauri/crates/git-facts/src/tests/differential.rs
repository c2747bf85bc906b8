//! Tests random repositories with hostile parts. Git must connect only to reported addresses, unless the addresses are
//! reported as unknown.
//!
//! Set `IRONCURTAIN_GIT_CASES` to `FIRST..LAST` to run cases other than [`CASES`].

use super::wire::{Wire, remote_target};
use super::*;

/// Random cases that run by default.
const CASES: std::ops::Range<u64> = 0..160;

/// Initial configuration of every repository.
const BASE: &str = "[remote \"origin\"]\n\turl = https://github.com/acme/app\n\
                    [remote \"evil\"]\n\turl = https://evil.example/x\n";

const DEFAULTS: [&str; 5] = ["origin", "gone", "evil", "gh:acme/app", "grp"];
const NAMES: [&str; 7] = [
    "origin",
    "gone",
    "grp",
    "gh:acme/app",
    "https://github.com/acme/app",
    "github.com:z",
    "https://evil.example/x",
];
const ADDRESSES: [&str; 5] =
    ["https://github.com/acme/app", "https://evil.example/x", "git@evil.example:x", "", ""];
const PLACES: [&str; 3] = ["https://evil.example/", "https://github.com/", "git@github.com:"];
const BEGINNINGS: [&str; 6] =
    ["gh:", "https://github.com/", "https://github.com/acme/", "gone", "origin", "grp"];
const TRUTHS: [&str; 8] = ["= true", "= false", "= 00", "= 1k", "", "=", "= ON", "= 0"];
const WAYS: [&str; 7] =
    ["inc", "../inc", "deep/../inc", "nodir/../inc", "~/inc", "../link/inc", "../link/../inc"];
const HEADS: [&str; 9] = [
    "ref: refs/heads/a\n",
    "ref:refs/heads/a",
    "ref: \t refs/heads/a \r\n\n",
    "ref: refs/heads/a\u{a0}\n",
    "ref: refs/heads/a\nx\n",
    "ref: refs/remotes/x\n",
    "ref: refs/heads/a b\n",
    "REF: refs/heads/a\n",
    "",
];
const BRANCHES: [&str; 5] = ["main", "main", "a", "a\u{a0}", "a b"];

/// Reproducible random number generator, with the remote name that many of a case's settings use.
struct Dice {
    state: u64,
    topic: &'static str,
}

impl Dice {
    fn new(case: u64) -> Self {
        let mut dice = Self { state: case.wrapping_mul(0x0123_4567_89ab_cdef), topic: "" };
        dice.topic = dice.of(&NAMES);
        dice
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.roll(all.len())]
    }

    /// Returns the case's remote name or, half of the time, one of `others`.
    fn name(&mut self, others: &[&'static str]) -> &'static str {
        if self.hits(2) { self.topic } else { self.of(others) }
    }

    /// Returns `true` in one of `many` calls, on average.
    fn hits(&mut self, many: usize) -> bool {
        self.roll(many) == 0
    }

    fn default(&mut self) -> String {
        let key = self.of(&["remote", "remote", "pushRemote"]);
        match self.roll(5) {
            0 => format!("[remote]\n\tpushDefault = {}\n", self.name(&DEFAULTS)),
            _ => format!("[branch \"{}\"]\n\t{key} = {}\n", self.of(&BRANCHES), self.name(&DEFAULTS)),
        }
    }

    fn replacement(&mut self) -> String {
        let key = self.of(&["insteadOf", "insteadOf", "pushInsteadOf"]);
        format!("[url \"{}\"]\n\t{key} = {}\n", self.of(&PLACES), self.name(&BEGINNINGS))
    }

    fn remote(&mut self) -> String {
        let (name, key) = (self.name(&NAMES), self.of(&["url", "pushurl"]));
        format!("[remote \"{name}\"]\n\t{key} = {}\n", self.of(&ADDRESSES))
    }

    fn group(&mut self) -> String {
        // Git would endlessly fetch a group that contains itself.
        let (first, between) = (self.of(&["origin", "gone", "evil"]), self.of(&[" ", "\u{a0}", "\t"]));
        let members = [first, self.of(&["evil", "origin", ""])].join(between);
        let members = members.trim_end_matches(' ');
        format!(
            "[remotes]\n\tgrp = {members}\n[remote \"evil\u{a0}origin\"]\n\turl = https://evil.example/y\n"
        )
    }

    /// Generates a remote with several addresses.
    fn list(&mut self) -> String {
        let mut text = format!("[remote \"{}\"]\n", self.name(&["origin"]));
        for _ in 0..=self.roll(3) {
            let (key, address) = (self.of(&["url", "pushurl"]), self.of(&ADDRESSES));
            text += &format!("\t{key} = {address}\n");
        }
        text
    }

    /// Generates several replacements for the same prefix.
    fn rivals(&mut self) -> String {
        let beginning = self.name(&BEGINNINGS);
        let mut text = String::new();
        for _ in 0..3 {
            let other = self.name(&BEGINNINGS);
            let beginning = if self.hits(3) { other } else { beginning };
            text += &format!("[url \"{}\"]\n\tinsteadOf = {beginning}\n", self.of(&PLACES));
        }
        text
    }

    /// Generates a setting that changes which address git uses.
    fn turn(&mut self) -> String {
        match self.roll(10) {
            0 => self.remote(),
            1 => self.list(),
            2 | 3 => self.replacement(),
            4 => self.rivals(),
            5 => self.group(),
            6 => format!("[fetch]\n\tall {}\n", self.of(&TRUTHS)),
            _ => self.default(),
        }
    }

    fn turns(&mut self, most: usize) -> String {
        (0..=self.roll(most)).map(|_| self.turn()).collect()
    }
}

/// Makes one random change to the `repo` repository. Returns the folder in which to run git.
fn change(user: &TestUser, dice: &mut Dice) -> &'static str {
    let add = |more: &str| {
        let config = user.path("repo/.git/config");
        let text = std::fs::read_to_string(config.as_path()).unwrap_or_default();
        std::fs::write(config.as_path(), text + more).unwrap();
    };
    match dice.roll(22) {
        0..=5 | 20 | 21 => add(&dice.turns(4)),
        6 => {
            add(&format!(
                "[extensions]\n\tworktreeConfig {}\n{}",
                dice.of(&TRUTHS),
                dice.of(&[
                    "[core]\n\trepositoryformatversion = 1\n",
                    "[core]\n\trepositoryformatversion = -1\n",
                    "[include]\n\tpath = inc\n",
                    ""
                ])
            ));
            user.file("repo/.git/inc", &format!("[extensions]\n\tworktreeConfig {}\n", dice.of(&TRUTHS)));
            user.file("repo/.git/config.worktree", &dice.turns(2));
        }
        7 | 8 => {
            add(&format!("[include]\n\tpath = {}\n", dice.of(&WAYS)));
            user.link("repo/link", "wide/deep");
            for file in ["repo/.git/inc", "repo/inc", "inc", "repo/wide/deep/inc", "repo/wide/inc"] {
                user.file(file, &dice.turns(1));
            }
            if dice.hits(2) {
                user.file("repo/.git/deep/x", "");
            }
            if dice.hits(2) {
                user.file("repo/conf/inc", &dice.turns(1));
                std::fs::rename(
                    user.path("repo/.git/config").as_path(),
                    user.path("repo/conf/config").as_path(),
                )
                .unwrap();
                user.link("repo/.git/config", "../conf/config");
            }
        }
        9 | 10 => {
            for branch in BRANCHES {
                add(&format!("[branch \"{branch}\"]\n\tremote = {}\n", dice.name(&DEFAULTS)));
            }
            match dice.roll(4) {
                0 => user.link("repo/.git/HEAD", dice.of(&["refs/heads/main", "refs/heads/a"])),
                1 => user.link("repo/.git/refs/heads/main", dice.of(&["a", "refs/heads/a"])),
                2 => {
                    user.file("repo/.git/refs/heads/main", dice.of(&["ref: refs/heads/a\n", "broken\n", ""]))
                }
                _ => user.file("repo/.git/HEAD", dice.of(&HEADS)),
            }
        }
        11 => {
            add("[branch \"main\"]\n\tremote = gone\n");
            let (folder, name) =
                (dice.of(&["remotes", "branches"]), dice.of(&["gone", "gone", "github.com:z"]));
            user.file(
                &format!("repo/.git/{folder}/{name}"),
                dice.of(&["URL: https://evil.example/x\n", "https://evil.example/x\n"]),
            );
        }
        12 => {
            add("[branch \"main\"]\n\tremote = gone\n");
            user.git(&[
                "init",
                "-q",
                "--bare",
                &format!("repo/{}", dice.of(&["gone", "gone.git", "gone/.git"])),
            ]);
        }
        13 => user.file(dice.of(&[".gitconfig", ".config/git/config"]), &dice.turns(2)),
        14 => {
            let condition =
                dice.of(&["gitdir:~/repo/", "onbranch:main", "hasconfig:remote.*.url:https://**"]);
            user.file(".gitconfig", &format!("[includeIf \"{condition}\"]\n\tpath = inc\n"));
            user.file("inc", &dice.turns(1));
        }
        15 => add(dice.of(&[
            "[core]\n\trepositoryformatversion = 9\n",
            "[extensions]\n\tstrange = true\n[core]\n\trepositoryformatversion = 1\n",
            "[extensions]\n\tobjectFormat = sha256\n",
            "[core]\n\tworktree = ../elsewhere\n",
            "[core]\n\tbare = true\n",
            "[remote \"\"]\n\turl = https://evil.example/x\n",
        ])),
        _ => return move_away(user, dice),
    }
    "repo"
}

/// Moves the repository and leaves behind a reference to its new path. Returns the folder in which to run git.
fn move_away(user: &TestUser, dice: &mut Dice) -> &'static str {
    let other = "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = git@github.com:other\n";
    let rename = |from: &str, to: &str| {
        let _ = std::fs::rename(user.path(from).as_path(), user.path("").as_path().join(to));
    };
    match dice.roll(3) {
        0 => {
            let own = dice.of(&["repo/sub/.git", "repo/sub"]);
            user.file(&format!("{own}/config"), other);
            for part in ["HEAD", "objects/x", "refs/x"] {
                if !dice.hits(4) {
                    user.file(
                        &format!("{own}/{part}"),
                        dice.of(&["ref: refs/heads/main\n", "ref: refs/heads/main\n", "x\n"]),
                    );
                }
            }
            if dice.hits(2) {
                user.file(
                    &format!("{own}/commondir"),
                    dice.of(&["../.git\n", "../../.git", "../.git \n", "", "../.git/\r\n"]),
                );
            }
            "repo/sub"
        }
        1 => {
            user.git(&["init", "-q", "--bare", "-b", "main", "repo/real"]);
            user.file("repo/real/config", other);
            rename("repo/.git", "repo/real ");
            user.file(
                "repo/.git",
                dice.of(&[
                    "gitdir: real \n",
                    "gitdir: real\n",
                    "gitdir:real\n",
                    "gitdir: real \r\n",
                    "gitdir: nothing\n",
                ]),
            );
            "repo"
        }
        _ => {
            let name = "repo/.git/worktrees/tree";
            user.file(&format!("{name}/HEAD"), "ref: refs/heads/a\n");
            user.git(&["init", "-q", "--bare", "-b", "main", "repo/.git/other"]);
            user.file("repo/.git/other/config", other);
            rename("repo/.git/other", dice.of(&["repo/.git/other ", "repo/.git/other"]));
            user.file(
                &format!("{name}/commondir"),
                dice.of(&["../..\n", "../../other \n", "../../other\r\n", "../../nodir/..\n"]),
            );
            user.file("tree/.git", &format!("gitdir: {}\n", user.path(name)));
            "tree"
        }
    }
}

#[test]
fn git_goes_to_a_reported_address_or_it_is_unknown() {
    let (first, last) = match std::env::var("IRONCURTAIN_GIT_CASES") {
        Ok(range) => range.split_once("..").map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap(),
        Err(_) => (CASES.start, CASES.end),
    };
    let (mut known, mut went) = (0, 0);
    for case in first..last {
        let mut dice = Dice::new(case);
        let user = TestUser::new();
        user.commit("repo");
        user.config(BASE);
        std::fs::create_dir_all(user.path("repo/sub").as_path()).unwrap();
        let wire = Wire::new(&user);
        let mut folder = "repo";
        for _ in 0..=dice.roll(2) {
            // Moving the repository must be the last change.
            if folder == "repo" && user.path("repo/.git").as_path().is_dir() {
                folder = change(&user, &mut dice);
            }
        }
        let raw = if dice.hits(3) { None } else { Some(dice.name(&NAMES)) };
        let raw = raw.map(|raw| if dice.hits(6) { raw.replace("github", "GITHUB") } else { raw.to_owned() });
        let (sent, verb) = (raw.as_deref().map(address::to_send), dice.roll(3));
        let (remote_use, verb) =
            [(RemoteUse::Fetch, "fetch"), (RemoteUse::Push, "push"), (RemoteUse::Either, "ls-remote")][verb];
        let arguments: Vec<&str> = [Some(verb), sent.as_deref()].into_iter().flatten().collect();
        let addresses = user.ask(folder, remote_use, raw.as_deref(), false);
        let real = wire.goes_to(folder, &arguments);
        went += usize::from(!real.is_empty());
        // An address without a target matches no pattern.
        let targets: Option<Vec<String>> = addresses.iter().map(|address| remote_target(address)).collect();
        let Some(targets) = targets else { continue };
        known += usize::from(!real.is_empty());
        let astray = real.iter().find(|to| !to.as_ref().is_some_and(|to| targets.contains(to)));
        let read = |file| std::fs::read_to_string(user.path(file).as_path()).unwrap_or_default();
        let [config, own] = ["repo/.git/config", ".gitconfig"].map(read);
        assert_eq!(
            astray, None,
            "case {case}: git {arguments:?} in {folder}: reported {addresses:?}, went to {real:?}\n{config}\n{own}"
        );
    }
    // Many addresses must be known even though every repository has a hostile part.
    println!("{known} of {went}");
    assert!(known * 4 > went && went > 0, "{known} of {went} were known");
}
