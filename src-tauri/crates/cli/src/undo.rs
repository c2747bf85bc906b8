//! `undo`: lists what a run changed in its folder, and restores the previous contents.

use crate::arguments::UndoArguments;
use crate::connection::Connection;
use crate::screen::Screen;
use crate::text_lines::{TextLines, counted};
use anyhow::{Context, bail, ensure};
use ironcurtain_checkpoint::{Change, Changes, Checkpoint, Checkpoints, DifferenceKind};
use ironcurtain_config::home::Home;
use ironcurtain_daemon::time_of_day;
use ironcurtain_protocol::{Reply, Request, SessionView};
use ironcurtain_sandbox::Signals;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

/// Maximum number of paths listed per group.
const MAX_LISTED: usize = 200;

/// Signals with which a user or the system interrupts a command. Blocked while paths are restored.
const INTERRUPTING: [Signal; 5] = [Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::TSTP];

/// Lists checkpoints or changes and restores what the user confirms.
pub fn perform(options: &UndoArguments, screen: Screen) -> anyhow::Result<ExitCode> {
    let checkpoints = Checkpoints::new(Home::from_env()?.checkpoints());
    let Some(id) = &options.id else { return list(&checkpoints, screen) };
    let sessions = active_sessions()?;
    if sessions.iter().any(|session| session.id == *id) {
        bail!("the run `{id}` is still active; end it first");
    }
    let checkpoint = checkpoints.open(id)?;
    if options.forget {
        checkpoint.remove()?;
        screen.show(&["The checkpoint is removed."].into_iter().collect(), &json!({ "forgotten": id }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let changes = checkpoint.changes()?;
    let selected: Vec<Change> =
        changes.all.iter().filter(|change| is_selected(options, change)).cloned().collect();
    let mut out = text(&checkpoint, &changes, options, &selected);
    let active: Vec<&SessionView> =
        sessions.iter().filter(|session| is_run_in(session, &checkpoint)).collect();
    let effect = match (options.later, changes.is_finished) {
        (true, _) => "Restoring also undoes its changes.",
        (false, true) => "Restoring also undoes what it changed before the checkpoint's run ended.",
        (false, false) => "Its changes count as later changes.",
    };
    for run in &active {
        out.line(format_args!("The run {} of {} uses this folder too. {effect}", run.id, run.server));
    }
    if options.diff {
        selected.iter().for_each(|change| diff(&mut out, &checkpoint, change));
    }
    let active_ids: Value = active.iter().map(|run| run.id.as_str()).collect();
    let listed = json!({
        "folder": checkpoint.info().folder,
        "complete": changes.is_finished,
        "activeRuns": active_ids,
        "keptObjects": changes.kept_objects,
        "changes": changes.all.iter().map(|change| value(options, change)).collect::<Value>(),
        "notCovered": changes.not_copied.iter().map(|item| json!({ "path": item.path, "why": item.why })).collect::<Value>(),
    });
    if selected.is_empty() || screen.is_json() && !options.yes {
        screen.show(&out, &listed)?;
        return Ok(ExitCode::SUCCESS);
    }
    if !screen.is_json() {
        screen.show(&out, &listed)?;
    }
    let question = format!(
        "Restore {}? The current content will be lost, including changes that you made during the run.",
        counted(selected.len(), "path")
    );
    if !options.yes && !screen.confirmed(&question)? {
        return Ok(ExitCode::SUCCESS);
    }
    let mut connection = Connection::open()?;
    let mut record = |failed| record(&mut connection, id, &checkpoint, (selected.len(), failed));
    record(None)?;
    // An interruption would leave temporary files, and changes that count as later ones.
    let blocked = Signals::block(&INTERRUPTING)?;
    let restored = checkpoint.restore(&selected);
    blocked.unblock(&INTERRUPTING)?;
    let restored = restored?;
    let recorded = record(Some(restored.failed.len()));
    let mut out = TextLines::default();
    out.line(format_args!("Restored {}.", counted(restored.count, "path")));
    let failed = restored.failed.iter();
    list_most(&mut out, failed.map(|failed| format!("  ! not restored: {}: {}", failed.path, failed.why)));
    let failed = |item: &ironcurtain_checkpoint::NotRestored| json!({ "path": item.path, "why": item.why.to_string() });
    let value = json!({
        "restored": restored.count,
        "activeRuns": active_ids,
        "failed": restored.failed.iter().map(failed).collect::<Value>(),
    });
    let restored_paths: BTreeSet<&str> = selected.iter().map(|change| change.path.as_str()).collect();
    if changes.not_copied.iter().any(|item| restored_paths.contains(item.path.as_str())) {
        out.line("Folders that could not be read were among them. To compare their content, run this command again.");
    }
    screen.show(&out, &value)?;
    recorded.context("this result was not recorded in the audit log")?;
    Ok(if restored.failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Records a restore in the audit log: with `failed` as `None` before the restore, and with the number of failed paths
/// afterwards.
fn record(
    connection: &mut Connection,
    id: &str,
    checkpoint: &Checkpoint,
    (count, failed): (usize, Option<usize>),
) -> anyhow::Result<()> {
    let folder = checkpoint.info().folder.clone();
    let reply = connection.ask(Request::Undo { session: id.to_owned(), folder, count, failed })?;
    ensure!(reply == Reply::Done, "unexpected reply from IronCurtain");
    Ok(())
}

/// Returns the active sessions, or none if the trusted process is not running.
fn active_sessions() -> anyhow::Result<Vec<SessionView>> {
    let Some(mut connection) = Connection::open_if_running()? else { return Ok(Vec::new()) };
    let Reply::Sessions(all) = connection.ask(Request::Sessions)? else {
        bail!("unexpected reply from IronCurtain");
    };
    Ok(all)
}

/// Returns `true` if the session is a run whose folder contains, or is in, the folder of the checkpoint.
fn is_run_in(session: &SessionView, checkpoint: &Checkpoint) -> bool {
    let (run, folder) = (Path::new(&session.sandbox_dir), Path::new(&checkpoint.info().folder));
    session.server.starts_with("run:") && (run.starts_with(folder) || folder.starts_with(run))
}

fn list(checkpoints: &Checkpoints, screen: Screen) -> anyhow::Result<ExitCode> {
    let all = checkpoints.list()?;
    let mut out = TextLines::default();
    if all.is_empty() {
        out.line("No checkpoints. To create one, run: ironcurtain run --checkpoint -- PROGRAM");
    }
    for (id, info) in &all {
        out.line(format_args!("{id}  {}  {}", time_of_day(info.taken_ms), info.folder));
    }
    let value = |(id, info): &(String, ironcurtain_checkpoint::CheckpointInfo)| json!({ "id": id, "folder": info.folder, "takenMs": info.taken_ms });
    screen.show(&out, &json!({ "checkpoints": all.iter().map(value).collect::<Value>() }))?;
    Ok(ExitCode::SUCCESS)
}

fn is_selected(options: &UndoArguments, change: &Change) -> bool {
    (options.git || !change.is_in_repository) && (options.later || !change.is_later)
}

/// Returns `true` if a change stays only because `--later` is missing.
fn is_kept_as_later(options: &UndoArguments, change: &Change) -> bool {
    change.is_later && !options.later && (options.git || !change.is_in_repository)
}

fn text(
    checkpoint: &Checkpoint,
    changes: &Changes,
    options: &UndoArguments,
    selected: &[Change],
) -> TextLines {
    let mut out = TextLines::default();
    out.line(format_args!("{}", checkpoint.info().folder));
    let line = |change: &Change| format!("  {}  {}", kind_name(change.kind), change.path);
    list_most(&mut out, selected.iter().map(line));
    if selected.is_empty() {
        out.line("  nothing to restore");
    }
    let later: Vec<&Change> = changes.all.iter().filter(|change| is_kept_as_later(options, change)).collect();
    if !later.is_empty() {
        out.line(if changes.is_finished {
            "These may have changed after the run ended, and stay. To restore them too, add --later:"
        } else {
            "The end of the run is not recorded, so its changes cannot be distinguished from later ones. To restore them, add --later:"
        });
        list_most(&mut out, later.into_iter().map(line));
    }
    let in_repository = changes.all.iter().filter(|change| change.is_in_repository).count();
    if in_repository > 0 && !options.git {
        let paths = counted(in_repository, "path");
        out.line(format_args!(
            "The repository's own state (such as .git) differs in {paths}, and stays. To restore it too, add --git."
        ));
    }
    if changes.kept_objects > 0 {
        let objects = counted(changes.kept_objects, "Git object");
        out.line(format_args!("The run created {objects} that stay, because later commits may need them."));
    }
    let uncovered = changes.not_copied.iter().map(|item| {
        let path = if item.path.is_empty() { "the folder itself" } else { &item.path };
        format!("  ! not covered: {path}: {}", item.why)
    });
    list_most(&mut out, uncovered);
    out
}

fn list_most(out: &mut TextLines, lines: impl ExactSizeIterator<Item = String>) {
    let more = lines.len().saturating_sub(MAX_LISTED);
    lines.take(MAX_LISTED).for_each(|line| out.line(line));
    if more > 0 {
        out.line(format_args!("  and {more} more"));
    }
}

fn diff(out: &mut TextLines, checkpoint: &Checkpoint, change: &Change) {
    if let Some(diff) = checkpoint.diff(change) {
        out.line(format_args!("{}:", change.path));
        diff.lines().for_each(|line| out.line(format_args!("  | {line}")));
    }
}

fn kind_name(kind: DifferenceKind) -> &'static str {
    match kind {
        DifferenceKind::Created => "created",
        DifferenceKind::Changed => "changed",
        DifferenceKind::Removed => "removed",
    }
}

fn value(options: &UndoArguments, change: &Change) -> Value {
    json!({
        "path": change.path,
        "kind": kind_name(change.kind),
        "later": change.is_later,
        "git": change.is_in_repository,
        "selected": is_selected(options, change),
    })
}
