//! The tray menu as plain data.
//!
//! - Pure: a function of its input, so tests compare whole values.

use crate::consent::text;
use ironcurtain_protocol::{Protection, QuestionState, QuestionView, SessionView, StatusView};

/// Maximum number of sessions in the menu; the window lists all.
const SESSIONS: usize = 12;

/// Maximum length of a question's line.
const LINE: usize = 60;

/// Input of the menu.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TrayState {
    /// State of the trusted process, once known.
    pub(crate) status: Option<StatusView>,
    /// Live sessions.
    pub(crate) sessions: Vec<SessionView>,
    /// Pending questions.
    pub(crate) questions: usize,
    /// Questions that expired unanswered.
    pub(crate) missed: Vec<QuestionView>,
}

/// Everything that the tray shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrayMenu {
    pub(crate) protection: Protection,
    pub(crate) tooltip: String,
    /// Text next to the icon: the number of questions, or nothing.
    pub(crate) badge: String,
    pub(crate) entries: Vec<MenuEntry>,
}

/// One line of the menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MenuEntry {
    Line(String),
    Separator,
    Press { text: String, action: MenuAction },
    Sub { text: String, presses: Vec<(String, MenuAction)> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MenuAction {
    Questions,
    AskAgain { question: String },
    End { session: String },
    Lockdown { on: bool },
    Open,
    Quit,
}

impl MenuAction {
    /// Returns the id of the menu entry.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Questions => "questions".to_owned(),
            Self::AskAgain { question } => format!("again:{question}"),
            Self::End { session } => format!("end:{session}"),
            Self::Lockdown { on: true } => "lockdown".to_owned(),
            Self::Lockdown { on: false } => "lockdown-off".to_owned(),
            Self::Open => "open".to_owned(),
            Self::Quit => "quit".to_owned(),
        }
    }

    /// Parses the id of a menu entry.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        match id {
            "questions" => Some(Self::Questions),
            "lockdown" => Some(Self::Lockdown { on: true }),
            "lockdown-off" => Some(Self::Lockdown { on: false }),
            "open" => Some(Self::Open),
            "quit" => Some(Self::Quit),
            other => {
                let end = other.strip_prefix("end:").map(|session| Self::End { session: session.to_owned() });
                let again = || other.strip_prefix("again:");
                end.or_else(|| again().map(|question| Self::AskAgain { question: question.to_owned() }))
            }
        }
    }
}

impl TrayMenu {
    pub(crate) fn new(state: &TrayState) -> Self {
        let protection = protection(state);
        let headline = headline(protection, state);
        let mut entries = vec![MenuEntry::Line(headline.clone()), MenuEntry::Separator];
        entries.push(if state.questions == 0 {
            MenuEntry::Line("No questions".to_owned())
        } else {
            MenuEntry::Press {
                text: format!("Questions ({})", state.questions),
                action: MenuAction::Questions,
            }
        });
        if !state.missed.is_empty() {
            entries.push(missed(&state.missed));
        }
        entries.push(sessions(&state.sessions));
        entries.push(lockdown(state));
        entries.push(MenuEntry::Separator);
        entries.push(MenuEntry::Press { text: "Open IronCurtain".to_owned(), action: MenuAction::Open });
        entries.push(MenuEntry::Press { text: quit(state.sessions.len()), action: MenuAction::Quit });
        let badge = if state.questions == 0 { String::new() } else { state.questions.to_string() };
        Self { protection, tooltip: format!("IronCurtain: {headline}"), badge, entries }
    }
}

/// Returns the state to show. Problems take precedence over questions, because an answer may not
/// help until they are fixed.
fn protection(state: &TrayState) -> Protection {
    match &state.status {
        None => Protection::Degraded,
        Some(status) if status.protection == Protection::Degraded => Protection::Degraded,
        Some(status) if status.lockdown => Protection::Lockdown,
        Some(_) if state.questions > 0 => Protection::Asking,
        Some(_) => Protection::Protecting,
    }
}

