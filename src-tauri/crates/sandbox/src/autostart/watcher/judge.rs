//! Judges the file at a path and acts on the verdict.

use std::{cell::OnceCell, hash::BuildHasher, os::fd::OwnedFd, time::Instant};

use rustix::fs::{Mode, OFlags, openat, readlinkat};

use super::{Watcher, folder_check::NEW_FOLDER_BOUNDS, watched_sandbox::WatchedSandbox};
use crate::{
    autostart::{
        AutostartMode, ChangeKind, Finding,
        baseline::{BaselineDifference, MAX_KEPT_LEN, read_bounded},
        budget::total_size,
        content::{FileVersions, judge},
        file_stamp::FileStamp,
        folder_walk::{display_path, is_folder},
        git,
        name_table::{ContentCheck, KnownName, RunVerdict},
        name_text::{from_os_bytes, from_os_path, to_os_str},
        paths::{file_name, parent},
        quarantine::QuarantineSlot,
        reopened_folders::{open_folder, open_reopening},
    },
    nofollow::is_at_or_below,
};

/// Maximum number of files whose content is rechecked periodically.
const MAX_CONTENTS: usize = 200;
/// Maximum length of a reported diff in bytes.
const MAX_DIFFERENCE_LEN: usize = 4 << 10;

/// Verdict on a path under the rules of one sandbox.
struct RuleDecision {
    name: String,
    known: KnownName,
    /// Length of the part of the path that matches the listed name.
    end: usize,
    /// New folder to report instead of the path.
    folder: Option<String>,
    verdict: RunVerdict,
    change: ChangeKind,
    before: Option<Vec<u8>>,
}

impl Watcher {
    /// Judges the file at `path` in the folder `dir`. Returns `true` if the file was quarantined.
    pub(super) fn check_file(&mut self, dir: &OwnedFd, path: &str) -> bool {
        let matches = self.matches(path);
        if matches.is_empty() {
            return false;
        }
        let Ok(now) = FileStamp::at(dir, file_name(path)) else {
            self.sandboxes.values_mut().for_each(|sandbox| _ = sandbox.autostart_files.remove(path));
            return false;
        };
        let text = OnceCell::new();
        let text = || text.get_or_init(|| read_bounded(dir, file_name(path), git::MAX_LEN)).as_deref();
        let mut decisions = Vec::new();
        for (name, known, end) in matches {
            if now.is_dir && (end < path.len() || !known.folder) {
                continue;
            }
            let Some(sandbox) = self.sandboxes.get_mut(&name) else { continue };
            let is_config = known.group.check == ContentCheck::GitConfig && now.is_file;
            let Some(BaselineDifference { change, before, is_certain }) =
                sandbox.difference(path, &now, &text, is_config)
            else {
                sandbox.autostart_files.remove(path);
                continue;
            };
            if now.is_dir {
                decisions.extend(sandbox.folder_decision(name, path, (known, end), change));
                continue;
            }
            let verdict = if !is_config {
                self.verdict(&name, dir, path, &known, text(), before.as_deref())
            } else if is_certain {
                self.guard_config(&name, dir, path, before.as_deref(), text());
                continue;
            } else {
                self.config_verdict(&name, path, text())
            };
            // A file that the user may have written is reported but left in place.
            let verdict =
                if !is_certain && verdict == RunVerdict::Automatic { RunVerdict::Reported } else { verdict };
            let folder = self.sandboxes.get(&name).and_then(|sandbox| sandbox.new_folder(path, &known, end));
            decisions.push(RuleDecision { name, known, end, folder, verdict, change, before });
        }
        if !now.is_dir && !decisions.is_empty() {
            self.watch_content(dir, path);
        }
        self.apply_decisions(dir, path, decisions, &text)
    }

