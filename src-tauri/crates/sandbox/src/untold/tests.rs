//! What is read of entries, whole, damaged, locked or too long.

use std::{fs::OpenOptions, io::Write};

use super::*;
use crate::state::StateDir;

fn opened(state: &Path) -> StateDir {
    StateDir::open(state.to_str().unwrap(), rustix::process::getuid().as_raw()).unwrap()
}

fn all_of(state: &Path) -> Vec<Untold> {
    untold(state).unwrap().read()
}

/// What is to be told of an entry.
fn told(one: &Untold) -> Vec<(Option<String>, Event)> {
    one.after(0).map(|(id, event)| (id, event.clone())).collect()
}

#[test]
fn what_was_kept_is_there_until_it_is_forgotten_and_a_missing_end_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    assert!(untold(&state).unwrap().is_empty());
    let opened = opened(&state);
    let moved = Event::Quarantined { path: "/p/.envrc".into(), moved_to: "/q/.envrc".into() };
    let exited = Event::Exited { status: 137 };
    let record = Record::new(&state);
    let mut keeping = Keeping::begin(&opened, record.name()).unwrap();
    keeping.writable([&"/p".to_owned()]).unwrap();
    keeping.add(&moved).unwrap();
    keeping.add(&exited).unwrap();
    keeping.conclude();
    let one = record.read(Duration::ZERO).unwrap();
    let whole = [(Some(record.id(0)), moved.clone()), (Some(record.id(1)), exited.clone())];
    assert_eq!(told(&one), whole);
    // Who has put the first one on record is told the rest, by the same names.
    assert_eq!(one.after(1).collect::<Vec<_>>(), [(Some(record.id(1)), &exited)]);
    assert_eq!(all_of(&state).iter().map(told).collect::<Vec<_>>(), [whole]);
    one.forget().unwrap();
    assert!(untold(&state).unwrap().is_empty() && record.read(Duration::ZERO).is_none());
    record.forget().unwrap();

    let mut keeping = Keeping::begin(&opened, "cut").unwrap();
    keeping.writable([&"/p".to_owned()]).unwrap();
    keeping.add(&moved).unwrap();
    keeping.writable([&"/later".to_owned()]).unwrap();
    drop(keeping);
    let mut file = OpenOptions::new().append(true).open(state.join(NAME).join("cut")).unwrap();
    file.write_all(b"{\"event\":\"quar").unwrap();
    let all = all_of(&state);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    let unsearched = Event::Unsearched { writable: vec!["/p".into(), "/later".into()] };
    assert_eq!(told(one), [(Some("cut/0".into()), moved), (Some("cut/end-0".into()), unsearched)]);
}

#[test]
fn one_without_news_is_gone_with_its_supervisor_also_for_who_waits_for_it() {
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let mut keeping = Keeping::begin(&opened(&state), "one").unwrap();
    keeping.writable([&"/p".to_owned()]).unwrap();
    let listed = untold(&state).unwrap();
    let found = thread::scope(|scope| {
        let waiting = scope.spawn(|| listed.read());
        keeping.add(&Event::Exited { status: 0 }).unwrap();
        keeping.conclude();
        waiting.join().unwrap()
    });
    // It had it open, or came too late for that.
    let found: Vec<_> = found.iter().flat_map(told).map(|(_, event)| event).collect();
    assert!(matches!(found[..], [] | [Event::Exited { status: 0 }]), "{found:?}");
    assert!(untold(&state).unwrap().is_empty());
}

/// A state directory, and a record in it that is whole.
fn with_a_whole_one(dir: &Path) -> (PathBuf, StateDir) {
    let state = dir.join("state");
    let opened = opened(&state);
    Keeping::begin(&opened, "whole").unwrap().add(&Event::Exited { status: 7 }).unwrap();
    (state, opened)
}

fn reasons(all: &[Untold]) -> Vec<&str> {
    let events = all.iter().flat_map(|one| &one.problems);
    events.filter_map(|e| if let Event::Unfinished { reason } = e { Some(&**reason) } else { None }).collect()
}

#[test]
fn an_entry_that_is_no_record_is_named_and_keeps_no_other_from_being_told() {
    type Make = fn(&Path);
    let bad: [(&str, Make, &str); 6] = [
        ("folder", |path| fs::create_dir(path).unwrap(), "not a regular file"),
        ("fifo", |path| fifo(path), "not a regular file"),
        ("dangling", |path| std::os::unix::fs::symlink("nowhere", path).unwrap(), "not a regular file"),
        ("link", |path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(), "not a regular file"),
        ("bytes", |path| fs::write(path, b"\xff\xfe\n").unwrap(), "damaged"),
        ("long", |path| File::create(path).unwrap().set_len(MOST_BYTES + 1).unwrap(), "longer than"),
    ];
    for (name, make, why) in bad {
        let dir = tempfile::tempdir().unwrap();
        let (state, _) = with_a_whole_one(dir.path());
        make(&state.join(NAME).join(name));
        let all = all_of(&state);
        assert!(all.iter().any(|one| one.events == [Event::Exited { status: 7 }]), "{name}: {all:?}");
        let said = reasons(&all);
        assert!(matches!(said[..], [one] if one.contains(name) && one.contains(why)), "{name}: {said:?}");
        all.into_iter().for_each(|one| one.forget().unwrap());
        assert!(untold(&state).unwrap().is_empty(), "{name}");
    }
}

fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn one_that_stays_locked_is_passed_over_and_told_when_it_is_whole() {
    let dir = tempfile::tempdir().unwrap();
    let (state, opened) = with_a_whole_one(dir.path());
    let mut keeping = Keeping::begin(&opened, "other").unwrap();
    let all = untold(&state).unwrap().read_within(Duration::ZERO);
    assert!(all.iter().any(|one| one.events == [Event::Exited { status: 7 }]), "{all:?}");
    assert!(matches!(reasons(&all)[..], [one] if one.contains("still being written")), "{all:?}");
    all.into_iter().for_each(|one| one.forget().unwrap());

    keeping.add(&Event::Exited { status: 8 }).unwrap();
    drop(keeping);
    let all = all_of(&state);
    assert!(matches!(&all[..], [one] if one.events == [Event::Exited { status: 8 }]), "{all:?}");
}

#[test]
fn what_was_not_searched_is_told_in_parts_that_are_each_told_whole() {
    assert_eq!(unsearched(vec![]), [Event::Unsearched { writable: vec![] }]);
    let long = |number: usize| format!("/{number}/{}", "n".repeat(MOST_TOLD / 3));
    let all: Vec<String> = (0..7).map(long).collect();
    let parts = unsearched(all.clone());
    let paths = |event: Event| {
        let Event::Unsearched { writable } = event else { panic!("{event:?}") };
        writable
    };
    let parts: Vec<Vec<String>> = parts.into_iter().map(paths).collect();
    assert_eq!(parts.concat(), all);
    assert!(parts.len() > 1);
    assert!(parts.iter().all(|part| !part.is_empty() && part.concat().len() <= MOST_TOLD), "{parts:?}");
}

#[test]
fn a_line_that_is_none_hides_nothing_after_it() {
    let path = |line: &str| format!("{line}\n");
    let text = path(r#"{"writable":"/a"}"#) + &path(r#"{"writable":"/b"#) + &path(r#"{"writable":"/c"}"#);
    let kept = parse(text.as_bytes());
    assert_eq!((kept.writable, kept.whole), (vec!["/a".to_owned(), "/c".to_owned()], false));
}
