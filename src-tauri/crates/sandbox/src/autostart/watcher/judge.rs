//! Judges the file at a path and acts on the verdict.

use std::{cell::OnceCell, hash::BuildHasher, os::fd::OwnedFd, time::Instant};

use rustix::fs::{Mode, OFlags, openat, readlinkat};

use super::{Watcher, folder_check::APPEARED, watched_sandbox::WatchedSandbox};
use crate::{
    autostart::{
        AutostartMode, ChangeKind, Finding,
        baseline::{BaselineDifference, MAX_KEPT_LEN, content},
        budget::weight,
        content::{FileVersions, judge},
        file_stamp::FileStamp,
        folder_walk::{is_folder, shown},
        git,
        name_table::{ContentCheck, KnownName, RunVerdict},
        name_text::{path_text, raw, text},
        paths::{above, last},
        quarantine::QuarantineSlot,
        reopened_folders::{open_folder, open_reopening},
    },
    place::is_at_or_below,
};

/// Maximum number of files whose content is rechecked periodically.
const MAX_CONTENTS: usize = 200;
/// Maximum length of a reported diff in bytes.
const MAX_DIFFERENCE_LEN: usize = 4 << 10;

/// Verdict on a path under the rules of one sandbox.
struct RuleDecision {
    name: String,
    row: KnownName,
    /// Length of the part of the path that matches the listed name.
    end: usize,
    /// New folder to report instead of the path.
    folder: Option<String>,
    verdict: RunVerdict,
    change: ChangeKind,
    before: Option<Vec<u8>>,
}

impl Watcher {
    /// Judges the file at `path` in the folder `dir`. Returns `true` if the file was moved away.
    pub(super) fn consider(&mut self, dir: &OwnedFd, path: &str) -> bool {
        let rows = self.rows(path);
        if rows.is_empty() {
            return false;
        }
        let Ok(now) = FileStamp::of(dir, last(path)) else {
            self.sandboxes.values_mut().for_each(|sandbox| _ = sandbox.left.remove(path));
            return false;
        };
        let text = OnceCell::new();
        let text = || text.get_or_init(|| content(dir, last(path), git::MAX_LEN)).as_deref();
        let mut decisions = Vec::new();
        for (name, row, end) in rows {
            if now.is_dir && (end < path.len() || !row.folder) {
                continue;
            }
            let Some(sandbox) = self.sandboxes.get_mut(&name) else { continue };
            let is_config = row.group.check == ContentCheck::GitConfig && now.is_file;
            let Some(BaselineDifference { change, before, is_known }) =
                sandbox.difference(path, &now, &text, is_config)
            else {
                sandbox.left.remove(path);
                continue;
            };
            if now.is_dir {
                decisions.extend(sandbox.folder_decision(name, path, (row, end), change));
                continue;
            }
            let verdict = if !is_config {
                self.verdict(&name, dir, path, &row, text(), before.as_deref())
            } else if is_known {
                self.guard_config(&name, dir, path, before.as_deref(), text());
                continue;
            } else {
                self.config_verdict(&name, path, text())
            };
            // A file that the user may have written is reported but left in place.
            let verdict =
                if !is_known && verdict == RunVerdict::Unasked { RunVerdict::Listed } else { verdict };
            let folder = self.sandboxes.get(&name).and_then(|sandbox| sandbox.new_folder(path, &row, end));
            decisions.push(RuleDecision { name, row, end, folder, verdict, change, before });
        }
        if !now.is_dir && !decisions.is_empty() {
            self.watch_content(dir, path);
        }
        self.follow(dir, path, decisions, &text)
    }

    /// Returns, for each sandbox that can write to a path, the matching name and the length of the matched part.
    fn rows(&self, path: &str) -> Vec<(String, KnownName, usize)> {
        let references = self.references.row(path);
        let sandboxes = self.sandboxes.iter().filter(|(_, sandbox)| sandbox.around(path).next().is_some());
        let rows = sandboxes.filter_map(|(name, sandbox)| {
            let by_name = sandbox.names.find(path, |path| self.git_folders.holds(path));
            // A reference never weakens the verdict on the name itself.
            let (row, end) = match by_name {
                Some(named) if named.0.group.verdict == RunVerdict::Unasked => named,
                Some(_) | None => references.or(by_name)?,
            };
            Some((name.clone(), row, end))
        });
        rows.collect()
    }