    /// Returns, for each sandbox that can write to a path, the matching name and the length of the matched part.
    fn matches(&self, path: &str) -> Vec<(String, KnownName, usize)> {
        let references = self.references.find(path);
        let sandboxes =
            self.sandboxes.iter().filter(|(_, sandbox)| sandbox.roots_containing(path).next().is_some());
        let matches = sandboxes.filter_map(|(name, sandbox)| {
            let by_name = sandbox.names.find(path, |path| self.git_folders.contains(path));
            // A reference never weakens the verdict on the name itself.
            let (known, end) = match by_name {
                Some(listed) if listed.0.group.verdict == RunVerdict::Automatic => listed,
                Some(_) | None => references.or(by_name)?,
            };
            Some((name.clone(), known, end))
        });
        matches.collect()
    }

    fn verdict(
        &mut self,
        name: &str,
        dir: &OwnedFd,
        path: &str,
        known: &KnownName,
        now: Option<&[u8]>,
        before: Option<&[u8]>,
    ) -> RunVerdict {
        let Some(sandbox) = self.sandboxes.get(name) else { return RunVerdict::Harmless };
        let verdict = if known.group.check == ContentCheck::Redirect {
            match redirect_target(dir, path, now) {
                RedirectTarget::Nothing => RunVerdict::Harmless,
                // A complete repository needs no other folder.
                RedirectTarget::At(_)
                    if file_name(path).eq_ignore_ascii_case("commondir") && is_folder(dir, "objects") =>
                {
                    RunVerdict::Automatic
                }
                RedirectTarget::At(target)
                    if sandbox.roots_containing(&target).next().is_some() && has_no_symlinks(&target) =>
                {
                    // Everything in the target must be checked, regardless of its name.
                    if self.git_folders.insert(target.clone()) {
                        self.check_folder(&target, NEW_FOLDER_BOUNDS);
                    }
                    RunVerdict::Harmless
                }
                RedirectTarget::At(_) | RedirectTarget::Unknown => RunVerdict::Automatic,
            }
        } else {
            let home = sandbox.rules.home.as_deref();
            judge(known, FileVersions { path, now, before, home })
        };
        let Some(sandbox) = self.sandboxes.get(name) else { return verdict };
        let strict = sandbox.rules.mode == AutostartMode::Strict && known.group.strict;
        if strict && verdict == RunVerdict::Reported { RunVerdict::Automatic } else { verdict }
    }

    /// Starts rechecking a file that is judged by its content, because a program may still be writing to it.
    pub(super) fn watch_content(&mut self, dir: &OwnedFd, path: &str) {
        if self.contents.len() < MAX_CONTENTS {
            self.contents.insert(path.to_owned(), self.digest(dir, path));
        }
        if let Ok(file) = openat(
            dir,
            &*to_os_str(file_name(path)),
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        ) && let Err(error) = self.queue.watch_content(path, &file)
        {
            self.report_once(path, "watch", error.to_string());
        }
    }

    /// Rechecks files that are judged by their content, because writes through `mmap` cause no events.
    pub(super) fn recheck_contents(&mut self) {
        self.last_recheck = Instant::now();
        for path in self.contents.keys().cloned().collect::<Vec<_>>() {
            let Ok(dir) = open_folder(parent(&path)) else {
                self.contents.remove(&path);
                continue;
            };
            let now = self.digest(&dir, &path);
            if now.is_none() {
                self.contents.remove(&path);
            } else if self.contents.insert(path.clone(), now) != Some(now) {
                self.check_file(&dir, &path);
            }
        }
    }

    fn digest(&self, dir: &OwnedFd, path: &str) -> Option<u64> {
        Some(self.digests.hash_one(read_bounded(dir, file_name(path), git::MAX_LEN)?))
    }

