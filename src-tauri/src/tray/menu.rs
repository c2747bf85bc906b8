//! The tray's menu as plain data.
//!
//! - Pure: a function of what is known, so tests compare it whole.

use crate::consent::text;
use ironcurtain_protocol::{Protection, SessionView, StatusView};

/// Most sessions the menu lists; the window has all.
const SESSIONS: usize = 12;

/// What the menu is made of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Facts {
    /// State of the trusted process, once it is known.
    pub(crate) status: Option<StatusView>,
    /// Live sessions.
    pub(crate) sessions: Vec<SessionView>,
    /// Questions that wait for the person.
    pub(crate) questions: usize,
}

/// What the tray shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrayMenu {
    pub(crate) protection: Protection,
    pub(crate) tooltip: String,
    /// Text beside the icon: the count of questions, or nothing.
    pub(crate) badge: String,
    pub(crate) entries: Vec<Entry>,
}

/// One line of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Entry {
    Line(String),
    Separator,
    Press { text: String, choice: Choice },
    Sub { text: String, presses: Vec<(String, Choice)> },
}

/// What a press asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    Questions,
    End { session: String },
    Open,
    Quit,
}

impl Choice {
    /// The id the menu carries.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Questions => "questions".to_owned(),
            Self::End { session } => format!("end:{session}"),
            Self::Open => "open".to_owned(),
            Self::Quit => "quit".to_owned(),
        }
    }

    /// The choice of an id, if it is one of ours.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        match id {
            "questions" => Some(Self::Questions),
            "open" => Some(Self::Open),
            "quit" => Some(Self::Quit),
            other => other.strip_prefix("end:").map(|session| Self::End { session: session.to_owned() }),
        }
    }
}

impl TrayMenu {
    pub(crate) fn new(facts: &Facts) -> Self {
        let protection = protection(facts);
        let state = state(protection, facts);
        let mut entries = vec![Entry::Line(state.clone()), Entry::Separator];
        entries.push(if facts.questions == 0 {
            Entry::Line("No questions".to_owned())
        } else {
            Entry::Press { text: format!("Questions ({})", facts.questions), choice: Choice::Questions }
        });
        entries.push(sessions(&facts.sessions));
        entries.push(Entry::Separator);
        entries.push(Entry::Press { text: "Open IronCurtain".to_owned(), choice: Choice::Open });
        entries.push(Entry::Press { text: quit(facts.sessions.len()), choice: Choice::Quit });
        let badge = if facts.questions == 0 { String::new() } else { facts.questions.to_string() };
        Self { protection, tooltip: format!("IronCurtain: {state}"), badge, entries }
    }
}

/// Trouble is shown before questions: while something is wrong, an answer may not help.
fn protection(facts: &Facts) -> Protection {
    match &facts.status {
        None => Protection::Degraded,
        Some(status) if status.protection == Protection::Degraded => Protection::Degraded,
        Some(_) if facts.questions > 0 => Protection::Asking,
        Some(_) => Protection::Protecting,
    }
}

fn state(protection: Protection, facts: &Facts) -> String {
    match protection {
        Protection::Protecting if facts.sessions.is_empty() => "Protecting, no agent connected".to_owned(),
        Protection::Protecting => format!("Protecting {}", count(facts.sessions.len(), "session")),
        Protection::Asking if facts.questions == 1 => "1 question waits for you".to_owned(),
        Protection::Asking => format!("{} questions wait for you", facts.questions),
        Protection::Degraded => {
            let trouble = facts.status.as_ref().and_then(|status| status.troubles.first());
            let words = trouble.map_or_else(|| "not ready yet".to_owned(), |trouble| text::line(trouble));
            format!("Something is wrong: {}", text::clip(&words, 120))
        }
    }
}

fn sessions(sessions: &[SessionView]) -> Entry {
    if sessions.is_empty() {
        return Entry::Line("No sessions".to_owned());
    }
    let presses = sessions
        .iter()
        .take(SESSIONS)
        .map(|session| {
            let who = text::name(&session.client.name);
            let text = format!("End {who} \u{2192} {}", text::name(&session.server));
            (mnemonics_off(&text), Choice::End { session: session.id.clone() })
        })
        .collect();
    Entry::Sub { text: format!("Sessions ({})", sessions.len()), presses }
}

