//! From domain values to what people are shown: names and paths that come from elsewhere are made visible.

mod activity;

pub(crate) use activity::activity;

use crate::consent::{Lifetime, visible};
use crate::grants::{Files, Granted, StandingGrant};
use crate::server::still_there;
use ironcurtain_audit::{Entry, Event, PolicyDecision};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::GrantKind;
use ironcurtain_protocol::GrantView;

/// The longest name of a client, a server or a tool that is shown, in characters.
const LONGEST_NAME: usize = 200;

/// Grants for people.
pub(crate) fn grants<'a>(
    all: impl Iterator<Item = &'a StandingGrant>,
    home: &CanonicalPath,
) -> Vec<GrantView> {
    let resolver = Resolver::new(home.clone(), home.clone());
    all.map(|g| grant(g, &resolver)).collect()
}

fn grant(grant: &StandingGrant, resolver: &Resolver) -> GrantView {
    let (kind, access, suspended) = match &grant.what {
        Granted::Files(files) => {
            (files_kind(files.kind), files_access(files), still_there(files, resolver).err())
        }
        Granted::Host(_) => ("host", vec!["reach".to_owned()], None),
    };
    GrantView {
        id: grant.id.clone(),
        client: name(&grant.subject.client_name),
        server: name(&grant.subject.server),
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
        suspended: suspended.map(|why| visible::line(&why)),
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

/// A name that somebody else chose, on one line and not endless.
fn name(text: &str) -> String {
    visible::line(&visible::head(text, LONGEST_NAME))
}

/// What it is about: paths, or a host.
fn concerned(entry: &Entry) -> Vec<String> {
    let host = entry.host.as_ref().map(|host| match entry.port {
        Some(port) if host.contains(':') => format!("[{host}]:{port}"),
        Some(port) => format!("{host}:{port}"),
        None => host.clone(),
    });
    entry.paths.iter().cloned().chain(host).collect()
}

/// The entry in a sentence a person can read without the log's own fields. The tool is not in it: it has its own place.
fn sentence(entry: &Entry) -> String {
    let result = entry.escalation_result.as_deref().or(entry.result.as_deref());
    let fixed = match (entry.event, result) {
        (Event::Decision, _) => return entry.policy_decision.as_ref().map_or_else(String::new, decided),
        (Event::Question, _) => "Asked you",
        (Event::Answer, Some("approved")) => "You allowed it",
        (Event::Answer, Some("denied")) => "You denied it",
        (Event::Answer, Some("timeout")) => "You did not answer in time",
        (Event::Answer, Some("unavailable")) => "Nobody could be asked",
        (Event::Answer, Some("closed")) => "The question was closed",
        (Event::Answer, Some("settled")) => "Another answer settled it",
        (Event::Outcome, Some("ok")) => "Done",
        (Event::Outcome, Some("error")) => "The server answered with an error",
        _ => entry.summary.as_str(),
    };
    capitalized(fixed)
}

fn decided(decision: &PolicyDecision) -> String {
    match (decision.status.as_str(), decision.rule.as_str()) {
        ("allow", "grant") => "Allowed by what you granted".to_owned(),
        ("allow", "structural-sandbox-allow") => "Allowed: in the session's own folder".to_owned(),
        ("allow", _) if decision.reason.starts_with("approved") => "Allowed by your answer".to_owned(),
        ("allow", _) => format!("Allowed: {}", decision.reason),
        _ => format!("Denied: {}", decision.reason),
    }
}

fn capitalized(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn event(event: Event) -> &'static str {
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
        Event::FileLeft => "file left",
        Event::FileQuarantined => "quarantine",
        Event::FilePutBack => "put back",
        Event::LookUnfinished => "unfinished",
        Event::FileDecided => "your word",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_in_words_people_use() {
        let decision = |status: &str, rule: &str, reason: &str| {
            let mut entry = Entry::new(Event::Decision, "x");
            let (status, rule, reason) = (status.to_owned(), rule.to_owned(), reason.to_owned());
            entry.policy_decision = Some(PolicyDecision { status, rule, reason });
            sentence(&entry)
        };
        assert_eq!(decision("allow", "grant", "grant `x`"), "Allowed by what you granted");
        assert_eq!(decision("allow", "ask-before-reading", "approved: y"), "Allowed by your answer");
        assert_eq!(decision("allow", "work", "work is free"), "Allowed: work is free");
        assert_eq!(decision("deny", "r", "it is protected"), "Denied: it is protected");
        let mut answer = Entry::new(Event::Answer, "the question ended: timeout");
        answer.escalation_result = Some("timeout".into());
        assert_eq!(sentence(&answer), "You did not answer in time");
        assert_eq!(sentence(&Entry::new(Event::Server, "the server x started")), "The server x started");
    }
}