    /// Applies the verdicts on a path. Returns `true` if the file was quarantined.
    fn apply_decisions<'a>(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        decisions: Vec<RuleDecision>,
        text: &impl Fn() -> Option<&'a [u8]>,
    ) -> bool {
        let is_approved = self.sandboxes.values().any(|sandbox| sandbox.approved.contains(path));
        let unasked = |decision: &RuleDecision| decision.verdict == RunVerdict::Automatic;
        if !is_approved && decisions.iter().any(unasked) {
            let affected: Vec<&RuleDecision> =
                decisions.iter().filter(|decision| decision.verdict != RunVerdict::Harmless).collect();
            let when = affected.first().map_or("", |decision| decision.known.group.when);
            let names: Vec<&str> = affected.iter().map(|decision| decision.name.as_str()).collect();
            let target_path = affected.first().and_then(|decision| path.get(..decision.end)).unwrap_or(path);
            return self.quarantine(dir, path, target_path, when, &names);
        }
        for RuleDecision { name, known, end: _, folder, verdict, change, before } in decisions {
            let Some(sandbox) = self.sandboxes.get_mut(&name) else { continue };
            if verdict == RunVerdict::Harmless {
                sandbox.autostart_files.remove(path);
                continue;
            }
            if let Some(folder) = folder {
                let when = known.group.when.to_owned();
                let finding = Finding::AutostartFile {
                    path: folder.clone(),
                    when,
                    change: ChangeKind::New,
                    diff: None,
                };
                sandbox.add_autostart_file(&folder, finding);
                continue;
            }
            let before = if change == ChangeKind::New { Some(vec![]) } else { before };
            let diff = before.zip(text()).and_then(|(before, now)| text_diff(&before, now));
            let finding = Finding::AutostartFile {
                path: path.to_owned(),
                when: known.group.when.to_owned(),
                change,
                diff,
            };
            sandbox.add_autostart_file(path, finding);
        }
        false
    }

    /// Quarantines a path, or the nearest folder above it that can be moved, and reports this to the sandboxes
    /// `names`. The move counts against the limit for `counted`.
    pub(super) fn quarantine(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        counted: &str,
        when: &str,
        names: &[&str],
    ) -> bool {
        let (mut target_path, mut moved) = (path, self.quarantine_one(dir, path, when, names));
        if moved.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
            && let Some((folder, moved_to)) = self.quarantine_parent(path, when, names)
        {
            (target_path, moved) = (folder, Ok(moved_to));
        }
        let (finding, was_moved) = match moved {
            Ok(moved_to) => {
                self.count_move(counted, total_size(&moved_to), names);
                (
                    Finding::Quarantined { path: display_path(target_path), moved_to, when: when.to_owned() },
                    true,
                )
            }
            // Another process has removed the file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return true,
            Err(error) => {
                let reason =
                    format!("failed to move the new file `{}` to quarantine: {error}", display_path(path));
                (Finding::Unfinished { reason }, false)
            }
        };
        for name in names {
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                sandbox.autostart_files.remove(path);
                sandbox.report(finding.clone());
            }
        }
        was_moved
    }

    fn quarantine_one(
        &mut self,
        dir: &OwnedFd,
        path: &str,
        when: &str,
        names: &[&str],
    ) -> std::io::Result<String> {
        let slot = QuarantineSlot::new(&self.state, path)?;
        let moved_to = from_os_path(&slot.path_for(file_name(path)));
        let finding = Finding::Quarantined { path: display_path(path), moved_to, when: when.to_owned() };
        for name in names {
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                // Ignores the error: the finding is lost only if this process is killed.
                let _ = sandbox.journal.log_finding(&finding);
            }
        }
        if self.is_exhausted(names) {
            slot.disarm(dir, file_name(path))
        } else {
            slot.move_in(dir, file_name(path))
        }
    }

    /// Returns `true` if the budget of any of these sandboxes' sessions is used up.
    pub(super) fn is_exhausted(&mut self, names: &[&str]) -> bool {
        names.iter().any(|name| self.budgets.for_sandbox(name).is_exhausted())
    }

    /// Counts a quarantined file for these sandboxes' sessions.
    pub(super) fn count_move(&mut self, counted: &str, bytes: u64, names: &[&str]) {
        let mut sessions = std::collections::BTreeMap::new();
        for name in names {
            let session = name.split_once('.').map_or(*name, |(session, _)| session);
            let limit = *sessions
                .entry(session)
                .or_insert_with(|| self.budgets.for_sandbox(name).count(counted, bytes));
            if let Some(sandbox) = self.sandboxes.get_mut(*name) {
                sandbox.apply_limit(counted, limit);
            }
        }
    }

    /// Quarantines the nearest new folder above a path. Used for files that cannot be moved alone, for example in a
    /// renamed folder of another user. Existing folders are never moved.
    fn quarantine_parent<'a>(
        &mut self,
        path: &'a str,
        when: &str,
        names: &[&str],
    ) -> Option<(&'a str, String)> {
        let mut folder = parent(path);
        while self.is_in_root(folder) && !self.is_root(folder) {
            let is_new = |sandbox: &WatchedSandbox| {
                sandbox.roots_containing(folder).any(|(_, baseline)| baseline.is_new_or_moved(folder))
            };
            if self.sandboxes.values().any(is_new)
                && let Ok((dir, _reopened)) = open_reopening(parent(folder))
                && let Ok(moved_to) = self.quarantine_one(&dir, folder, when, names)
            {
                return Some((folder, moved_to));
            }
            folder = parent(folder);
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
        let approved = self.approved.contains(path);
        self.roots_containing(path)
            .find_map(|(_, baseline)| baseline.difference(path, now, text, approved, is_config))
    }

    /// Returns the verdict on a new folder with a listed name. The folder is quarantined as a whole if every file in it
    /// would be quarantined.
    fn folder_decision(
        &self,
        name: String,
        path: &str,
        (known, end): (KnownName, usize),
        change: ChangeKind,
    ) -> Option<RuleDecision> {
        let strict = self.rules.mode == AutostartMode::Strict && known.group.strict;
        let unasked = known.group.check == ContentCheck::Always
            && (strict || known.group.verdict == RunVerdict::Automatic);
        let is_approved = self.approved.iter().any(|approved| is_at_or_below(approved, path));
        (unasked && !is_approved && change == ChangeKind::New).then_some(RuleDecision {
            name,
            known,
            end,
            folder: None,
            verdict: RunVerdict::Automatic,
            change,
            before: None,
        })
    }

    /// Returns the new folder to report instead of the path, if package managers write such folders.
    fn new_folder(&self, path: &str, known: &KnownName, end: usize) -> Option<String> {
        let folder = path.get(..end).filter(|_| known.group.installed && known.folder && end < path.len())?;
        self.roots_containing(path)
            .any(|(_, baseline)| baseline.is_new_folder(folder))
            .then(|| folder.to_owned())
    }
}

