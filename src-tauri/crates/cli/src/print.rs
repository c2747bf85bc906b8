//! Replies as text for people.

use ironcurtain_protocol::{ActivityView, GrantView, Protection, Reply, SessionView, StatusView};
use std::time::{Duration, UNIX_EPOCH};

/// The text of a reply, with its final line feed.
pub fn text(reply: &Reply) -> String {
    match reply {
        Reply::Status(status) => self::status(status),
        Reply::Sessions(sessions) if sessions.is_empty() => "No agent is connected.\n".to_owned(),
        Reply::Sessions(sessions) => sessions.iter().map(session).collect(),
        Reply::Grants(grants) if grants.is_empty() => "Nothing is granted.\n".to_owned(),
        Reply::Grants(grants) => grants.iter().map(grant).collect(),
        Reply::Revoked { grant, restarted } if restarted.is_empty() => format!("Taken back: {grant}\n"),
        Reply::Revoked { grant, restarted } => {
            format!(
                "Taken back: {grant} ({} server restarted, because it still held a file open)\n",
                restarted.len()
            )
        }
        Reply::Done => "Done.\n".to_owned(),
        Reply::Activity(entries) => entries.iter().map(activity).collect(),
        Reply::Audit(check) => match &check.problem {
            None => format!("The audit log is whole: {} entries.\n", check.entries),
            Some(problem) => {
                format!("THE AUDIT LOG WAS CHANGED after {} entries: {problem}\n", check.entries)
            }
        },
        Reply::Failed { message, .. } => format!("It did not work: {message}\n"),
    }
}

fn status(status: &StatusView) -> String {
    let state = match status.protection {
        Protection::Protecting => "protecting",
        Protection::Asking => "asking",
        Protection::Degraded => "in trouble",
    };
    let mut text = format!("IronCurtain {} is {state} (process {}).\n", status.version, status.pid);
    for trouble in &status.troubles {
        text.push_str(&format!("  ! {trouble}\n"));
    }
    text.push_str(&format!("  sessions   {}\n  questions  {}\n", status.sessions, status.questions));
    text.push_str(&format!("  servers    {}\n", status.servers.join(", ")));
    text.push_str(&format!("  policy     {}\n", status.policy));
    text
}

fn session(session: &SessionView) -> String {
    let mut text = format!(
        "{}  {} -> {}  {}\n",
        session.id,
        session.client.name,
        session.server,
        if session.sandboxed { "sandboxed" } else { "NOT SANDBOXED" }
    );
    if let Some(exe) = &session.client.exe {
        text.push_str(&format!("  proved     {exe}\n"));
    }
    if let Some(says) = &session.client.says_it_is {
        text.push_str(&format!("  says it is {says}\n"));
    }
    text.push_str(&format!(
        "  calls      {} allowed, {} denied, {} asked\n",
        session.allowed, session.denied, session.asked
    ));
    for root in &session.roots {
        text.push_str(&format!("  sees       {}  ({})\n", root.path, root.source));
    }
    text
}

fn grant(grant: &GrantView) -> String {
    let suspended = grant.suspended.as_ref().map(|why| format!("  SUSPENDED: {why}\n")).unwrap_or_default();
    format!(
        "{}  {}  {} {}\n  for        {} with the server {}, {}\n  used       {} times; from {}\n{suspended}",
        grant.id,
        grant.path,
        grant.kind,
        grant.access.join("+"),
        grant.client,
        grant.server,
        grant.lifetime,
        grant.uses,
        grant.provenance,
    )
}

fn activity(entry: &ActivityView) -> String {
    let who = entry.client.as_deref().unwrap_or("-");
    let paths = if entry.paths.is_empty() { String::new() } else { format!("  {}", entry.paths.join(" ")) };
    let decision = entry.decision.as_deref().unwrap_or("-");
    let tool = entry.tool.as_ref().map(|tool| format!("{tool}  ")).unwrap_or_default();
    format!(
        "{:>6}  {}  {:<9} {:<9} {who}  {tool}{}{paths}\n",
        entry.seq,
        clock(entry.time_ms),
        entry.event,
        decision,
        entry.summary
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
        let check =
            AuditCheckView { intact: false, entries: 3, problem: Some("line 4: it has no hash".into()) };
        assert_eq!(
            text(&Reply::Audit(check)),
            "THE AUDIT LOG WAS CHANGED after 3 entries: line 4: it has no hash\n"
        );
    }

    #[test]
    fn the_time_of_day_is_in_utc() {
        assert_eq!(clock(1_700_000_000_000), "22:13:20Z");
    }
}
