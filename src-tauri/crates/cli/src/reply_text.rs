//! Formats the trusted process's replies as text.

use crate::text_lines::{TextLines, counted};
use ironcurtain_protocol::{
    ActivityView, DenialView, GrantView, Protection, QuestionState, QuestionsView, Reply, Request,
    SessionView, StatusView,
};
use std::time::{Duration, UNIX_EPOCH};

/// Formats a reply.
pub fn text(reply: &Reply) -> TextLines {
    let mut out = TextLines::default();
    match reply {
        Reply::Status(status) => self::status(&mut out, status),
        Reply::Sessions(sessions) if sessions.is_empty() => out.line("No agent is connected."),
        Reply::Sessions(sessions) => sessions.iter().for_each(|one| session(&mut out, one)),
        Reply::Grants(grants) if grants.is_empty() => out.line("Nothing is granted."),
        Reply::Grants(grants) => grants.iter().for_each(|one| grant(&mut out, one)),
        Reply::Questions(questions) => self::questions(&mut out, questions),
        Reply::Denied(ids) if ids.is_empty() => out.line("No pending questions."),
        Reply::Denied(ids) => ids.iter().for_each(|id| out.line(format_args!("Denied: {id}"))),
        Reply::Revoked { grant, restarted, unstored } => {
            match restarted.len() {
                0 => out.line(format_args!("Revoked: {grant}")),
                n => out.line(format_args!(
                    "Revoked: {grant} ({n} server restarted, because it still had a file open)"
                )),
            }
            if let Some(why) = unstored {
                out.line(format_args!("  NOT SAVED YET: {why}"));
            }
        }
        Reply::Done => out.line("Done."),
        Reply::Activity(entries) => {
            entries.iter().for_each(|entry| out.line(activity_line(entry, &format_clock(entry.time_ms))));
        }
        Reply::LoginEnded(None) => out.line("You were not logged in."),
        Reply::LoginEnded(Some(ended)) => out.line(format_args!("You are logged out at {}.", ended.issuer)),
        Reply::SecretNames(names) => names.iter().for_each(|name| out.line(name)),
        Reply::PairingCode { code, asks_attached } => {
            if *asks_attached {
                out.line("The attached desktop also asks you whether to allow this one.");
            }
            out.line(format_args!("The code is right. Now type this code on the desktop: {code}"));
        }
        Reply::Metrics(figures) => figures.lines().for_each(|line| out.line(line)),
        Reply::Audit(check) => out.line(match &check.problem {
            None if check.verified_by.is_empty() => {
                format!("The audit log is intact: {} entries.", check.entries)
            }
            None => format!(
                "The audit log is intact: {} entries; the newest is confirmed by {}.",
                check.entries, check.verified_by
            ),
            Some(problem) if check.intact => format!(
                "THE END OF THE AUDIT LOG IS UNKNOWN: {problem}. Its {} entries are intact, but later ones may be missing.",
                check.entries
            ),
            Some(problem) => {
                format!("THE AUDIT LOG WAS CHANGED after {} entries: {problem}", check.entries)
            }
        }),
        Reply::Session(_) | Reply::AutostartFiles(_) | Reply::Quarantine(_) | Reply::FinalChecks(_) => {}
        Reply::Failed { message, .. } => out.line(message),
    }
    out
}

/// Returns the message to print when the request is answered with [`Reply::Done`], or `None` to print nothing.
pub fn confirmation(request: &Request) -> Option<String> {
    if let Request::Lockdown { on, .. } = request {
        let begun =
            "Locked down: everything that needs your approval is denied. End it: ironcurtain lockdown off";
        return Some(if *on { begun } else { "Lockdown ended." }.to_owned());
    }
    if let Request::RequestAccess { path, .. } = request {
        return Some(format!("You are asked about {path}. Answer where IronCurtain asks you."));
    }
    if let Request::Pause { session } = request {
        return Some(format!(
            "Paused: every call of this session is denied. Resume it: ironcurtain resume {session}"
        ));
    }
    None
}

