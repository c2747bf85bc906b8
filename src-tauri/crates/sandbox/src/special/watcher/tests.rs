//! Tests of the watcher with real folders, pipes and moves.

use std::{fs, process::Command};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::*;
use crate::special::MAX_MASKED;

fn pipe(path: &str) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn temp_folder() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir_in("/var/tmp").unwrap();
    let text = dir.path().canonicalize().unwrap().to_str().unwrap().to_owned();
    (dir, text)
}

/// Runs the watcher until it has messages and no work left. Returns the messages.
fn events(watcher: &mut SpecialWatcher) -> Vec<(LinkNumber, SpecialFileEvent)> {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut events = Vec::new();
    while events.is_empty() || watcher.is_busy() {
        assert!(Instant::now() < deadline, "timed out waiting for news");
        events.extend(watcher.work());
    }
    events
}

fn watch(watcher: &mut SpecialWatcher, link: LinkNumber, root: &str, hidden: &[&str]) -> SpecialFileEvent {
    let hidden = hidden.iter().map(|path| (*path).to_owned()).collect();
    watcher.request(link, SpecialRequest::Watch { root: root.to_owned(), hidden });
    let events = events(watcher);
    assert_eq!(events.len(), 1, "{events:?}");
    events.into_iter().next().unwrap().1
}

fn appeared(link: LinkNumber, path: &str) -> (LinkNumber, SpecialFileEvent) {
    (link, SpecialFileEvent::Appeared { path: path.to_owned() })
}

#[test]
fn finds_existing_special_files_outside_hidden_paths() {
    let (_dir, root) = temp_folder();
    fs::create_dir_all(format!("{root}/a/b")).unwrap();
    fs::create_dir(format!("{root}/hidden")).unwrap();
    fs::write(format!("{root}/a/file"), "").unwrap();
    let (deep, secret) = (format!("{root}/a/b/pipe"), format!("{root}/hidden/pipe"));
    pipe(&deep);
    pipe(&secret);
    let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
    let event = watch(&mut watcher, 1, &root, &[&format!("{root}/hidden")]);
    assert_eq!(event, SpecialFileEvent::Watched { root: root.clone(), found: vec![deep] });
    let SpecialFileEvent::Watched { found, .. } = watch(&mut watcher, 2, &root, &[]) else { panic!() };
    assert!(found.contains(&secret), "{found:?}");
}

#[test]
fn reports_new_special_files_in_a_watched_folder() {
    let (_dir, root) = temp_folder();
    let (_other, elsewhere) = temp_folder();
    fs::create_dir(format!("{root}/a")).unwrap();
    let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
    watch(&mut watcher, 1, &root, &[]);
    let at = |name: &str| format!("{root}/{name}");
    pipe(&at("a/made"));
    assert_eq!(events(&mut watcher), [appeared(1, &at("a/made"))]);
    let outside = format!("{elsewhere}/pipe");
    pipe(&outside);
    fs::hard_link(&outside, at("linked")).unwrap();
    assert_eq!(events(&mut watcher), [appeared(1, &at("linked"))]);
    fs::rename(&outside, at("moved")).unwrap();
    assert_eq!(events(&mut watcher), [appeared(1, &at("moved"))]);
    // Both a tree that is moved in and a tree that is created in place are searched.
    fs::create_dir_all(format!("{elsewhere}/tree/deep")).unwrap();
    pipe(&format!("{elsewhere}/tree/deep/pipe"));
    fs::rename(format!("{elsewhere}/tree"), at("tree")).unwrap();
    assert_eq!(events(&mut watcher), [appeared(1, &at("tree/deep/pipe"))]);
    fs::create_dir_all(at("new/deep")).unwrap();
    pipe(&at("new/deep/pipe"));
    assert_eq!(events(&mut watcher).first(), Some(&appeared(1, &at("new/deep/pipe"))));
    // A renamed folder is watched under its new name.
    fs::rename(at("tree"), at("a/tree")).unwrap();
    assert_eq!(events(&mut watcher), [appeared(1, &at("a/tree/deep/pipe"))]);
    pipe(&at("a/tree/deep/second"));
    let event = events(&mut watcher);
    assert_eq!(event, [appeared(1, &at("a/tree/deep/second"))]);
    watcher.request(1, SpecialRequest::Unwatch { root: root.clone() });
    pipe(&at("a/later"));
    assert_eq!(watcher.work(), []);
}

#[test]
fn reports_moved_folder_when_a_name_appears_in_it() {
    let (_dir, base) = temp_folder();
    let (root, moved) = (format!("{base}/above/root"), format!("{base}/elsewhere/root"));
    fs::create_dir_all(&root).unwrap();
    let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
    watch(&mut watcher, 1, &root, &[]);
    fs::rename(format!("{base}/above"), format!("{base}/elsewhere")).unwrap();
    pipe(&format!("{moved}/pipe"));
    let reason = format!("`{root}` was moved while it was mounted in a sandbox");
    assert_eq!(events(&mut watcher), [(1, SpecialFileEvent::Refused { root, reason })]);
}

#[test]
fn folder_over_a_limit_is_refused_with_advice() {
    let (_dir, root) = temp_folder();
    for name in 0..5 {
        fs::create_dir(format!("{root}/{name}")).unwrap();
    }
    let refusal = |bounds: FolderBounds| {
        let mut watcher = SpecialWatcher::new(bounds).unwrap();
        let event = watch(&mut watcher, 1, &root, &[]);
        let SpecialFileEvent::Refused { reason, .. } = event else { panic!("{event:?}") };
        reason
    };
    let reason = refusal(FolderBounds { folders: 5, ..BOUNDS });
    assert_eq!(
        reason,
        format!(
            "`{root}` has more than 5 folders, too many to watch for named pipes and sockets; allow a smaller folder inside it"
        )
    );
    assert_eq!(
        refusal(FolderBounds { names: 4, ..BOUNDS }),
        format!(
            "`{root}` has more than 4 names, too many to search for named pipes and sockets; allow a smaller folder inside it"
        )
    );
    let mut watcher = SpecialWatcher::new(FolderBounds { folders: 6, names: 5, ..BOUNDS }).unwrap();
    assert!(matches!(watch(&mut watcher, 1, &root, &[]), SpecialFileEvent::Watched { .. }));
    (0..=MAX_MASKED).for_each(|number| pipe(&format!("{root}/1/{number}")));
    assert_eq!(
        refusal(BOUNDS),
        format!(
            "`{root}` has more than 512 named pipes and sockets, too many to mask; allow a smaller folder inside it"
        )
    );
}

#[test]
fn masks_folder_that_cannot_be_listed() {
    let (_dir, root) = temp_folder();
    let closed_folder = format!("{root}/shut");
    fs::create_dir(&closed_folder).unwrap();
    let mode =
        |mode: &str| assert!(Command::new("chmod").args([mode, &closed_folder]).status().unwrap().success());
    mode("111");
    let can_list = fs::read_dir(Path::new(&closed_folder)).is_ok();
    let mut watcher = SpecialWatcher::new(BOUNDS).unwrap();
    let SpecialFileEvent::Watched { found, .. } = watch(&mut watcher, 1, &root, &[]) else { panic!() };
    // Root can list every folder.
    assert_eq!(found, if can_list { vec![] } else { vec![closed_folder.clone()] });
    mode("755");
}
