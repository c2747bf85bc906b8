//! Converts grants and audit entries for display. Escapes invisible characters in names and paths that other programs
//! supplied.

mod activity;
mod questions;

pub(crate) use activity::activity;
pub use activity::shown_entry;
pub(crate) use questions::{effect, questions};

use chrono::DateTime;
use ironcurtain_audit::clock::{millis, now_ms};
use ironcurtain_audit::{CallResult, DecidedBy, Entry, EscalationResult, Event, PolicyDecision, Status};
use ironcurtain_consent::Lifetime;
use ironcurtain_grants::{Files, Granted, PendingTermination, StandingGrant};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::GrantKind;
use ironcurtain_protocol::GrantView;
use ironcurtain_server::check_unchanged;
use ironcurtain_services::DeclinedWorkspace;
use ironcurtain_visible as visible;
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum length of a client, server or tool name, in characters.
const MAX_NAME_LEN: usize = 200;

/// Time without use after which a permanent grant is marked as unused.
const UNUSED_AFTER: Duration = Duration::from_hours(30 * 24);

/// Converts all grants, followed by revoked grants whose revocation has not been stored yet.
///
/// `changed` lists the servers whose program changed. Each value is `true` if a session with the previous program is
/// still active.
pub(crate) fn grants<'a>(
    all: impl Iterator<Item = &'a StandingGrant>,
    ending: &[PendingTermination],
    changed: &BTreeMap<String, bool>,
    home: &CanonicalPath,
) -> Vec<GrantView> {
    let resolver = Resolver::new(home.clone(), home.clone());
    let now = now_ms();
    let active = all.map(|g| {
        let view = GrantView { unused_days: unused_days(g, now), ..grant(g, &resolver) };
        // A grant for a session belongs to the program that the session started with.
        match changed.get(&g.subject.server).filter(|_| g.subject.session.is_none()) {
            Some(runs) => GrantView { suspended: Some(server_changed(*runs)), server_changed: true, ..view },
            None => view,
        }
    });
    let ending = ending.iter().filter_map(|ending| {
        let words = revocation_text(ending);
        Some(GrantView { ending: Some(words), ..grant(ending.grant.as_ref()?, &resolver) })
    });
    active.chain(ending).collect()
}

/// Converts a declined workspace, which is shown so that the user can revoke the denial.
pub(crate) fn declined(declined: &DeclinedWorkspace) -> GrantView {
    GrantView {
        id: declined.id.clone(),
        client: display_name(&declined.client_name),
        server: display_name(&declined.server),
        session: None,
        path: visible::path(&declined.folder),
        kind: "declined".to_owned(),
        access: Vec::new(),
        lifetime: "until you revoke the denial".to_owned(),
        expires_ms: None,
        created_ms: declined.at_ms,
        last_used_ms: None,
        uses: 0,
        provenance: "proposed workspace".to_owned(),
        suspended: None,
        server_changed: false,
        ending: None,
        unused_days: None,
    }
}

fn server_changed(still_runs: bool) -> String {
    match still_runs {
        false => "the server changed".to_owned(),
        true => "the server changed; sessions that started before still use it".to_owned(),
    }
}

/// Returns the number of days since a permanent grant was last used, or `None` before [`UNUSED_AFTER`] has passed.
fn unused_days(grant: &StandingGrant, now: u64) -> Option<u64> {
    let since = now.saturating_sub(grant.last_used_ms.unwrap_or(grant.created_ms));
    (grant.expires_ms.is_none() && since >= millis(UNUSED_AFTER)).then_some(since / 86_400_000)
}

fn revocation_text(ending: &PendingTermination) -> String {
    let at = time_of_day(ending.at_ms);
    match &ending.trouble {
        None => format!("it has been denied since {at}, and the revocation is being stored"),
        Some(trouble) => {
            format!(
                "it has been denied since {at}, but the revocation is not stored yet: {}",
                visible::line(trouble)
            )
        }
    }
}

/// Formats a Unix timestamp in milliseconds as date and time in UTC.
#[must_use]
pub fn time_of_day(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis).unwrap_or_default();
    time.format("%Y-%m-%d %H:%M:%SZ").to_string()
}

fn grant(grant: &StandingGrant, resolver: &Resolver) -> GrantView {
    let (kind, access, suspended) = match &grant.what {
        Granted::Files(files) => {
            (files_kind(files.kind), files_access(files), check_unchanged(files, resolver).err())
        }
        Granted::Host(_) => ("host", vec!["reach".to_owned()], None),
        Granted::Tool(_) => ("tool", vec!["use".to_owned()], None),
    };
    GrantView {
        id: grant.id.clone(),
        client: display_name(&grant.subject.client_name),
        server: display_name(&grant.subject.server),
        session: grant.subject.session.clone(),
        path: visible::path(&grant.what.to_string()),
        kind: kind.to_owned(),
        access,
        lifetime: lifetime(grant.lifetime).to_owned(),
        expires_ms: grant.expires_ms,
        created_ms: grant.created_ms,
        last_used_ms: grant.last_used_ms,
        uses: grant.uses,
        provenance: visible::line(&grant.provenance),
        suspended: suspended.map(|why| visible::line(&why.to_string())),
        server_changed: false,
        ending: None,
        unused_days: None,
    }
}