/// Formats the number of autostart files that a session left behind, such as "left 3 files that can run code later".
pub fn left_files(count: usize) -> String {
    format!("left {} that can run code later", counted(count, "file"))
}

fn status(out: &mut TextLines, status: &StatusView) {
    let state = match status.protection {
        Protection::Protecting => "protecting",
        Protection::Asking => "waiting for your answer",
        Protection::Lockdown => "locked down: everything that needs your approval is denied",
        Protection::Degraded => "only partly protecting",
    };
    out.line(format_args!("IronCurtain {} is {state} (process {}).", status.version, status.pid));
    status.troubles.iter().chain(&status.other_home).for_each(|one| out.line(format_args!("  ! {one}")));
    if status.lockdown {
        out.line(
            "  LOCKDOWN   everything that needs your approval is denied; end it with `ironcurtain lockdown off`",
        );
    }
    let runs = match (status.runs, status.in_runs) {
        (0, _) => String::new(),
        (runs, 0) => format!(", {} among them", counted(runs, "run")),
        (runs, inside) => format!(", {} and {inside} in runs among them", counted(runs, "run")),
    };
    out.line(format_args!("  sessions   {}{runs}", status.sessions));
    out.line(format_args!("  questions  {}", status.questions));
    out.line(format_args!("  servers    {}", status.servers.join(", ")));
    out.line(format_args!("  policy     {}", status.policy));
    if let Some(file) = &status.secrets_file {
        out.line(format_args!("  secrets    {}", crate::secrets::describe_file(file)));
    }
}

fn session(out: &mut TextLines, session: &SessionView) {
    out.line(format_args!(
        "{}  {} -> {}  {}",
        session.id,
        session.client.name,
        session.server,
        sandbox_state(session.sandboxed, session.remote)
    ));
    if let Some(exe) = &session.client.exe {
        out.line(format_args!("  verified   {exe}"));
    }
    if let Some(says) = &session.client.claimed_name {
        out.line(format_args!("  claims     {says} (unverified)"));
    }
    if let Some(connection) = &session.connection {
        out.line(format_args!("  connection {connection}, shared with other servers"));
    }
    if let Some(run) = &session.run {
        out.line(format_args!("  run        {run}"));
    }
    if let Some(why) = &session.trouble {
        out.line(format_args!("  MISSING:   {why}"));
    }
    out.line(format_args!(
        "  calls      {} allowed, {} denied, {} asked",
        session.allowed, session.denied, session.asked
    ));
    if session.paused {
        out.line(format_args!("  PAUSED: resume with `ironcurtain resume {}`", session.id));
    }
    if session.left > 0 {
        out.line(format_args!(
            "  {}: show with `ironcurtain session {}`",
            left_files(session.left),
            session.id
        ));
    }
    for root in &session.roots {
        out.line(format_args!("  sees       {}  ({})", root.path, root.source));
    }
    for root in &session.always {
        out.line(format_args!("  always     {}  {}  ({})", root.path, root.access.join("+"), root.source));
    }
}

/// Returns a description of how a session's server is contained.
pub fn sandbox_state(sandboxed: bool, remote: bool) -> &'static str {
    match (sandboxed, remote) {
        (_, true) => "REMOTE, cannot be sandboxed",
        (true, false) => "sandboxed",
        (false, false) => "NOT SANDBOXED",
    }
}

