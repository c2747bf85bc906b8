//! Files that the person's own programs act upon: closed while a sandbox runs, released with it, moved away after it.

use std::{
    fs,
    os::{fd::AsRawFd, unix::fs::symlink},
    path::Path,
    thread,
    time::Duration,
};

use ironcurtain_sandbox::{Access, Event, Mount, Proof, Refusal};

use crate::harness::{Place, Probe};

const STEP: Duration = Duration::from_micros(700);
const ROUNDS: u32 = 40;

#[test]
fn names_that_nothing_has_are_closed_while_it_runs_and_free_again_afterwards() {
    let place = Place::new();
    let mut probe = place.probe();
    let start = [".bashrc", ".cursor/x", ".config/git/config", ".npmrc"];
    let opened = [
        ".vimrc",
        ".nvim.lua",
        ".dir-locals.el",
        ".emacs.d/init.el",
        ".zed/tasks.json",
        ".config/nvim/init.lua",
    ];
    let agents = [
        ".claude/settings.json",
        ".claude/settings.local.json",
        ".codex/config.toml",
        ".gemini/settings.json",
    ];
    for name in start.iter().chain(&opened).chain(&agents) {
        let said = probe.say(&format!("write {} x", place.path(&format!("session/{name}"))));
        assert!(matches!(said.as_str(), "err EROFS" | "err EACCES"), "{name}: {said}");
    }
    assert_eq!(fs::read_to_string(place.path("session/.gemini/settings.json")).unwrap(), "{}\n");
    let open = [".env", "Cargo.toml", ".yarnrc.yml", ".gitlab-ci.yml"];
    for name in open.iter().chain(&[".claude/plan.md"]) {
        assert_eq!(probe.say(&format!("write {} x", place.path(&format!("session/{name}")))), "ok", "{name}");
    }
    end(probe);
    assert_eq!(names(&place, "session"), [".claude", ".env", ".gitlab-ci.yml", ".yarnrc.yml", "Cargo.toml"]);
    assert_eq!(names(&place, "session/.claude"), ["plan.md"]);
}

#[test]
fn what_is_there_is_closed_in_a_live_grant_and_released_with_it() {
    let place = Place::new();
    let hook = place.file("repo/.git/hooks/pre-commit");
    let mut probe = place.probe();
    probe.add(&place.path("repo"), Access::ReadWrite);
    assert_eq!(probe.say(&format!("write {hook} x")), "err EROFS");
    assert_eq!(probe.say(&format!("write {} x", place.path("repo/.git/HEAD"))), "ok");
    assert!(names(&place, "repo").len() > 2);
    assert_eq!(probe.remove(&place.path("repo")), Proof::Proved);
    assert_eq!(names(&place, "repo"), [".git"]);
    assert_eq!(fs::read_to_string(hook).unwrap(), "repo/.git/hooks/pre-commit");
}

#[test]
fn such_a_file_is_never_granted_for_writing_but_for_reading() {
    let place = Place::new();
    let hooks = place.path("repo/.git/hooks");
    place.file("repo/.git/hooks/pre-commit");
    let mut probe = place.probe();
    assert_eq!(probe.refused(&hooks, Access::ReadWrite), Refusal::Protected);
    probe.add(&hooks, Access::ReadOnly);
    assert_eq!(probe.say(&format!("read {hooks}/pre-commit")), "ok repo/.git/hooks/pre-commit");
}

#[test]
fn what_the_spec_names_is_written_and_stays() {
    let place = Place::new();
    let config = place.file("repo/.git/config");
    let mut spec = place.probe_spec();
    spec.persistence.allow = vec![".git/config".into()];
    spec.mounts = vec![Mount::new(place.path("repo"), Access::ReadWrite)];
    let mut probe = Probe::start(&spec);
    assert_eq!(probe.say(&format!("write {config} [core]")), "ok");
    assert_eq!(probe.say(&format!("mkdir {}", place.path("repo/.git/hooks/new"))), "err EROFS");
    end(probe);
    assert_eq!(fs::read_to_string(config).unwrap(), "[core]");
}

