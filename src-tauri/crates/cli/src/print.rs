//! Replies as text for people.

use crate::sheet::{Sheet, counted};
use ironcurtain_protocol::{
    ActivityView, DenialView, GrantView, Protection, QuestionState, QuestionsView, Reply, Request,
    SessionView, StatusView,
};
use std::time::{Duration, UNIX_EPOCH};

/// A reply for people.
pub fn text(reply: &Reply) -> Sheet {
    let mut sheet = Sheet::default();
    match reply {
        Reply::Status(status) => self::status(&mut sheet, status),
        Reply::Sessions(sessions) if sessions.is_empty() => sheet.line("No agent is connected."),
        Reply::Sessions(sessions) => sessions.iter().for_each(|one| session(&mut sheet, one)),
        Reply::Grants(grants) if grants.is_empty() => sheet.line("Nothing is granted."),
        Reply::Grants(grants) => grants.iter().for_each(|one| grant(&mut sheet, one)),
        Reply::Questions(questions) => self::questions(&mut sheet, questions),
        Reply::Denied(ids) if ids.is_empty() => sheet.line("No question waits."),
        Reply::Denied(ids) => ids.iter().for_each(|id| sheet.line(format_args!("Denied: {id}"))),
        Reply::Revoked { grant, restarted, unstored } => {
            match restarted.len() {
                0 => sheet.line(format_args!("Taken back: {grant}")),
                n => sheet.line(format_args!(
                    "Taken back: {grant} ({n} server restarted, because it still held a file open)"
                )),
            }
            if let Some(why) = unstored {
                sheet.line(format_args!("  NOT STORED YET: {why}"));
            }
        }
        Reply::Done => sheet.line("Done."),
        Reply::Activity(entries) => {
            entries.iter().for_each(|entry| sheet.line(activity(entry, &clock(entry.time_ms))));
        }
        Reply::Metrics(figures) => figures.lines().for_each(|line| sheet.line(line)),
        Reply::Audit(check) => sheet.line(match &check.problem {
            None if check.known_by.is_empty() => {
                format!("The audit log is whole: {} entries.", check.entries)
            }
            None => format!(
                "The audit log is whole: {} entries; the newest is known by {}.",
                check.entries, check.known_by
            ),
            Some(problem) if check.intact => format!(
                "THE END OF THE AUDIT LOG IS UNKNOWN: {problem}. The {} entries that are there are whole; later ones may be \
                 missing.",
                check.entries
            ),
            Some(problem) => {
                format!("THE AUDIT LOG WAS CHANGED after {} entries: {problem}", check.entries)
            }
        }),
        Reply::Session(_) | Reply::LeftBehind(_) | Reply::Quarantine(_) | Reply::LastLooks(_) => {}
        Reply::Failed { message, .. } => sheet.line(message),
    }
    sheet
}

/// Returns the outcome of a request that is answered with [`Reply::Done`].
pub fn done(request: &Request) -> Option<String> {
    if let Request::Lockdown { on, .. } = request {
        let begun =
            "Locked down: everything that needs your approval is denied. End it: ironcurtain lockdown off";
        return Some(if *on { begun } else { "Lockdown ended." }.to_owned());
    }
    if let Request::Pause { session } = request {
        return Some(format!(
            "Paused: every call of this session is denied. Resume it: ironcurtain resume {session}"
        ));
    }
    None
}

/// "left 3 files that can run code later".
pub fn left(count: usize) -> String {
    format!("left {} that can run code later", counted(count, "file"))
}

fn status(sheet: &mut Sheet, status: &StatusView) {
    let state = match status.protection {
        Protection::Protecting => "protecting",
        Protection::Asking => "asking",
        Protection::Lockdown => "locked down: everything that needs your approval is denied",
        Protection::Degraded => "in trouble",
    };
    sheet.line(format_args!("IronCurtain {} is {state} (process {}).", status.version, status.pid));
    status.troubles.iter().chain(&status.other_home).for_each(|one| sheet.line(format_args!("  ! {one}")));
    if status.lockdown {
        sheet.line(
            "  LOCKDOWN   everything that needs your approval is denied; `ironcurtain lockdown off` ends it",
        );
    }
    sheet.line(format_args!("  sessions   {}", status.sessions));
    sheet.line(format_args!("  questions  {}", status.questions));
    sheet.line(format_args!("  servers    {}", status.servers.join(", ")));
    sheet.line(format_args!("  policy     {}", status.policy));
    if let Some(file) = &status.secrets_file {
        sheet.line(format_args!("  secrets    {}", crate::secrets::file_words(file)));
    }
}