fn files_kind(kind: GrantKind) -> &'static str {
    match kind {
        GrantKind::File => "file",
        GrantKind::Tree => "folder",
    }
}

fn files_access(files: &Files) -> Vec<String> {
    let access = files.access;
    let words = [(access.read, "read"), (access.write, "write"), (access.delete, "delete")];
    words.iter().filter(|(has, _)| *has).map(|(_, word)| (*word).to_owned()).collect()
}

fn lifetime(lifetime: Lifetime) -> &'static str {
    match lifetime {
        Lifetime::Once => "this call",
        Lifetime::Session => "this session",
        Lifetime::QuarterHour => "15 minutes",
        Lifetime::Hour => "1 hour",
        Lifetime::Always => "always",
    }
}

/// Truncates a name from another program and escapes invisible characters in it.
fn display_name(text: &str) -> String {
    visible::line(&visible::head(text, MAX_NAME_LEN))
}

/// Returns the paths in an audit entry, followed by its host.
fn paths_and_host(entry: &Entry) -> Vec<String> {
    let host = entry.host.as_ref().map(|host| match entry.port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.clone(),
    });
    entry.paths.iter().chain(&entry.path).cloned().chain(host).collect()
}

/// Describes an audit entry in a self-contained sentence. The tool is shown separately.
fn describe_entry(entry: &Entry) -> String {
    let text = match entry.event {
        Event::Decision => return entry.policy_decision.as_ref().map_or_else(String::new, decision_text),
        Event::Question => Some("Asked you"),
        Event::Answer => entry.escalation_result.as_ref().and_then(answer_text),
        Event::Outcome => entry.result.as_ref().and_then(outcome_text),
        Event::Daemon
        | Event::Session
        | Event::Server
        | Event::Grant
        | Event::Revoked
        | Event::Policy
        | Event::Network
        | Event::BoundaryViolation
        | Event::AutostartFileChanged
        | Event::FileQuarantined
        | Event::GitConfigRestored
        | Event::ScanIncomplete
        | Event::FileDecided
        | Event::Retention
        | Event::Lockdown
        | Event::Pause
        | Event::Undo => None,
    };
    capitalized(text.unwrap_or(&entry.summary))
}

fn answer_text(end: &EscalationResult) -> Option<&'static str> {
    match end {
        EscalationResult::Approved => Some("You allowed it"),
        EscalationResult::Denied => Some("You denied it"),
        EscalationResult::TimedOut => Some("You did not answer in time"),
        EscalationResult::Unavailable => Some("You could not be asked"),
        EscalationResult::Closed => Some("The question was closed"),
        EscalationResult::Settled => Some("Another answer settled it"),
        EscalationResult::Stopped => Some("You stopped it"),
        EscalationResult::Other(_) => None,
    }
}

fn outcome_text(end: &CallResult) -> Option<&'static str> {
    match end {
        CallResult::Ok => Some("Done"),
        CallResult::Error => Some("The server answered with an error"),
        CallResult::RefusedByServer => Some("The server refused it"),
        CallResult::BlockedBySandbox => Some("The sandbox blocked it"),
        CallResult::NoAnswer => Some("The server did not answer"),
        CallResult::GivenUp | CallResult::Refused | CallResult::Other(_) => None,
    }
}

