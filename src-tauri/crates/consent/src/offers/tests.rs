//! Tests the offers for each kind of call.

use super::*;
use crate::tests::question;
use ironcurtain_grants::Client;
use ironcurtain_grants::mounts::MountRequest;
use ironcurtain_policy::{Access, GrantKind};
use ironcurtain_protocol::ClientView;
use std::sync::Arc;

fn path(text: &str) -> CanonicalPath {
    CanonicalPath::assume_canonical(text).unwrap()
}

fn requested(access: Access, text: &str, target: PathKind) -> RequestedAccess {
    RequestedAccess { access, path: path(text), target, need: None }
}

fn offered(requested: &[RequestedAccess], only_once: bool) -> Vec<Offer> {
    offered_in(requested, None, only_once)
}

fn offered_in(requested: &[RequestedAccess], project: Option<&str>, only_once: bool) -> Vec<Offer> {
    let protected = [path("/home/u/.ssh"), path("/home/u/work/secret")];
    let project = project.map(path);
    let grantable = Grantable { requested: requested.to_vec(), project, ..Grantable::default() };
    offers("claude", &grantable, only_once, GrantLimits { home: &path("/home/u"), protected: &protected })
}

#[test]
fn new_servers_and_unidentified_clients_get_shorter_lifetimes() {
    let limited = |exe: Option<&str>, is_new: bool, max| {
        let view = ClientView { exe: exe.map(str::to_owned), ..question("q").client };
        let principal = Principal {
            session: "s".into(),
            client: Client { key: "k".into(), view },
            claimed_name: Arc::default(),
            server: "notes".into(),
            server_command: "notes".into(),
            sandboxed: true,
            remote: false,
            is_new,
        };
        let file = requested(Access::Read, "/home/u/app/a", PathKind::File { bytes: 3 });
        let mut all = offered(&[file], false);
        limit(&mut all, &principal, max);
        all.into_iter().map(|offer| offer.lifetimes).collect::<Vec<_>>()
    };
    let lifetimes = |exe, is_new| limited(exe, is_new, None);
    let all = [vec![Lifetime::Once], ALL_LIFETIMES.to_vec()].concat();
    assert_eq!(lifetimes(Some("/opt/claude"), false), [all.clone(), ALL_LIFETIMES.to_vec()]);
    assert_eq!(lifetimes(Some("/opt/claude"), true), [all[..4].to_vec(), ALL_LIFETIMES[..3].to_vec()]);
    let session = [vec![Lifetime::Once, Lifetime::Session], vec![Lifetime::Session]];
    assert_eq!([lifetimes(None, false), lifetimes(None, true)], [session.to_vec(), session.to_vec()]);
    let minutes = |minutes: u64| limited(Some("/opt/claude"), false, Some(Duration::from_secs(60 * minutes)));
    assert_eq!(minutes(60), [all[..4].to_vec(), ALL_LIFETIMES[..3].to_vec()]);
    assert_eq!(minutes(59), [all[..3].to_vec(), ALL_LIFETIMES[..2].to_vec()]);
    assert_eq!(minutes(1), session);
}

#[test]
fn question_tells_when_the_organization_ends_permissions() {
    let file = requested(Access::Read, "/home/u/app/a", PathKind::File { bytes: 3 });
    let mut offers = offered(&[file], false);
    let told =
        |offers: &[Offer], minutes: u64| max_lifetime_sentence(offers, Duration::from_secs(60 * minutes));
    let sentence = "Your organization ends every permission after 90 minutes.";
    assert_eq!(told(&offers, 90).as_deref(), Some(sentence));
    offers.iter_mut().for_each(|offer| offer.lifetimes = vec![Lifetime::Once]);
    assert_eq!(told(&offers, 90), None);
}