    fn verdict(
        &mut self,
        name: &str,
        dir: &OwnedFd,
        path: &str,
        row: &KnownName,
        now: Option<&[u8]>,
        before: Option<&[u8]>,
    ) -> RunVerdict {
        let Some(sandbox) = self.sandboxes.get(name) else { return RunVerdict::Harmless };
        let verdict = if row.group.check == ContentCheck::Redirect {
            match target(dir, path, now) {
                RedirectTarget::Nothing => RunVerdict::Harmless,
                // A complete repository needs no other folder.
                RedirectTarget::At(_)
                    if last(path).eq_ignore_ascii_case("commondir") && is_folder(dir, "objects") =>
                {
                    RunVerdict::Unasked
                }
                RedirectTarget::At(target)
                    if sandbox.around(&target).next().is_some() && is_plain(&target) =>
                {
                    // Everything in the target must be checked, regardless of its name.
                    if self.git_folders.insert(target.clone()) {
                        self.look(&target, APPEARED);
                    }
                    RunVerdict::Harmless
                }
                RedirectTarget::At(_) | RedirectTarget::Unknown => RunVerdict::Unasked,
            }
        } else {
            let home = sandbox.rules.home.as_deref();
            judge(row, FileVersions { path, now, before, home })
        };
        let Some(sandbox) = self.sandboxes.get(name) else { return verdict };
        let strict = sandbox.rules.mode == AutostartMode::Strict && row.group.strict;
        if strict && verdict == RunVerdict::Listed { RunVerdict::Unasked } else { verdict }
    }

    /// Starts rechecking a file that is judged by its content, because a program may still be writing to it.
    pub(super) fn watch_content(&mut self, dir: &OwnedFd, path: &str) {
        if self.contents.len() < MAX_CONTENTS {
            self.contents.insert(path.to_owned(), self.digest(dir, path));
        }
        if let Ok(file) =
            openat(dir, &*raw(last(path)), OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
            && let Err(error) = self.queue.content(path, &file)
        {
            self.report_once(path, "watch", error.to_string());
        }
    }

    /// Rechecks files that are judged by their content, because writes through `mmap` cause no events.
    pub(super) fn recheck_contents(&mut self) {
        self.looked = Instant::now();
        for path in self.contents.keys().cloned().collect::<Vec<_>>() {
            let Ok(dir) = open_folder(above(&path)) else {
                self.contents.remove(&path);
                continue;
            };
            let now = self.digest(&dir, &path);
            if now.is_none() {
                self.contents.remove(&path);
            } else if self.contents.insert(path.clone(), now) != Some(now) {
                self.consider(&dir, &path);
            }
        }
    }

    fn digest(&self, dir: &OwnedFd, path: &str) -> Option<u64> {
        Some(self.digests.hash_one(content(dir, last(path), git::MAX_LEN)?))
    }

    /// Carries out the verdicts on a path. Returns `true` if the file was moved away.
    fn follow<'a>(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        decisions: Vec<RuleDecision>,
        text: &impl Fn() -> Option<&'a [u8]>,
    ) -> bool {
        let is_named = self.sandboxes.values().any(|sandbox| sandbox.named.contains(path));
        let unasked = |decision: &RuleDecision| decision.verdict == RunVerdict::Unasked;
        if !is_named && decisions.iter().any(unasked) {
            let concerned: Vec<&RuleDecision> =
                decisions.iter().filter(|decision| decision.verdict != RunVerdict::Harmless).collect();
            let when = concerned.first().map_or("", |decision| decision.row.group.when);
            let names: Vec<&str> = concerned.iter().map(|decision| decision.name.as_str()).collect();
            let place = concerned.first().and_then(|decision| path.get(..decision.end)).unwrap_or(path);
            return self.move_away(dir, path, place, when, &names);
        }
        for RuleDecision { name, row, end: _, folder, verdict, change, before } in decisions {
            let Some(sandbox) = self.sandboxes.get_mut(&name) else { continue };
            if verdict == RunVerdict::Harmless {
                sandbox.left.remove(path);
                continue;
            }
            if let Some(folder) = folder {
                let when = row.group.when.to_owned();
                let left = Finding::Left { path: folder.clone(), when, change: ChangeKind::New, diff: None };
                sandbox.list(&folder, left);
                continue;
            }
            let before = if change == ChangeKind::New { Some(vec![]) } else { before };
            let diff = before.zip(text()).and_then(|(before, now)| difference(&before, now));
            let left = Finding::Left { path: path.to_owned(), when: row.group.when.to_owned(), change, diff };
            sandbox.list(path, left);
        }
        false
    }