fn grant(out: &mut TextLines, grant: &GrantView) {
    out.line(format_args!("{}  {}  {} {}", grant.id, grant.path, grant.kind, grant.access.join("+")));
    out.line(format_args!(
        "  for        {} through the server {}, {}",
        grant.client, grant.server, grant.lifetime
    ));
    out.line(format_args!("  used       {}; from {}", use_count(grant.uses), grant.provenance));
    if let Some(why) = &grant.suspended {
        let decide = match grant.server_changed {
            true => format!(": `ironcurtain servers identity {}`", grant.server),
            false => String::new(),
        };
        out.line(format_args!("  SUSPENDED: {why}{decide}"));
    }
    if let Some(words) = &grant.ending {
        out.line(format_args!("  BEING REVOKED: {words}"));
    }
    if let Some(days) = grant.unused_days {
        out.line(format_args!(
            "  UNUSED for {days} days: revoke with `ironcurtain grants revoke {}`",
            grant.id
        ));
    }
}

fn questions(out: &mut TextLines, questions: &QuestionsView) {
    let QuestionsView { waiting, missed, denied } = questions;
    if waiting.is_empty() && missed.is_empty() && denied.is_empty() {
        out.line("No questions.");
    }
    for question in waiting.iter().chain(missed) {
        let state = match question.state {
            QuestionState::Waiting => "waiting for you",
            QuestionState::Missed => {
                "you did not answer in time; if the agent tries again, you will be asked again"
            }
            QuestionState::ShownAgain => "waiting for you again, after its call was denied",
            QuestionState::AllowedLate => {
                "you allowed it late: if the agent repeats exactly this call, it runs once"
            }
        };
        let tool = question.tool.as_ref().map(|tool| format!(", {tool}")).unwrap_or_default();
        let (client, server) = (&question.client, &question.server);
        out.line(format_args!("{}  {client} -> {server}{tool}  {state}", question.id));
        question.lines.iter().for_each(|line| out.line(format_args!("  would      {line}")));
        out.line(format_args!("  why        {}", question.reason));
        if let Some(seconds) = question.kept_seconds {
            out.line(format_args!("  kept for   {} min", seconds.div_ceil(60)));
        }
    }
    for denial in denied {
        let DenialView { id, client, server, what, .. } = denial;
        out.line(format_args!("{id}  {client} -> {server}  denied for the session: {what}"));
        denial.note.iter().for_each(|note| out.line(format_args!("  you said   {note}")));
    }
}

fn use_count(uses: u64) -> String {
    if uses == 1 { "once".to_owned() } else { format!("{uses} times") }
}

/// Formats an audit entry as a line. `time` is the formatted time of the entry.
pub fn activity_line(entry: &ActivityView, time: &str) -> String {
    let who = entry.client.as_deref().unwrap_or("-");
    let paths = if entry.paths.is_empty() { String::new() } else { format!("  {}", entry.paths.join(" ")) };
    let decision = entry.decision.as_deref().unwrap_or("-");
    let tool = entry.tool.as_ref().map(|tool| format!("{tool}  ")).unwrap_or_default();
    format!(
        "{:>6}  {time}  {:<9} {:<9} {who}  {tool}{}{paths}",
        entry.seq, entry.event, decision, entry.summary
    )
}

/// Formats milliseconds since the Unix epoch as a time of day in UTC.
fn format_clock(ms: u64) -> String {
    let since = (UNIX_EPOCH + Duration::from_millis(ms)).duration_since(UNIX_EPOCH).unwrap_or_default();
    let day = since.as_secs() % 86_400;
    format!("{:02}:{:02}:{:02}Z", day / 3600, day / 60 % 60, day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::AuditCheckView;

    #[test]
    fn changed_log_is_reported_in_capitals() {
        let check = AuditCheckView {
            intact: false,
            entries: 3,
            problem: Some("line 4: it has no hash".into()),
            verified_by: String::new(),
        };
        assert_eq!(
            text(&Reply::Audit(check)).as_str(),
            "THE AUDIT LOG WAS CHANGED after 3 entries: line 4: it has no hash\n"
        );
    }

    #[test]
    fn the_time_of_day_is_in_utc() {
        assert_eq!(format_clock(1_700_000_000_000), "22:13:20Z");
    }
}