#[test]
fn a_project_is_offered_for_reading_and_changing_after_the_folder() {
    let reads = |offers: Vec<Offer>| -> Vec<(Reach, String)> {
        offers.into_iter().map(|offer| (offer.reach, offer.sentence)).collect()
    };
    let file = requested(Access::Read, "/home/u/app/src/main.rs", PathKind::File { bytes: 3 });
    let got = reads(offered_in(std::slice::from_ref(&file), Some("/home/u/app"), false));
    let expected = [
        (Reach::Paths, "claude may read ~/app/src/main.rs".to_owned()),
        (Reach::Folders, "claude may read everything in ~/app/src and below".to_owned()),
        (Reach::ProjectToRead, "claude may read everything in the project ~/app and below".to_owned()),
        (
            Reach::ProjectToChange,
            "claude may read and write everything in the project ~/app and below".to_owned(),
        ),
    ];
    assert_eq!(got, expected);
    let kinds = |of: &[RequestedAccess], project| -> Vec<Reach> {
        offered_in(of, Some(project), false).into_iter().map(|offer| offer.reach).collect()
    };
    // The file's folder is the project itself, and a call that writes gets no offer to read.
    let top = requested(Access::Read, "/home/u/app/README.md", PathKind::File { bytes: 3 });
    assert_eq!(kinds(&[top], "/home/u/app"), [Reach::Paths, Reach::Folders, Reach::ProjectToChange]);
    let write = requested(Access::Write, "/home/u/app/src/new.rs", PathKind::Missing);
    assert_eq!(kinds(&[write], "/home/u/app"), [Reach::Paths, Reach::Folders, Reach::ProjectToChange]);
    // The home directory, its ancestors and a folder with a protected path are never granted.
    for root in ["/home/u", "/home", "/", "/home/u/work"] {
        assert_eq!(kinds(std::slice::from_ref(&file), root), [Reach::Paths, Reach::Folders], "{root}");
    }
    assert_eq!(offered_in(&[file], Some("/home/u/app"), true).len(), 1);
}

#[test]
fn an_open_folder_is_offered_for_changing_when_a_file_in_it_changes() {
    let offered = |requested: &[RequestedAccess], readable_folder: &str, project: Option<&str>| {
        let (readable_folder, project) = (Some(path(readable_folder)), project.map(path));
        let grantable =
            Grantable { requested: requested.to_vec(), readable_folder, project, ..Grantable::default() };
        let protected = [path("/home/u/work/secret")];
        let limits = GrantLimits { home: &path("/home/u"), protected: &protected };
        let all = offers("claude", &grantable, false, limits);
        let offer = all.into_iter().find(|offer| offer.reach == Reach::OpenFolderToChange);
        offer.map(|offer| (offer.sentence, offer.lifetimes, grantable.permissions_for(offer.reach)))
    };
    let new = requested(Access::Write, "/home/u/notes/a/new.md", PathKind::Missing);
    let both = AccessSet { read: true, write: true, ..AccessSet::default() };
    let tree = |access| {
        let (path, kind) = (path("/home/u/notes"), GrantKind::Tree);
        vec![Granted::Files(ironcurtain_grants::Files { path, kind, access })]
    };
    let sentence = "claude may read and write everything in ~/notes and below".to_owned();
    let one = std::slice::from_ref(&new);
    assert_eq!(offered(one, "/home/u/notes", None), Some((sentence, ALL_LIFETIMES.to_vec(), tree(both))));
    let gone = requested(Access::Delete, "/home/u/notes/a/old.md", PathKind::File { bytes: 3 });
    let (_, lifetimes, opened) = offered(&[new.clone(), gone], "/home/u/notes", None).unwrap();
    assert!(!lifetimes.contains(&Lifetime::Always));
    assert_eq!(opened, tree(AccessSet { delete: true, ..both }));
    // No offer if the call only reads, the folder already has an offer, or the folder can never be granted.
    let read = requested(Access::Read, "/home/u/notes/a/b.md", PathKind::File { bytes: 3 });
    assert_eq!(offered(&[read], "/home/u/notes", None), None);
    assert_eq!(offered(one, "/home/u/notes/a", None), None);
    assert_eq!(offered(one, "/home/u/notes", Some("/home/u/notes")), None);
    for open in ["/home/u", "/", "/home/u/work"] {
        assert_eq!(offered(one, open, None), None, "{open}");
    }
}

