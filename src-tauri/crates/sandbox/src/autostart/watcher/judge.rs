//! Judges the file at a path and acts on the verdict.

use std::{cell::OnceCell, os::fd::OwnedFd};

use super::{
    Watcher,
    folder_check::NEW_FOLDER_BOUNDS,
    redirects::{RedirectTarget, has_no_symlinks, redirect_target},
    watched_sandbox::WatchedSandbox,
};
use crate::{
    autostart::{
        AutostartMode, ChangeKind, Finding,
        baseline::{BaselineDifference, MAX_KEPT_LEN, read_bounded},
        content::{FileVersions, judge},
        file_stamp::FileStamp,
        folder_walk::is_folder,
        git,
        name_table::{ContentCheck, KnownName, RunVerdict},
        paths::file_name,
    },
    nofollow::is_at_or_below,
};

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