    /// Quarantines a path, or the nearest folder above it that can be moved, and reports this to the sandboxes
    /// `names`. The move counts against the limit for `counted`.
    pub(super) fn move_away(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        counted: &str,
        when: &str,
        names: &[&str],
    ) -> bool {
        let (mut place, mut moved) = (path, self.move_one(dir, path, when, names));
        if moved.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
            && let Some((around, moved_to)) = self.move_around(path, when, names)
        {
            (place, moved) = (around, Ok(moved_to));
        }
        let (finding, is_gone) = match moved {
            Ok(moved_to) => {
                self.count_move(counted, weight(&moved_to), names);
                (Finding::Quarantined { path: shown(place), moved_to, when: when.to_owned() }, true)
            }
            // Another process has removed the file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return true,
            Err(error) => {
                let reason = format!("failed to move the new file `{}` to quarantine: {error}", shown(path));
                (Finding::Unfinished { reason }, false)
            }
        };
        for name in names {
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                sandbox.left.remove(path);
                sandbox.report(finding.clone());
            }
        }
        is_gone
    }

    fn move_one(&mut self, dir: &OwnedFd, path: &str, when: &str, names: &[&str]) -> std::io::Result<String> {
        let prepared = QuarantineSlot::new(&self.state, path)?;
        let moved_to = path_text(&prepared.to(last(path)));
        let finding = Finding::Quarantined { path: shown(path), moved_to, when: when.to_owned() };
        for name in names {
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                // Ignores the error: the finding is lost only if this process is killed.
                let _ = sandbox.journal.found(&finding);
            }
        }
        if self.is_spent(names) {
            prepared.disarm(dir, last(path))
        } else {
            prepared.move_away(dir, last(path))
        }
    }

    /// Returns `true` if the budget of any of these sandboxes' sessions is used up.
    pub(super) fn is_spent(&mut self, names: &[&str]) -> bool {
        names.iter().any(|name| self.budgets.of(name).is_spent())
    }

    /// Counts a quarantined file for these sandboxes' sessions.
    pub(super) fn count_move(&mut self, counted: &str, bytes: u64, names: &[&str]) {
        let mut sessions = std::collections::BTreeMap::new();
        for name in names {
            let session = name.split_once('.').map_or(*name, |(session, _)| session);
            let limit =
                *sessions.entry(session).or_insert_with(|| self.budgets.of(name).count(counted, bytes));
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                sandbox.limit(counted, limit);
            }
        }
    }

    /// Quarantines the nearest new folder above a path. Used for files that cannot be moved alone, for example in a
    /// renamed folder of another user. Existing folders are never moved.
    fn move_around<'a>(&mut self, path: &'a str, when: &str, names: &[&str]) -> Option<(&'a str, String)> {
        let mut around = above(path);
        while self.is_in_root(around) && !self.is_root(around) {
            let came =
                |sandbox: &WatchedSandbox| sandbox.around(around).any(|(_, baseline)| baseline.came(around));
            if self.sandboxes.values().any(came)
                && let Ok((dir, _shut)) = open_reopening(above(around))
                && let Ok(moved_to) = self.move_one(&dir, around, when, names)
            {
                return Some((around, moved_to));
            }
            around = above(around);
        }
        None
    }
}

