//! Random repositories of hostile parts: git goes where it is said to go, or it is not known where it goes.
//!
//! Set `IRONCURTAIN_GIT_CASES` to `FIRST..LAST` to run others than the usual ones.

use super::wire::{Wire, place};
use super::*;

/// The usual number of repositories.
const CASES: std::ops::Range<u64> = 0..60;

const NAMES: [&str; 12] = [
    "origin",
    "up",
    "gone",
    "grp",
    "gh",
    "a.b",
    "github.com:z",
    "https://github.com/acme/app",
    "https://evil.example/x",
    "gh:acme/app",
    ".",
    "m",
];
const ADDRESSES: [&str; 9] = [
    "https://github.com/acme/app",
    "https://evil.example/x",
    "https://evil.example/x",
    "git@github.com:acme/app",
    "git@evil.example:x",
    "ssh://git@evil.example/x",
    "gh:acme/app",
    "\"\"",
    "https://token@github.com/acme/app",
];
const BASES: [&str; 6] = [
    "https://evil.example/",
    "https://evil.example/x",
    "https://github.com/",
    "git@github.com:",
    "ssh://git@evil.example/",
    "",
];
const BEGINNINGS: [&str; 11] = [
    "gh:",
    "https://github.com/",
    "https://github.com/acme/",
    "https://evil.example/",
    "gone",
    "up",
    "origin",
    "zzz:",
    "https://",
    "grp",
    "\"\"",
];
const TRUTHS: [&str; 12] =
    ["= true", "= false", "= 00", "= 0x0", "= 1k", "= 2", "", "=", "= on", "= off", "= TRUE", "= 0"];
const BRANCHES: [&str; 4] = ["main", "a", "m\u{a0}", "m"];
const INCLUDES: [&str; 6] = ["inc", "../inc", "deep/../inc", "nodir/../inc", "~/inc", "../link/inc"];
const HEADS: [&str; 10] = [
    "ref: refs/heads/a\n",
    "ref:refs/heads/main",
    "ref: \t refs/heads/a \r\n\n",
    "ref: refs/heads/m\u{a0}\n",
    "ref: refs/heads/main\nx\n",
    "ref: refs/remotes/x\n",
    "ref: refs/heads/a b\n",
    "nonsense\n",
    "REF: refs/heads/main\n",
    "",
];
const BRANCH_FILES: [&str; 4] = ["ref: refs/heads/main\n", "ref: refs/heads/a\n", "broken\n", ""];

/// Numbers that look like chance and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % sides as u64).unwrap()
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.roll(all.len())]
    }

    /// One in so many.
    fn hits(&mut self, many: usize) -> bool {
        self.roll(many) == 0
    }

    /// A line or two of configuration.
    fn setting(&mut self) -> String {
        match self.roll(22) {
            0..=4 => {
                let (name, key) = (self.of(&NAMES), self.of(&["url", "url", "pushurl"]));
                format!("[remote \"{name}\"]\n\t{key} = {}\n", self.of(&ADDRESSES))
            }
            5 => format!("[remote \"{}\"]\n\tfetch = +refs/heads/*:refs/remotes/x/*\n", self.of(&NAMES)),
            6..=10 => {
                let (base, key) = (self.of(&BASES), self.of(&["insteadOf", "insteadOf", "pushInsteadOf"]));
                format!("[url \"{base}\"]\n\t{key} = {}\n", self.of(&BEGINNINGS))
            }
            11..=13 => {
                let (branch, key) = (self.of(&BRANCHES), self.of(&["remote", "remote", "pushRemote"]));
                format!("[branch \"{branch}\"]\n\t{key} = {}\n", self.of(&NAMES))
            }
            14 => format!("[remote]\n\tpushDefault = {}\n", self.of(&NAMES)),
            15..=16 => {
                let (group, between) =
                    (self.of(&["grp", "origin", "gh", "up"]), self.of(&[" ", "\u{a0}", "\\t"]));
                format!("[remotes]\n\t{group} = \"{}{between}{}\"\n", self.of(&NAMES), self.of(&NAMES))
            }
            17 => format!("[fetch]\n\tall {}\n", self.of(&TRUTHS)),
            18 => format!("[extensions]\n\tworktreeConfig {}\n", self.of(&TRUTHS)),
            19 => format!("[include]\n\tpath = {}\n", self.of(&INCLUDES)),
            20 => self
                .of(&[
                    "[extensions]\n\tobjectFormat = sha256\n",
                    "[core]\n\trepositoryformatversion = -1\n",
                    "[core]\n\trepositoryformatversion = 1\n",
                    "[core]\n\tworktree = ../elsewhere\n",
                    "[core]\n\tbare = true\n",
                    "[remote \"\"]\n\turl = https://evil.example/x\n",
                    "[remotes]\n\tgrp = up\n",
                ])
                .to_owned(),
            _ => {
                let path = self.of(&["wide", "repo", "other"]);
                format!("[remote \"origin\"]\n\turl = ../{path}\n")
            }
        }
    }

    fn settings(&mut self, most: usize) -> String {
        (0..self.roll(most + 1)).map(|_| self.setting()).collect()
    }
}