fn quit(sessions: usize) -> String {
    match sessions {
        0 => "Quit".to_owned(),
        n => format!("Quit (ends {})", count(n, "session")),
    }
}

fn count(n: usize, word: &str) -> String {
    if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") }
}

/// An ampersand marks a key in native menus; doubled, it is one.
fn mnemonics_off(text: &str) -> String {
    text.replace('&', "&&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::ClientView;

    #[test]
    fn at_rest() {
        let facts = Facts { status: Some(status(Protection::Protecting, &[])), ..Facts::default() };
        assert_eq!(
            TrayMenu::new(&facts),
            TrayMenu {
                protection: Protection::Protecting,
                tooltip: "IronCurtain: Protecting, no agent connected".into(),
                badge: String::new(),
                entries: vec![
                    Entry::Line("Protecting, no agent connected".into()),
                    Entry::Separator,
                    Entry::Line("No questions".into()),
                    Entry::Line("No sessions".into()),
                    Entry::Separator,
                    Entry::Press { text: "Open IronCurtain".into(), choice: Choice::Open },
                    Entry::Press { text: "Quit".into(), choice: Choice::Quit },
                ],
            }
        );
    }

    #[test]
    fn with_two_sessions_and_a_question() {
        let facts = Facts {
            status: Some(status(Protection::Asking, &[])),
            sessions: vec![session("s1", "Claude Code", "filesystem"), session("s2", "R&D", "git")],
            questions: 1,
        };
        assert_eq!(
            TrayMenu::new(&facts),
            TrayMenu {
                protection: Protection::Asking,
                tooltip: "IronCurtain: 1 question waits for you".into(),
                badge: "1".into(),
                entries: vec![
                    Entry::Line("1 question waits for you".into()),
                    Entry::Separator,
                    Entry::Press { text: "Questions (1)".into(), choice: Choice::Questions },
                    Entry::Sub {
                        text: "Sessions (2)".into(),
                        presses: vec![
                            (
                                "End Claude Code \u{2192} filesystem".into(),
                                Choice::End { session: "s1".into() }
                            ),
                            ("End R&&D \u{2192} git".into(), Choice::End { session: "s2".into() }),
                        ],
                    },
                    Entry::Separator,
                    Entry::Press { text: "Open IronCurtain".into(), choice: Choice::Open },
                    Entry::Press { text: "Quit (ends 2 sessions)".into(), choice: Choice::Quit },
                ],
            }
        );
    }

    #[test]
    fn trouble_comes_before_questions() {
        let facts = Facts {
            status: Some(status(Protection::Degraded, &["the audit log cannot be written"])),
            sessions: vec![],
            questions: 3,
        };
        let menu = TrayMenu::new(&facts);
        assert_eq!(
            (menu.protection, menu.tooltip.as_str(), menu.badge.as_str()),
            (Protection::Degraded, "IronCurtain: Something is wrong: the audit log cannot be written", "3")
        );
        assert_eq!(TrayMenu::new(&Facts::default()).protection, Protection::Degraded, "unknown is not fine");
    }

    #[test]
    fn ids_name_their_choice() {
        let all = [Choice::Questions, Choice::End { session: "s:1".into() }, Choice::Open, Choice::Quit];
        for choice in all {
            assert_eq!(Choice::from_id(&choice.id()), Some(choice));
        }
        assert_eq!(Choice::from_id("else"), None);
    }

    fn status(protection: Protection, troubles: &[&str]) -> StatusView {
        StatusView {
            protection,
            pid: 1,
            version: "0.1.0".into(),
            started_ms: 0,
            sessions: 0,
            questions: 0,
            troubles: troubles.iter().map(ToString::to_string).collect(),
            servers: vec![],
            policy: String::new(),
        }
    }

    fn session(id: &str, client: &str, server: &str) -> SessionView {
        SessionView {
            id: id.into(),
            client: ClientView {
                name: client.into(),
                exe: None,
                chain: vec![],
                cwd: None,
                says_it_is: None,
                label: None,
            },
            server: server.into(),
            sandboxed: true,
            server_pid: None,
            started_ms: 0,
            sandbox_dir: String::new(),
            allowed: 0,
            denied: 0,
            asked: 0,
            roots: vec![],
            left: 0,
        }
    }
}