impl WatchedSandbox {
    /// Returns the difference between a file and the baseline, or `None` if the sandbox cannot have caused it.
    fn difference<'a>(
        &self,
        path: &str,
        now: &FileStamp,
        text: &impl Fn() -> Option<&'a [u8]>,
        is_config: bool,
    ) -> Option<BaselineDifference> {
        let named = self.named.contains(path);
        self.around(path).find_map(|(_, baseline)| baseline.difference(path, now, text, named, is_config))
    }

    /// Returns the verdict on a new folder with a listed name. The folder is quarantined as a whole if every file in it
    /// would be quarantined.
    fn folder_decision(
        &self,
        name: String,
        path: &str,
        (row, end): (KnownName, usize),
        change: ChangeKind,
    ) -> Option<RuleDecision> {
        let strict = self.rules.mode == AutostartMode::Strict && row.group.strict;
        let unasked =
            row.group.check == ContentCheck::Always && (strict || row.group.verdict == RunVerdict::Unasked);
        let is_named = self.named.iter().any(|named| is_at_or_below(named, path));
        (unasked && !is_named && change == ChangeKind::New).then_some(RuleDecision {
            name,
            row,
            end,
            folder: None,
            verdict: RunVerdict::Unasked,
            change,
            before: None,
        })
    }

    /// Returns the new folder to report instead of the path, if package managers write such folders.
    fn new_folder(&self, path: &str, row: &KnownName, end: usize) -> Option<String> {
        let folder = path.get(..end).filter(|_| row.group.installed && row.folder && end < path.len())?;
        self.around(path).any(|(_, baseline)| baseline.is_new_folder(folder)).then(|| folder.to_owned())
    }
}

/// Target of a file that redirects git to another folder.
enum RedirectTarget {
    /// No folder, for example because the file is incomplete.
    Nothing,
    At(String),
    Unknown,
}

fn target(dir: &OwnedFd, path: &str, now: Option<&[u8]>) -> RedirectTarget {
    let link;
    let text = match now {
        Some(now) => std::str::from_utf8(now).ok(),
        None => {
            link = readlinkat(dir, &*raw(last(path)), Vec::new()).ok().map(|link| text(link.as_bytes()));
            link.as_deref()
        }
    };
    let Some(text) = text else { return RedirectTarget::Unknown };
    let text = text.trim_end_matches(['\n', '\r']);
    let named = if last(path).eq_ignore_ascii_case(".git") && now.is_some() {
        text.strip_prefix("gitdir:").map(str::trim_start)
    } else {
        Some(text)
    };
    match named {
        _ if text.is_empty() => RedirectTarget::Nothing,
        // Git ignores a `.git` file without `gitdir:`.
        None => RedirectTarget::Nothing,
        Some(named) => git::resolve(above(path), named).map_or(RedirectTarget::Unknown, RedirectTarget::At),
    }
}

/// Returns `true` if the existing part of a path contains no symlinks.
fn is_plain(path: &str) -> bool {
    path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]).all(|end| {
        let about = path.get(..end).map(|path| std::fs::symlink_metadata(&*raw(path)));
        !about.is_some_and(|about| about.is_ok_and(|about| about.is_symlink()))
    })
}

/// Returns a line diff, or `None` if a text is too long or not UTF-8.
fn difference(before: &[u8], now: &[u8]) -> Option<String> {
    if before.len().max(now.len()) > MAX_KEPT_LEN {
        return None;
    }
    let (before, now) = (std::str::from_utf8(before).ok()?, std::str::from_utf8(now).ok()?);
    let mut diff = similar::TextDiff::configure()
        .timeout(std::time::Duration::from_millis(100))
        .diff_lines(before, now)
        .unified_diff()
        .to_string();
    if diff.len() > MAX_DIFFERENCE_LEN {
        diff.truncate(diff.floor_char_boundary(MAX_DIFFERENCE_LEN - 4));
        diff.push_str("...");
    }
    Some(diff)
}