/// Changes the repository `repo`, and says in which folder git is to be run.
fn build(person: &Person, dice: &mut Dice) -> &'static str {
    person.git(&["init", "-q", "-b", "main", "other"]);
    person.git(&["-C", "other", "remote", "add", "origin", "https://github.com/acme/app"]);
    let version = dice.of(&["0", "0", "0", "0", "1", "9"]);
    let version =
        if dice.hits(9) { String::new() } else { format!("[core]\n\trepositoryformatversion = {version}\n") };
    let config = format!("{version}{}", dice.settings(8));
    person.file("repo/.git/config", &config);
    for (file, rare) in [
        ("repo/.git/inc", 3),
        ("repo/inc", 3),
        ("inc", 3),
        (".gitconfig", 6),
        (".config/git/config", 8),
        ("repo/.git/config.worktree", 4),
    ] {
        if dice.hits(rare) {
            person.file(file, &dice.settings(3));
        }
    }
    if dice.hits(9) {
        let condition = dice.of(&["gitdir:~/repo/", "onbranch:main", "hasconfig:remote.*.url:https://**"]);
        person.file(".gitconfig", &format!("[includeIf \"{condition}\"]\n\tpath = inc\n"));
    }
    if dice.hits(3) {
        person.link("repo/link", "wide/deep");
        person.file("repo/wide/deep/inc", &dice.settings(2));
        person.file("repo/wide/inc", &dice.settings(2));
    }
    if dice.hits(5) {
        person.file("repo/.git/deep/x", "");
    }
    if dice.hits(8) {
        person.file("repo/conf/config", &config);
        person.file("repo/conf/inc", &dice.settings(3));
        person.link("repo/.git/config", "../conf/config");
    }
    match dice.roll(8) {
        0 | 1 => person.file("repo/.git/HEAD", dice.of(&HEADS)),
        2 => person.link("repo/.git/HEAD", dice.of(&["refs/heads/main", "refs/heads/a", "../HEAD"])),
        _ => {}
    }
    if dice.hits(5) {
        let branch = dice.of(&["main", "a"]);
        person.file(&format!("repo/.git/refs/heads/{branch}"), dice.of(&BRANCH_FILES));
    }
    if dice.hits(10) {
        person.link("repo/.git/refs/heads/a", dice.of(&["main", "refs/heads/main"]));
    }
    if dice.hits(8) {
        let (folder, name) = (dice.of(&["remotes", "branches"]), dice.of(&["gone", "up", "github.com:z"]));
        person.file(
            &format!("repo/.git/{folder}/{name}"),
            dice.of(&["URL: https://evil.example/x\n", "https://evil.example/x\n"]),
        );
    }
    if dice.hits(8) {
        person.git(&[
            "init",
            "-q",
            "--bare",
            &format!("repo/{}", dice.of(&["gone", "gone.git", "gone/.git"])),
        ]);
    }
    folder(person, dice)
}