#[test]
fn what_appears_below_is_moved_away_whole_and_told() {
    let place = Place::new();
    let mut probe = place.probe();
    for dir in ["session/a", "session/a/.vscode"] {
        assert_eq!(probe.say(&format!("mkdir {}", place.path(dir))), "ok");
    }
    assert_eq!(probe.say(&format!("write {} evil", place.path("session/a/.vscode/tasks.json"))), "ok");
    assert_eq!(probe.say(&format!("write {} fine", place.path("session/a/tasks.json"))), "ok");
    let moved = told_at_the_end(&mut probe);
    let [Event::Quarantined { path, moved_to }] = moved.as_slice() else { panic!("{moved:?}") };
    assert_eq!(*path, place.path("session/a/.vscode"));
    assert!(Path::new(moved_to).starts_with(place.path("state")), "{moved_to}");
    assert_eq!(fs::read_to_string(Path::new(moved_to).join("tasks.json")).unwrap(), "evil");
    assert_eq!(names(&place, "session/a"), ["tasks.json"]);
}

#[test]
fn what_the_sandbox_made_is_not_taken_for_what_was_there_when_a_folder_is_granted_again_or_the_one_around_it()
{
    type Change<'a> = &'a dyn Fn(&mut Probe, &Place);
    let again: [(&str, Change<'_>); 3] = [
        ("again", &|probe, place| {
            assert_eq!(probe.remove(&place.path("repo/sub")), Proof::Proved);
            probe.add(&place.path("repo/sub"), Access::ReadWrite);
        }),
        ("around", &|probe, place| probe.add(&place.path("repo"), Access::ReadWrite)),
        ("around, later", &|probe, place| {
            assert_eq!(probe.remove(&place.path("repo/sub")), Proof::Proved);
            probe.add(&place.path("repo"), Access::ReadWrite);
        }),
    ];
    for (how, change) in again {
        let place = Place::new();
        for old in ["repo/sub/old/.envrc", "repo/other/.envrc"] {
            place.file(old);
        }
        fs::create_dir(place.path("repo/sub/x")).unwrap();
        let mut probe = place.probe();
        probe.add(&place.path("repo/sub"), Access::ReadWrite);
        let made = place.path("repo/sub/x/.envrc");
        assert_eq!(probe.say(&format!("write {made} evil")), "ok", "{how}");
        change(&mut probe, &place);
        let moved = told_at_the_end(&mut probe);
        let [Event::Quarantined { path, .. }] = moved.as_slice() else { panic!("{how}: {moved:?}") };
        assert_eq!(*path, made, "{how}");
        assert_eq!(names(&place, "repo/sub/x"), [""; 0], "{how}");
        for old in ["repo/sub/old/.envrc", "repo/other/.envrc"] {
            assert_eq!(fs::read_to_string(place.path(old)).unwrap(), old, "{how}");
        }
    }
}

#[test]
fn what_the_person_made_while_the_sandbox_could_not_write_there_stays() {
    let place = Place::new();
    let config = place.file("repo/.git/config");
    let mut probe = place.probe();
    probe.add(&place.path("repo"), Access::ReadWrite);
    assert_eq!(probe.remove(&place.path("repo")), Proof::Proved);
    // As git does.
    fs::write(place.path("repo/.git/config.lock"), "[remote]").unwrap();
    fs::rename(place.path("repo/.git/config.lock"), &config).unwrap();
    place.file("repo/.envrc");
    probe.add(&place.path("repo"), Access::ReadWrite);
    assert_eq!(probe.say(&format!("write {} x", place.path("repo/.envrc"))), "err EROFS");
    assert_eq!(told_at_the_end(&mut probe), []);
    assert_eq!(fs::read_to_string(config).unwrap(), "[remote]");
    assert_eq!(names(&place, "repo"), [".envrc", ".git"]);
}

#[test]
fn what_a_killed_supervisor_has_made_is_gone_when_the_next_one_starts() {
    let place = Place::new();
    let mut left = 0;
    for round in 0..ROUNDS {
        let probe = Probe::launch(&place.probe_spec());
        thread::sleep(STEP * round);
        probe.kill.kill();
        probe.end();
        left += names(&place, "session").len();
    }
    assert!(left > 0, "no kill came while something was there");
    // Whatever the last one has left, the person's own is not taken away with it.
    let _ = fs::remove_file(place.path("session/.profile"));
    fs::write(place.path("session/.profile"), "the person's").unwrap();
    end(place.probe());
    assert_eq!(names(&place, "session"), [".profile"]);
    assert_eq!(fs::read_to_string(place.path("session/.profile")).unwrap(), "the person's");
    assert_eq!(fs::read_dir(place.path("state/journals")).unwrap().count(), 0);
}

#[test]
fn what_was_made_for_a_grant_that_has_ended_vouches_for_nothing() {
    let place = Place::new();
    for dir in ["one", "other"] {
        fs::create_dir(place.path(dir)).unwrap();
    }
    let mut probe = place.probe();
    probe.add(&place.path("one"), Access::ReadWrite);
    probe.add(&place.path("other"), Access::ReadWrite);
    assert!(!names(&place, "other").is_empty());
    // With the stand-ins their inodes are free, and some file systems give them to the next files that are made.
    assert_eq!(probe.remove(&place.path("other")), Proof::Proved);
    assert!(names(&place, "other").is_empty());
    for number in 0..100 {
        let dir = place.path(&format!("one/{number}"));
        assert_eq!(probe.say(&format!("mkdir {dir}")), "ok");
        assert_eq!(probe.say(&format!("write {dir}/.envrc evil")), "ok");
        assert_eq!(probe.say(&format!("write {dir}/.env fine")), "ok");
    }
    end(probe);
    for number in 0..100 {
        assert_eq!(names(&place, &format!("one/{number}")), [".env"]);
    }
}

#[test]
fn a_folder_that_was_replaced_is_not_searched_and_that_is_told() {
    for is_link in [true, false] {
        let place = Place::new();
        let (own, elsewhere) = (place.path("own"), place.path("elsewhere"));
        fs::create_dir(&own).unwrap();
        place.file("elsewhere/.envrc");
        let mut probe = place.probe();
        probe.add(&own, Access::ReadWrite);
        assert_eq!(probe.remove(&own), Proof::Proved);
        fs::remove_dir(&own).unwrap();
        if is_link {
            symlink(&elsewhere, &own).unwrap();
        } else {
            fs::rename(&elsewhere, &own).unwrap();
        }
        let told = told_at_the_end(&mut probe);
        let [Event::Unfinished { reason }] = told.as_slice() else { panic!("{told:?}") };
        assert!(reason.contains(&format!("`{own}` could not be searched")), "{reason}");
        assert_eq!(fs::read_to_string(place.path("own/.envrc")).unwrap(), "elsewhere/.envrc");
    }
}

#[test]
fn a_folder_with_a_path_that_is_too_long_is_granted_and_searched() {
    let place = Place::new();
    let mut probe = place.probe();
    let mut dir = fs::File::open(place.path("session")).unwrap();
    let name = "a".repeat(200);
    for _ in 0..22 {
        let path = format!("/proc/self/fd/{}/{name}", dir.as_raw_fd());
        fs::create_dir(&path).unwrap();
        dir = fs::File::open(path).unwrap();
    }
    let below = format!("/proc/self/fd/{}", dir.as_raw_fd());
    for name in [".envrc", ".env"] {
        fs::write(format!("{below}/{name}"), "x").unwrap();
    }
    let told = told_at_the_end(&mut probe);
    assert!(matches!(told.as_slice(), [Event::Quarantined { .. }]), "{told:?}");
    assert!(!Path::new(&format!("{below}/.envrc")).exists() && Path::new(&format!("{below}/.env")).exists());

    // The next one can start with it, and what it adds is found.
    let mut probe = place.probe();
    assert_eq!(probe.say(&format!("mkdir {}", place.path("session/e"))), "ok");
    assert_eq!(probe.say(&format!("write {} evil", place.path("session/e/.envrc"))), "ok");
    let told = told_at_the_end(&mut probe);
    let [Event::Quarantined { path, .. }] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!(*path, place.path("session/e/.envrc"));
}

/// What is told between the end of the server and that of its supervisor.
fn told_at_the_end(probe: &mut Probe) -> Vec<Event> {
    probe.stdin = None;
    let told = std::iter::repeat_with(|| probe.control.event().unwrap());
    let told = told.take_while(|event| !matches!(event, Event::Exited { .. }));
    told.filter(|event| !matches!(event, Event::Limited { .. })).collect()
}

/// Waits until it has ended by itself.
fn end(mut probe: Probe) {
    probe.stdin = None;
    assert_eq!(probe.end().status, Some(0));
}

fn names(place: &Place, dir: &str) -> Vec<String> {
    let entries = fs::read_dir(place.path(dir)).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