fn headline(protection: Protection, state: &TrayState) -> String {
    match protection {
        Protection::Protecting if state.sessions.is_empty() => "No agent connected".to_owned(),
        Protection::Protecting => format!("Protecting {}", count(state.sessions.len(), "session")),
        Protection::Asking if state.questions == 1 => "1 question is waiting for you".to_owned(),
        Protection::Asking => format!("{} questions are waiting for you", state.questions),
        Protection::Lockdown => "Locked down: everything that would ask you is denied".to_owned(),
        Protection::Degraded => {
            let trouble = state.status.as_ref().and_then(|status| status.troubles.first());
            let words = trouble.map_or_else(|| "not ready yet".to_owned(), |trouble| text::line(trouble));
            format!("Something is wrong: {}", text::clip(&words, 120))
        }
    }
}

fn sessions(sessions: &[SessionView]) -> MenuEntry {
    if sessions.is_empty() {
        return MenuEntry::Line("No sessions".to_owned());
    }
    let presses = sessions
        .iter()
        .take(SESSIONS)
        .map(|session| {
            let who = text::name(&session.client.name);
            let text = text::isolated(&format!("End {who} \u{2192} {}", text::name(&session.server)));
            (mnemonics_off(&text), MenuAction::End { session: session.id.clone() })
        })
        .collect();
    MenuEntry::Sub { text: format!("Sessions ({})", sessions.len()), presses }
}

/// Returns the entry for expired questions that can still be reopened.
fn missed(missed: &[QuestionView]) -> MenuEntry {
    let open = missed.iter().filter(|question| question.state == QuestionState::Missed);
    let presses: Vec<_> = open
        .take(SESSIONS)
        .map(|question| {
            let line =
                question.lines.first().map_or_else(String::new, |line| text::clip(&text::line(line), LINE));
            let words = text::isolated(&format!("{}: {line}", text::name(&question.client)));
            (mnemonics_off(&words), MenuAction::AskAgain { question: question.id.clone() })
        })
        .collect();
    if presses.is_empty() {
        return MenuEntry::Line("No unanswered questions".to_owned());
    }
    MenuEntry::Sub { text: format!("Unanswered ({})", presses.len()), presses }
}