fn session(sheet: &mut Sheet, session: &SessionView) {
    sheet.line(format_args!(
        "{}  {} -> {}  {}",
        session.id,
        session.client.name,
        session.server,
        contained(session.sandboxed, session.remote)
    ));
    if let Some(exe) = &session.client.exe {
        sheet.line(format_args!("  proved     {exe}"));
    }
    if let Some(says) = &session.client.says_it_is {
        sheet.line(format_args!("  says it is {says}"));
    }
    if let Some(connection) = &session.connection {
        sheet.line(format_args!("  connection {connection}, which has several servers behind one entry"));
    }
    if let Some(why) = &session.trouble {
        sheet.line(format_args!("  MISSING:   {why}"));
    }
    sheet.line(format_args!(
        "  calls      {} allowed, {} denied, {} asked",
        session.allowed, session.denied, session.asked
    ));
    if session.paused {
        sheet.line(format_args!("  PAUSED: `ironcurtain resume {}` lets it go on", session.id));
    }
    if session.left > 0 {
        sheet.line(format_args!("  {}: `ironcurtain session {}` shows them", left(session.left), session.id));
    }
    for root in &session.roots {
        sheet.line(format_args!("  sees       {}  ({})", root.path, root.source));
    }
}

/// The containment of a session's server, in words.
pub fn contained(sandboxed: bool, remote: bool) -> &'static str {
    match (sandboxed, remote) {
        (_, true) => "REMOTE, cannot be sandboxed",
        (true, false) => "sandboxed",
        (false, false) => "NOT SANDBOXED",
    }
}

fn grant(sheet: &mut Sheet, grant: &GrantView) {
    sheet.line(format_args!("{}  {}  {} {}", grant.id, grant.path, grant.kind, grant.access.join("+")));
    sheet.line(format_args!(
        "  for        {} with the server {}, {}",
        grant.client, grant.server, grant.lifetime
    ));
    sheet.line(format_args!("  used       {}; from {}", times(grant.uses), grant.provenance));
    if let Some(why) = &grant.suspended {
        let decide = match grant.server_changed {
            true => format!(": `ironcurtain servers identity {}`", grant.server),
            false => String::new(),
        };
        sheet.line(format_args!("  SUSPENDED: {why}{decide}"));
    }
    if let Some(words) = &grant.ending {
        sheet.line(format_args!("  BEING TAKEN BACK: {words}"));
    }
    if let Some(days) = grant.unused_days {
        sheet.line(format_args!(
            "  UNUSED for {days} days: `ironcurtain grants revoke {}` takes it back",
            grant.id
        ));
    }
}

fn questions(sheet: &mut Sheet, questions: &QuestionsView) {
    let QuestionsView { waiting, missed, denied } = questions;
    if waiting.is_empty() && missed.is_empty() && denied.is_empty() {
        sheet.line("No questions.");
    }
    for question in waiting.iter().chain(missed) {
        let state = match question.state {
            QuestionState::Waiting => "waits for you",
            QuestionState::Missed => "nobody answered; it is asked again when it is tried again",
            QuestionState::ShownAgain => "waits for you again, after its call",
            QuestionState::AllowedLate => "you allowed it late: the same call passes once",
        };
        let tool = question.tool.as_ref().map(|tool| format!(", {tool}")).unwrap_or_default();
        let (client, server) = (&question.client, &question.server);
        sheet.line(format_args!("{}  {client} -> {server}{tool}  {state}", question.id));
        question.lines.iter().for_each(|line| sheet.line(format_args!("  would      {line}")));
        sheet.line(format_args!("  why        {}", question.reason));
        if let Some(seconds) = question.kept_seconds {
            sheet.line(format_args!("  kept for   {} min", seconds.div_ceil(60)));
        }
    }
    for denial in denied {
        let DenialView { id, client, server, what, .. } = denial;
        sheet.line(format_args!("{id}  {client} -> {server}  denied for its session: {what}"));
        denial.note.iter().for_each(|note| sheet.line(format_args!("  you said   {note}")));
    }
}

fn times(uses: u64) -> String {
    if uses == 1 { "once".to_owned() } else { format!("{uses} times") }
}

/// An entry in one line, with this time.
pub fn activity(entry: &ActivityView, time: &str) -> String {
    let who = entry.client.as_deref().unwrap_or("-");
    let paths = if entry.paths.is_empty() { String::new() } else { format!("  {}", entry.paths.join(" ")) };
    let decision = entry.decision.as_deref().unwrap_or("-");
    let tool = entry.tool.as_ref().map(|tool| format!("{tool}  ")).unwrap_or_default();
    format!(
        "{:>6}  {time}  {:<9} {:<9} {who}  {tool}{}{paths}",
        entry.seq, entry.event, decision, entry.summary
    )
}

/// Time of day in UTC.
fn clock(ms: u64) -> String {
    let since = (UNIX_EPOCH + Duration::from_millis(ms)).duration_since(UNIX_EPOCH).unwrap_or_default();
    let day = since.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}Z", day / 3600, day / 60 % 60, day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::AuditCheckView;

    #[test]
    fn a_broken_log_cannot_be_overlooked() {
        let check = AuditCheckView {
            intact: false,
            entries: 3,
            problem: Some("line 4: it has no hash".into()),
            known_by: String::new(),
        };
        assert_eq!(
            text(&Reply::Audit(check)).as_str(),
            "THE AUDIT LOG WAS CHANGED after 3 entries: line 4: it has no hash\n"
        );
    }

    #[test]
    fn the_time_of_day_is_in_utc() {
        assert_eq!(clock(1_700_000_000_000), "22:13:20Z");
    }
}