#[test]
fn a_project_is_never_offered_for_always_when_deleting() {
    let gone = requested(Access::Delete, "/home/u/app/src/old.rs", PathKind::File { bytes: 3 });
    let offers = offered_in(std::slice::from_ref(&gone), Some("/home/u/app"), false);
    assert_eq!(offers[2].reach, Reach::ProjectToChange);
    assert_eq!(offers[2].lifetimes, [Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour]);
    let opened =
        Grantable { requested: vec![gone], project: Some(path("/home/u/app")), ..Grantable::default() };
    let all = AccessSet { read: true, write: true, delete: true };
    let tree = |access| {
        vec![Granted::Files(ironcurtain_grants::Files {
            path: path("/home/u/app"),
            kind: GrantKind::Tree,
            access,
        })]
    };
    assert_eq!(opened.permissions_for(Reach::ProjectToChange), tree(all));
    let read = AccessSet { read: true, ..AccessSet::default() };
    assert_eq!(opened.permissions_for(Reach::ProjectToRead), tree(read));
    assert_eq!(Grantable::default().permissions_for(Reach::ProjectToChange), vec![]);
}

#[test]
fn reading_a_file_offers_the_file_and_its_folder() {
    let expected = [
        Offer {
            reach: Reach::Paths,
            label: "this file".into(),
            sentence: "claude may read ~/docs/a.txt".into(),
            lifetimes: vec![
                Lifetime::Once,
                Lifetime::Session,
                Lifetime::QuarterHour,
                Lifetime::Hour,
                Lifetime::Always,
            ],
        },
        Offer {
            reach: Reach::Folders,
            label: "everything in ~/docs".into(),
            sentence: "claude may read everything in ~/docs and below".into(),
            lifetimes: ALL_LIFETIMES.to_vec(),
        },
    ];
    assert_eq!(
        offered(&[requested(Access::Read, "/home/u/docs/a.txt", PathKind::File { bytes: 3 })], false),
        expected
    );
}

#[test]
fn several_folders_are_counted_in_the_label_and_named_in_the_sentence() {
    let file = |name: &str| requested(Access::Read, name, PathKind::File { bytes: 3 });
    let got = offered(&[file("/home/u/docs/a"), file("/home/u/notes/b")], false);
    let words: Vec<(&str, &str)> = got.iter().map(|offer| (&*offer.label, &*offer.sentence)).collect();
    let expected = [
        ("these 2 files", "claude may read these 2 files"),
        ("everything in these 2 folders", "claude may read everything in ~/docs and ~/notes and below"),
    ];
    assert_eq!(words, expected);
    let folder = |name: &str| requested(Access::Read, name, PathKind::Folder);
    assert_eq!(
        offered(&[folder("/home/u/docs"), folder("/home/u/notes")], false)[0].label,
        "these 2 folders"
    );
    assert_eq!(offered(&[folder("/home/u/docs"), file("/home/u/notes/b")], false)[0].label, "these 2 paths");
}

#[test]
fn home_root_and_parents_of_protected_paths_are_never_offered() {
    for text in ["/home/u/a.txt", "/home/a.txt", "/a.txt", "/home/u/work/a.txt"] {
        let got = offered(&[requested(Access::Read, text, PathKind::File { bytes: 3 })], false);
        assert_eq!(got.iter().map(|o| o.reach).collect::<Vec<_>>(), [Reach::Paths], "{text}");
    }
}