fn decision_text(decision: &PolicyDecision) -> String {
    // The display adds its own full stop.
    let reason = decision.reason.trim_end_matches('.');
    match (&decision.status, decision.basis()) {
        (Status::Allow, Some(DecidedBy::Grant)) => "Allowed by a grant".to_owned(),
        (Status::Allow, Some(DecidedBy::SessionFolder)) => "Allowed: in the session's own folder".to_owned(),
        (Status::Allow, Some(DecidedBy::Answer)) => "Allowed by your answer".to_owned(),
        (Status::Allow, _) => format!("Allowed: {reason}"),
        (Status::Escalate | Status::Deny | Status::Other(_), _) => format!("Denied: {reason}"),
    }
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn event_name(event: Event) -> &'static str {
    match event {
        Event::Daemon => "program",
        Event::Session => "session",
        Event::Server => "server",
        Event::Decision => "decision",
        Event::Outcome => "outcome",
        Event::Question => "question",
        Event::Answer => "answer",
        Event::Grant => "grant",
        Event::Revoked => "revoked",
        Event::Policy => "policy",
        Event::Network => "network",
        Event::BoundaryViolation => "boundary",
        Event::AutostartFileChanged => "file left",
        Event::FileQuarantined => "quarantine",
        Event::GitConfigRestored => "put back",
        Event::ScanIncomplete => "unfinished",
        Event::FileDecided => "your word",
        Event::Retention => "record",
        Event::Lockdown => "lockdown",
        Event::Pause => "pause",
        Event::Undo => "undo",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: u64 = 86_400_000;

    /// Returns a grant that lets server `s` reach a host.
    fn grant_to_host(days_ago: u64, used_days_ago: Option<u64>, lifetime: Lifetime) -> StandingGrant {
        use ironcurtain_egress::HostPort;
        use ironcurtain_grants::GrantSubject;
        StandingGrant {
            id: "g".into(),
            subject: GrantSubject {
                client: "k".into(),
                client_name: "n".into(),
                server: "s".into(),
                session: None,
            },
            what: Granted::Host(HostPort::parse("docs.example.org:443", None).unwrap()),
            lifetime,
            expires_ms: (lifetime == Lifetime::Hour).then(|| now_ms() + 1000),
            created_ms: now_ms() - days_ago * DAY,
            last_used_ms: used_days_ago.map(|days| now_ms() - days * DAY),
            uses: 0,
            provenance: "q".into(),
        }
    }

    #[test]
    fn a_grant_of_a_changed_server_is_suspended_unless_it_ends_with_a_session() {
        let home = CanonicalPath::assume_canonical("/home/u").unwrap();
        let permanent = grant_to_host(1, None, Lifetime::Always);
        let mut for_session = permanent.clone();
        for_session.subject.session = Some("s1".into());
        let shown = |server: &str, still_runs: bool| {
            let changed = BTreeMap::from([(server.to_owned(), still_runs)]);
            let shown = grants([&permanent, &for_session].into_iter(), &[], &changed, &home);
            let marks = shown.into_iter().map(|grant| (grant.suspended, grant.server_changed));
            marks.collect::<Vec<_>>()
        };
        let suspended = |words: &str| (Some(words.to_owned()), true);
        assert_eq!(shown("s", false), [suspended("the server changed"), (None, false)]);
        let running = suspended("the server changed; sessions that started before still use it");
        assert_eq!(shown("s", true), [running, (None, false)]);
        assert_eq!(shown("t", false), [(None, false), (None, false)]);
    }

    #[test]
    fn unused_grants_are_marked_and_unstored_revocations_show_their_time() {
        use ironcurtain_grants::EndReason;
        let home = CanonicalPath::assume_canonical("/home/u").unwrap();
        for (days_ago, used, lifetime, expected) in [
            (29, None, Lifetime::Always, None),
            (30, None, Lifetime::Always, Some(30)),
            (400, Some(34), Lifetime::Always, Some(34)),
            (400, Some(1), Lifetime::Always, None),
            (400, None, Lifetime::Hour, None),
        ] {
            let one = grant_to_host(days_ago, used, lifetime);
            let shown = grants([&one].into_iter(), &[], &BTreeMap::new(), &home);
            assert_eq!(shown[0].unused_days, expected, "{days_ago} {used:?}");
        }
        let at_ms = 1_700_000_000_000;
        let mut ending =
            PendingTermination::new(grant_to_host(400, None, Lifetime::Always), EndReason::Revoked, at_ms);
        ending.trouble = Some("the disk\u{202e} is full".into());
        let shown = grants([].into_iter(), &[ending], &BTreeMap::new(), &home);
        let words = "it has been denied since 2023-11-14 22:13:20Z, but the revocation is not stored yet: the disk\\u{202e} is full";
        assert_eq!((shown[0].ending.as_deref(), shown[0].unused_days), (Some(words), None));
    }

    #[test]
    fn entries_are_described_in_plain_sentences() {
        let decided = |decision: PolicyDecision| {
            let mut entry = Entry::new(Event::Decision, "x");
            entry.policy_decision = Some(decision);
            describe_entry(&entry)
        };
        let allowed = |by, rule, reason| decided(PolicyDecision::allow(by, rule, reason));
        assert_eq!(allowed(DecidedBy::Grant, "grant", "grant `x`"), "Allowed by a grant");
        assert_eq!(allowed(DecidedBy::Answer, "ask-first", "approved: y"), "Allowed by your answer");
        assert_eq!(allowed(DecidedBy::Rule, "work", "work is free"), "Allowed: work is free");
        assert_eq!(allowed(DecidedBy::Rule, "team", "approved by all"), "Allowed: approved by all");
        assert_eq!(allowed(DecidedBy::Rule, "work", "It reaches nothing."), "Allowed: It reaches nothing");
        let denied = PolicyDecision::deny(DecidedBy::ProtectedPath, "r", "it is protected");
        assert_eq!(decided(denied), "Denied: it is protected");
        let mut answer = Entry::new(Event::Answer, "the question ended: timeout");
        answer.escalation_result = Some(EscalationResult::TimedOut);
        assert_eq!(describe_entry(&answer), "You did not answer in time");
        assert_eq!(
            describe_entry(&Entry::new(Event::Server, "the server x started")),
            "The server x started"
        );
    }
}