/// Target of a file that redirects git to another folder.
enum RedirectTarget {
    /// No folder, for example because the file is incomplete.
    Nothing,
    At(String),
    Unknown,
}

fn redirect_target(dir: &OwnedFd, path: &str, now: Option<&[u8]>) -> RedirectTarget {
    let link;
    let text = match now {
        Some(now) => std::str::from_utf8(now).ok(),
        None => {
            link = readlinkat(dir, &*to_os_str(file_name(path)), Vec::new())
                .ok()
                .map(|link| from_os_bytes(link.as_bytes()));
            link.as_deref()
        }
    };
    let Some(text) = text else { return RedirectTarget::Unknown };
    let text = text.trim_end_matches(['\n', '\r']);
    let target = if file_name(path).eq_ignore_ascii_case(".git") && now.is_some() {
        text.strip_prefix("gitdir:").map(str::trim_start)
    } else {
        Some(text)
    };
    match target {
        _ if text.is_empty() => RedirectTarget::Nothing,
        // Git ignores a `.git` file without `gitdir:`.
        None => RedirectTarget::Nothing,
        Some(target) => {
            git::resolve(parent(path), target).map_or(RedirectTarget::Unknown, RedirectTarget::At)
        }
    }
}

/// Returns `true` if the existing part of a path contains no symlinks.
fn has_no_symlinks(path: &str) -> bool {
    path.match_indices('/').skip(1).map(|(at, _)| at).chain([path.len()]).all(|end| {
        let metadata = path.get(..end).map(|path| std::fs::symlink_metadata(&*to_os_str(path)));
        !metadata.is_some_and(|metadata| metadata.is_ok_and(|metadata| metadata.is_symlink()))
    })
}

/// Returns a line diff, or `None` if either version is too long or not UTF-8.
fn text_diff(before: &[u8], now: &[u8]) -> Option<String> {
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