#[test]
fn deleting_is_never_offered_for_always_and_other_needs_only_once() {
    let delete = offered(&[requested(Access::Delete, "/home/u/docs/a", PathKind::File { bytes: 3 })], false);
    assert!(delete.iter().all(|o| !o.lifetimes.contains(&Lifetime::Always)));
    let mixed = offered(&[requested(Access::Read, "/home/u/docs/a", PathKind::File { bytes: 3 })], true);
    assert_eq!(mixed.iter().map(|o| o.lifetimes.as_slice()).collect::<Vec<_>>(), [[Lifetime::Once]]);
}

#[test]
fn a_folder_is_offered_as_a_tree() {
    let got = offered(&[requested(Access::Read, "/home/u/docs", PathKind::Folder)], false);
    assert_eq!(got[0].lifetimes, [Lifetime::Once]);
    assert_eq!(got[1].label, "everything in ~/docs");
}

#[test]
fn grants_have_exactly_the_requested_access() {
    let both = [
        requested(Access::Read, "/home/u/docs/a", PathKind::File { bytes: 1 }),
        requested(Access::Write, "/home/u/docs/a", PathKind::File { bytes: 1 }),
        requested(Access::Read, "/home/u/pics/b", PathKind::File { bytes: 1 }),
    ];
    let subject = GrantSubject {
        client: "k".into(),
        client_name: "n".into(),
        server: "s".into(),
        session: Some("one".into()),
    };
    let give = |reach, lifetime| {
        let grantable = Grantable { requested: both.to_vec(), ..Grantable::default() };
        let opened = grantable.permissions_for(reach);
        grants_of(opened, &subject, (lifetime, 1000), "question q", || Ok::<_, ()>("id".into())).unwrap()
    };
    let files = give(Reach::Paths, Lifetime::Hour);
    let short = |grants: &[StandingGrant]| -> Vec<(String, AccessSet, GrantKind)> {
        let files = grants.iter().filter_map(StandingGrant::files);
        files.map(|f| (f.path.as_str().to_owned(), f.access, f.kind)).collect()
    };
    let read = AccessSet::only(Access::Read);
    let expected = [
        ("/home/u/docs/a".to_owned(), read.with(Access::Write), GrantKind::File),
        ("/home/u/pics/b".to_owned(), read, GrantKind::File),
    ];
    assert_eq!(short(&files), expected);
    assert_eq!((files[0].subject.session.as_deref(), files[0].expires_ms), (None, Some(3_601_000)));
    let folders = give(Reach::Folders, Lifetime::Session);
    assert_eq!(short(&folders)[0].0, "/home/u/docs");
    assert_eq!(short(&folders)[0].2, GrantKind::Tree);
    assert_eq!((folders[0].subject.session.as_deref(), folders[0].expires_ms), (Some("one"), None));
}

#[test]
fn each_additionally_opened_folder_has_a_sentence() {
    let new = |name: &str| RequestedAccess {
        need: Some(MountRequest::new(path("/home/u/docs"), true)),
        ..requested(Access::Write, name, PathKind::Missing)
    };
    let alone = RequestedAccess {
        need: Some(MountRequest::new(path("/home/u/a"), true)),
        ..requested(Access::Write, "/home/u/a", PathKind::File { bytes: 1 })
    };
    let sentence = "To do this, the server briefly gets access to everything in ~/docs.";
    let all = [new("/home/u/docs/new.md"), alone, new("/home/u/docs/other.md")];
    assert_eq!(opened_folders(&all, &path("/home/u")), [sentence]);
}

#[test]
fn only_the_whole_home_path_becomes_a_tilde() {
    assert_eq!(tilde(&path("/home/u"), &path("/home/u")), "~");
    assert_eq!(tilde(&path("/home/uma/x"), &path("/home/u")), "/home/uma/x");
    assert_eq!(tilde(&path("/home/u/a\u{202e}b"), &path("/home/u")), "~/a\\u{202e}b");
}
