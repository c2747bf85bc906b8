//! Offers that a person can choose from, made from what a call wants. Pure: the same call always gives the same offers.
//!
//! - The narrowest offer comes first.
//! - A folder is offered only where [`GrantLimits::may_be_granted`] says so: never `/`, the home directory, or
//!   anything that holds or lies in a protected path.
//! - Nothing that removes is offered for always.

mod project;
mod tool;

pub(super) use tool::tool_offer;

use super::grantable::{Grantable, RequestedAccess, folders, merged};
use super::{Consequence, Lifetime, Offer, Piece, Reach, visible};
use crate::grants::{GrantLimits, GrantSubject, Granted, StandingGrant};
use ironcurtain_paths::{CanonicalPath, PathKind};
use ironcurtain_policy::{Access, AccessSet};
use project::{open_folder_offer, project_offers};

/// The words on the choice to allow a call as a whole.
pub(super) const THIS_CALL: &str = "this call";

/// The longest foreign text within a sentence, in characters. The line of the question has all of it.
const LONGEST_IN_SENTENCE: usize = 200;

pub(super) const STANDING: [Lifetime; 4] =
    [Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour, Lifetime::Always];

/// The offers for a call of `client`. With something that is no path among it (`only_once`), no path stands.
#[must_use]
pub fn offers(client: &str, grantable: &Grantable, only_once: bool, limits: GrantLimits<'_>) -> Vec<Offer> {
    let requested = &grantable.requested;
    let removes = requested.iter().any(|w| w.access == Access::Delete);
    let standing = STANDING.into_iter().filter(|l| !(removes && *l == Lifetime::Always));
    let mut offers = vec![Offer {
        reach: Reach::Paths,
        label: paths_label(requested),
        sentence: paths_sentence(client, requested, limits.home),
        lifetimes: std::iter::once(Lifetime::Once)
            // A folder that is granted is a tree for the kernel: that is the other offer.
            .chain(
                standing
                    .clone()
                    .filter(|_| !only_once && requested.iter().all(|w| w.target != PathKind::Folder)),
            )
            .collect(),
    }];
    let folders = folders(requested);
    if !only_once && !folders.is_empty() && folders.iter().all(|(f, _)| limits.may_be_granted(f)) {
        let names: Vec<String> = folders.iter().map(|(f, _)| tilde(f, limits.home)).collect();
        let access = folders.iter().fold(AccessSet::default(), |all, (_, a)| union(all, *a));
        offers.push(Offer {
            reach: Reach::Folders,
            label: format!("everything in {}", joined(&names)),
            sentence: format!("{client} may {} everything in {} and below", verbs(access), joined(&names)),
            lifetimes: standing.collect(),
        });
    }
    if !only_once {
        offers.extend(open_folder_offer(client, grantable, limits));
        offers.extend(project_offers(client, grantable, limits));
    }
    offers
}

/// Grants of this. `name` gives each its id.
pub fn grants_of<E>(
    opened: Vec<Granted>,
    subject: &GrantSubject,
    (lifetime, now_ms): (Lifetime, u64),
    provenance: &str,
    mut name: impl FnMut() -> Result<String, E>,
) -> Result<Vec<StandingGrant>, E> {
    let session = subject.session.clone().filter(|_| lifetime == Lifetime::Session);
    let expires_ms =
        lifetime.length().map(|l| now_ms.saturating_add(u64::try_from(l.as_millis()).unwrap_or(u64::MAX)));
    let grant = |what| {
        Ok(StandingGrant {
            id: name()?,
            subject: GrantSubject { session: session.clone(), ..subject.clone() },
            what,
            lifetime,
            expires_ms,
            created_ms: now_ms,
            last_used_ms: None,
            uses: 0,
            provenance: provenance.to_owned(),
        })
    };
    opened.into_iter().map(grant).collect()
}

/// A path for people: home as `~`, deceptive characters made visible.
#[must_use]
pub fn tilde(path: &CanonicalPath, home: &CanonicalPath) -> String {
    visible::path(&below_home(path.as_str(), home))
}

fn below_home(path: &str, home: &CanonicalPath) -> String {
    let below = path.strip_prefix(home.as_str()).filter(|rest| rest.is_empty() || rest.starts_with('/'));
    below.map_or_else(|| path.to_owned(), |rest| format!("~{rest}"))
}

fn union(a: AccessSet, b: AccessSet) -> AccessSet {
    AccessSet { read: a.read || b.read, write: a.write || b.write, delete: a.delete || b.delete }
}

fn verbs(access: AccessSet) -> String {
    let words = [(access.read, "read"), (access.write, "write"), (access.delete, "delete")];
    joined(&words.iter().filter(|(has, _)| *has).map(|(_, word)| (*word).to_owned()).collect::<Vec<_>>())
}

pub(super) fn joined(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [all @ .., last] => format!("{} and {last}", all.join(", ")),
    }
}