fn lockdown(state: &TrayState) -> MenuEntry {
    let is_on = state.status.as_ref().is_some_and(|status| status.lockdown);
    let text = if is_on { "Undo lockdown" } else { "Lock down (deny everything that would ask me)" };
    MenuEntry::Press { text: text.to_owned(), action: MenuAction::Lockdown { on: !is_on } }
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

/// Escapes ampersands, which mark access keys in native menus.
fn mnemonics_off(text: &str) -> String {
    text.replace('&', "&&")
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_protocol::{AskedOn, ClientView};

    #[test]
    fn shows_no_agent_when_idle() {
        let state = TrayState { status: Some(status(Protection::Protecting, &[])), ..TrayState::default() };
        assert_eq!(
            TrayMenu::new(&state),
            TrayMenu {
                protection: Protection::Protecting,
                tooltip: "IronCurtain: No agent connected".into(),
                badge: String::new(),
                entries: vec![
                    MenuEntry::Line("No agent connected".into()),
                    MenuEntry::Separator,
                    MenuEntry::Line("No questions".into()),
                    MenuEntry::Line("No sessions".into()),
                    lock(true),
                    MenuEntry::Separator,
                    MenuEntry::Press { text: "Open IronCurtain".into(), action: MenuAction::Open },
                    MenuEntry::Press { text: "Quit".into(), action: MenuAction::Quit },
                ],
            }
        );
    }

    #[test]
    fn lists_sessions_and_counts_the_question() {
        let state = TrayState {
            status: Some(status(Protection::Asking, &[])),
            sessions: vec![session("s1", "Claude Code", "filesystem"), session("s2", "R&D", "git")],
            questions: 1,
            missed: vec![],
        };
        assert_eq!(
            TrayMenu::new(&state),
            TrayMenu {
                protection: Protection::Asking,
                tooltip: "IronCurtain: 1 question is waiting for you".into(),
                badge: "1".into(),
                entries: vec![
                    MenuEntry::Line("1 question is waiting for you".into()),
                    MenuEntry::Separator,
                    MenuEntry::Press { text: "Questions (1)".into(), action: MenuAction::Questions },
                    MenuEntry::Sub {
                        text: "Sessions (2)".into(),
                        presses: vec![
                            (
                                "End Claude Code \u{2192} filesystem".into(),
                                MenuAction::End { session: "s1".into() }
                            ),
                            ("End R&&D \u{2192} git".into(), MenuAction::End { session: "s2".into() }),
                        ],
                    },
                    lock(true),
                    MenuEntry::Separator,
                    MenuEntry::Press { text: "Open IronCurtain".into(), action: MenuAction::Open },
                    MenuEntry::Press { text: "Quit (ends 2 sessions)".into(), action: MenuAction::Quit },
                ],
            }
        );
    }

    #[test]
    fn problems_take_precedence_over_questions() {
        let state = TrayState {
            status: Some(status(Protection::Degraded, &["the audit log cannot be written"])),
            sessions: vec![],
            questions: 3,
            missed: vec![],
        };
        let menu = TrayMenu::new(&state);
        assert_eq!(
            (menu.protection, menu.tooltip.as_str(), menu.badge.as_str()),
            (Protection::Degraded, "IronCurtain: Something is wrong: the audit log cannot be written", "3")
        );
        assert_eq!(
            TrayMenu::new(&TrayState::default()).protection,
            Protection::Degraded,
            "unknown is not fine"
        );
    }

    #[test]
    fn lockdown_can_be_undone_and_expired_questions_reopened() {
        let question = |id: &str, state| QuestionView {
            id: id.into(),
            session: "s".into(),
            client: "R&D".into(),
            server: "git".into(),
            tool: None,
            lines: vec!["read /a".into()],
            rule: String::new(),
            reason: String::new(),
            since_ms: None,
            kept_seconds: Some(60),
            state,
        };
        let locked = StatusView { lockdown: true, ..status(Protection::Lockdown, &[]) };
        let missed = vec![question("q", QuestionState::Missed), question("r", QuestionState::AllowedLate)];
        let menu = TrayMenu::new(&TrayState { status: Some(locked), missed, ..TrayState::default() });
        assert_eq!(menu.protection, Protection::Lockdown);
        assert_eq!(menu.tooltip, "IronCurtain: Locked down: everything that would ask you is denied");
        let again = MenuAction::AskAgain { question: "q".into() };
        let presses = vec![("R&&D: read /a".to_owned(), again)];
        assert!(menu.entries.contains(&MenuEntry::Sub { text: "Unanswered (1)".into(), presses }));
        assert!(menu.entries.contains(&lock(false)), "{:?}", menu.entries);
    }

    fn lock(on: bool) -> MenuEntry {
        let text = if on { "Lock down (deny everything that would ask me)" } else { "Undo lockdown" };
        MenuEntry::Press { text: text.into(), action: MenuAction::Lockdown { on } }
    }

    #[test]
    fn entry_ids_round_trip() {
        let all = [
            MenuAction::Questions,
            MenuAction::End { session: "s:1".into() },
            MenuAction::AskAgain { question: "end:q".into() },
            MenuAction::Lockdown { on: true },
            MenuAction::Lockdown { on: false },
            MenuAction::Open,
            MenuAction::Quit,
        ];
        for action in all {
            assert_eq!(MenuAction::from_id(&action.id()), Some(action));
        }
        assert_eq!(MenuAction::from_id("else"), None);
    }

    fn status(protection: Protection, troubles: &[&str]) -> StatusView {
        StatusView {
            protection,
            pid: 1,
            version: "0.1.0".into(),
            started_ms: 0,
            sessions: 0,
            questions: 0,
            asked_on: AskedOn::App,
            lockdown: false,
            troubles: troubles.iter().map(ToString::to_string).collect(),
            servers: vec![],
            policy: String::new(),
            secrets_file: None,
            other_home: None,
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
            connection: None,
            trouble: None,
            restarts: 0,
            sandboxed: true,
            remote: false,
            server_pid: None,
            started_ms: 0,
            sandbox_dir: String::new(),
            allowed: 0,
            denied: 0,
            asked: 0,
            roots: vec![],
            left: 0,
            paused: false,
        }
    }
}