/// Where git is run: in the repository, or somewhere from which it may or may not find it.
fn folder(person: &Person, dice: &mut Dice) -> &'static str {
    std::fs::create_dir_all(person.path("repo/sub").as_path()).unwrap();
    let github =
        "[core]\n\trepositoryformatversion = 0\n[remote \"origin\"]\n\turl = https://github.com/acme/app\n";
    match dice.roll(9) {
        0 | 1 => {
            let own = dice.of(&["repo/sub/.git", "repo/sub"]);
            person.file(&format!("{own}/config"), github);
            for part in ["HEAD", "objects/x", "refs/x"] {
                if !dice.hits(3) {
                    person.file(&format!("{own}/{part}"), dice.of(&["ref: refs/heads/main\n", "x\n"]));
                }
            }
            if dice.hits(3) {
                person.file(
                    &format!("{own}/commondir"),
                    dice.of(&["../.git\n", "../../.git", "../.git \n", "", "../.git/\r\n"]),
                );
            }
            "repo/sub"
        }
        2 => {
            std::fs::rename(person.path("repo/.git").as_path(), person.path("repo/real ").as_path()).unwrap();
            person.git(&["clone", "-q", "--bare", "other", "repo/real"]);
            person.file(
                "repo/.git",
                dice.of(&[
                    "gitdir: real \n",
                    "gitdir: real\n",
                    "gitdir:real\n",
                    "gitdir: real \r\n",
                    "gitdir: ../other/.git",
                    "gitdir: nothing\n",
                ]),
            );
            "repo"
        }
        3 => {
            let name = "repo/.git/worktrees/tree";
            person.file(&format!("{name}/HEAD"), "ref: refs/heads/a\n");
            person.file(
                &format!("{name}/commondir"),
                dice.of(&["../..\n", "../.. \n", "../../../.git", "../../../../other/.git\n"]),
            );
            person.file(&format!("{name}/gitdir"), &format!("{}\n", person.path("tree/.git")));
            person.file("tree/.git", &format!("gitdir: {}\n", person.path(name)));
            if dice.hits(2) {
                person.file(&format!("{name}/config.worktree"), &dice.settings(3));
            }
            "tree"
        }
        4 => "repo/sub",
        _ => "repo",
    }
}

#[test]
fn git_goes_where_it_is_said_to_go_or_it_is_not_known() {
    let (first, last) = match std::env::var("IRONCURTAIN_GIT_CASES") {
        Ok(range) => range.split_once("..").map(|(a, b)| (a.parse().unwrap(), b.parse().unwrap())).unwrap(),
        Err(_) => (CASES.start, CASES.end),
    };
    let (mut known, mut went) = (0, 0);
    for case in first..last {
        let mut dice = Dice(case.wrapping_mul(0x0123_4567_89ab_cdef));
        let person = Person::new();
        person.commit("repo");
        let wire = Wire::new(&person);
        let folder = build(&person, &mut dice);
        let unnamed = dice.hits(3);
        let raw = if dice.hits(6) { "https://GITHUB.com/acme/app" } else { dice.of(&NAMES) };
        let raw = (!unnamed).then_some(raw);
        let sent = raw.map(address::sent);
        for (way, verb, ref_spec) in
            [(Way::Fetch, "fetch", None), (Way::Either, "ls-remote", None), (Way::Push, "push", Some("main"))]
        {
            let ref_spec = ref_spec.filter(|_| sent.is_some());
            let arguments: Vec<&str> =
                [Some(verb), sent.as_deref(), ref_spec].into_iter().flatten().collect();
            let said = person.ask(folder, way, raw, false);
            let places: Option<Vec<String>> = said.iter().map(|address| place(address)).collect();
            let real = wire.goes_to(folder, &arguments);
            went += usize::from(!real.is_empty());
            let Some(places) = places else { continue };
            known += usize::from(!real.is_empty());
            let astray = real.iter().find(|to| !to.as_ref().is_some_and(|to| places.contains(to)));
            let read = |file| std::fs::read_to_string(person.path(file).as_path()).unwrap_or_default();
            let [config, own] = ["repo/.git/config", ".gitconfig"].map(read);
            assert_eq!(
                astray, None,
                "case {case}: git {arguments:?} in {folder}: said {said:?}, went to {real:?}\n{config}\n{own}"
            );
        }
    }
    // Most of what is asked about is known, though every part is hostile.
    assert!(known * 4 > went && went > 0, "{known} of {went} were known");
    println!("{known} of {went}");
}