fn paths_label(requested: &[RequestedAccess]) -> String {
    match merged(requested.iter().map(|w| (w.path.clone(), w.access))).len() {
        0 => THIS_CALL.to_owned(),
        1 => match requested.first().map(|w| w.target) {
            Some(PathKind::Folder) => "this folder".to_owned(),
            Some(PathKind::Missing) => "this one path".to_owned(),
            Some(PathKind::File { .. } | PathKind::Special) | None => "this file".to_owned(),
        },
        n => format!("these {n} paths"),
    }
}

fn paths_sentence(client: &str, requested: &[RequestedAccess], home: &CanonicalPath) -> String {
    let paths = merged(requested.iter().map(|w| (w.path.clone(), w.access)));
    let access = paths.iter().fold(AccessSet::default(), |all, (_, a)| union(all, *a));
    let what = match paths.as_slice() {
        [] => return format!("{client} may make this call"),
        [(path, _)] => tilde(path, home),
        all => format!("these {} paths", all.len()),
    };
    format!("{client} may {} {what}", verbs(access))
}

/// The sentence on allowing a call as a whole: its worst effect, and how many more there are.
pub(super) fn call_sentence(client: &str, lines: &[Consequence], home: &CanonicalPath) -> String {
    let Some((worst, others)) = lines.split_first() else { return format!("{client} may make this call") };
    let piece = |piece: &Piece| match piece {
        Piece::Ours(words) => (*words).to_owned(),
        Piece::Path(path) => below_home(path, home),
        Piece::Foreign(text) => visible::quoted(&visible::head(text, LONGEST_IN_SENTENCE)),
    };
    let object: String = worst.object.iter().map(piece).collect();
    let others = match others.len() {
        0 => String::new(),
        1 => " and 1 other thing".to_owned(),
        n => format!(" and {n} other things"),
    };
    format!("{client} may {} {object}{others}", worst.verb.word())
}

/// The folders that must be open for the server beside what it is asked for, a sentence each.
pub(super) fn opened_beside(requested: &[RequestedAccess], home: &CanonicalPath) -> Vec<String> {
    let beside = requested.iter().filter_map(|w| w.need.as_ref().filter(|need| need.path != w.path));
    let mut folders: Vec<String> = beside.map(|need| tilde(&need.path, home)).collect();
    folders.sort();
    folders.dedup();
    let sentence = |folder: String| {
        format!("Opens {folder}: meanwhile its server can read and change everything in there.")
    };
    folders.into_iter().map(sentence).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::Need;
    use ironcurtain_policy::GrantKind;

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
    fn a_project_is_offered_after_the_folder_to_read_and_to_change() {
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
        // Its own folder is the project already; a write is never answered by reading.
        let top = requested(Access::Read, "/home/u/app/README.md", PathKind::File { bytes: 3 });
        assert_eq!(kinds(&[top], "/home/u/app"), [Reach::Paths, Reach::Folders, Reach::ProjectToChange]);
        let write = requested(Access::Write, "/home/u/app/src/new.rs", PathKind::Missing);
        assert_eq!(kinds(&[write], "/home/u/app"), [Reach::Paths, Reach::Folders, Reach::ProjectToChange]);
        // Never home, what is above it, or what holds something protected.
        for root in ["/home/u", "/home", "/", "/home/u/work"] {
            assert_eq!(kinds(std::slice::from_ref(&file), root), [Reach::Paths, Reach::Folders], "{root}");
        }
        assert_eq!(offered_in(&[file], Some("/home/u/app"), true).len(), 1);
    }

    #[test]
    fn a_folder_that_may_be_read_already_is_offered_to_change_where_something_in_it_is_changed() {
        let offered = |requested: &[RequestedAccess], open: &str, project: Option<&str>| {
            let (open, project) = (Some(path(open)), project.map(path));
            let grantable =
                Grantable { requested: requested.to_vec(), open, project, ..Grantable::default() };
            let protected = [path("/home/u/work/secret")];
            let limits = GrantLimits { home: &path("/home/u"), protected: &protected };
            let all = offers("claude", &grantable, false, limits);
            let offer = all.into_iter().find(|offer| offer.reach == Reach::OpenFolderToChange);
            offer.map(|offer| (offer.sentence, offer.lifetimes, grantable.opened_by(offer.reach)))
        };
        let new = requested(Access::Write, "/home/u/notes/a/new.md", PathKind::Missing);
        let both = AccessSet { read: true, write: true, ..AccessSet::default() };
        let tree = |access| {
            let (path, kind) = (path("/home/u/notes"), GrantKind::Tree);
            vec![Granted::Files(crate::grants::Files { path, kind, access })]
        };
        let sentence = "claude may read and write everything in ~/notes and below".to_owned();
        let one = std::slice::from_ref(&new);
        assert_eq!(offered(one, "/home/u/notes", None), Some((sentence, STANDING.to_vec(), tree(both))));
        let gone = requested(Access::Delete, "/home/u/notes/a/old.md", PathKind::File { bytes: 3 });
        let (_, lifetimes, opened) = offered(&[new.clone(), gone], "/home/u/notes", None).unwrap();
        assert!(!lifetimes.contains(&Lifetime::Always));
        assert_eq!(opened, tree(AccessSet { delete: true, ..both }));
        // Read already; offered by its own name already; never to be granted.
        let read = requested(Access::Read, "/home/u/notes/a/b.md", PathKind::File { bytes: 3 });
        assert_eq!(offered(&[read], "/home/u/notes", None), None);
        assert_eq!(offered(one, "/home/u/notes/a", None), None);
        assert_eq!(offered(one, "/home/u/notes", Some("/home/u/notes")), None);
        for open in ["/home/u", "/", "/home/u/work"] {
            assert_eq!(offered(one, open, None), None, "{open}");
        }
    }

    #[test]
    fn a_project_that_something_is_removed_from_is_never_for_always() {
        let gone = requested(Access::Delete, "/home/u/app/src/old.rs", PathKind::File { bytes: 3 });
        let offers = offered_in(std::slice::from_ref(&gone), Some("/home/u/app"), false);
        assert_eq!(offers[2].reach, Reach::ProjectToChange);
        assert_eq!(offers[2].lifetimes, [Lifetime::Session, Lifetime::QuarterHour, Lifetime::Hour]);
        let opened =
            Grantable { requested: vec![gone], project: Some(path("/home/u/app")), ..Grantable::default() };
        let all = AccessSet { read: true, write: true, delete: true };
        let tree = |access| {
            vec![Granted::Files(crate::grants::Files {
                path: path("/home/u/app"),
                kind: GrantKind::Tree,
                access,
            })]
        };
        assert_eq!(opened.opened_by(Reach::ProjectToChange), tree(all));
        let read = AccessSet { read: true, ..AccessSet::default() };
        assert_eq!(opened.opened_by(Reach::ProjectToRead), tree(read));
        assert_eq!(Grantable::default().opened_by(Reach::ProjectToChange), vec![]);
    }

    #[test]
    fn a_read_of_a_file_offers_the_file_and_its_folder() {
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
                lifetimes: STANDING.to_vec(),
            },
        ];
        assert_eq!(
            offered(&[requested(Access::Read, "/home/u/docs/a.txt", PathKind::File { bytes: 3 })], false),
            expected
        );
    }

    #[test]
    fn home_root_and_what_holds_a_protected_path_are_never_offered() {
        for text in ["/home/u/a.txt", "/home/a.txt", "/a.txt", "/home/u/work/a.txt"] {
            let got = offered(&[requested(Access::Read, text, PathKind::File { bytes: 3 })], false);
            assert_eq!(got.iter().map(|o| o.reach).collect::<Vec<_>>(), [Reach::Paths], "{text}");
        }
    }

    #[test]
    fn a_removal_is_never_for_always_and_what_is_no_path_is_only_for_once() {
        let delete =
            offered(&[requested(Access::Delete, "/home/u/docs/a", PathKind::File { bytes: 3 })], false);
        assert!(delete.iter().all(|o| !o.lifetimes.contains(&Lifetime::Always)));
        let mixed = offered(&[requested(Access::Read, "/home/u/docs/a", PathKind::File { bytes: 3 })], true);
        assert_eq!(mixed.iter().map(|o| o.lifetimes.as_slice()).collect::<Vec<_>>(), [[Lifetime::Once]]);
    }

    #[test]
    fn a_folder_for_longer_than_once_is_offered_as_the_tree_it_is() {
        let got = offered(&[requested(Access::Read, "/home/u/docs", PathKind::Folder)], false);
        assert_eq!(got[0].lifetimes, [Lifetime::Once]);
        assert_eq!(got[1].label, "everything in ~/docs");
    }

    #[test]
    fn grants_carry_what_was_wanted_of_each_path_and_no_more() {
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
            let opened = grantable.opened_by(reach);
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
    fn what_the_kernel_must_show_beyond_the_path_is_a_sentence_for_each_folder() {
        let new = |name: &str| RequestedAccess {
            need: Some(Need::new(path("/home/u/docs"), true)),
            ..requested(Access::Write, name, PathKind::Missing)
        };
        let alone = RequestedAccess {
            need: Some(Need::new(path("/home/u/a"), true)),
            ..requested(Access::Write, "/home/u/a", PathKind::File { bytes: 1 })
        };
        let sentence = "Opens ~/docs: meanwhile its server can read and change everything in there.";
        let all = [new("/home/u/docs/new.md"), alone, new("/home/u/docs/other.md")];
        assert_eq!(opened_beside(&all, &path("/home/u")), [sentence]);
    }

    #[test]
    fn home_is_a_tilde_only_as_a_whole() {
        assert_eq!(tilde(&path("/home/u"), &path("/home/u")), "~");
        assert_eq!(tilde(&path("/home/uma/x"), &path("/home/u")), "/home/uma/x");
        assert_eq!(tilde(&path("/home/u/a\u{202e}b"), &path("/home/u")), "~/a\\u{202e}b");
    }
}
