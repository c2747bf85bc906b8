//! Content of the tray menu as plain data.
//!
//! - Depends only on its input, so tests can compare complete menus.

use crate::consent::{PendingQuestion, text};
use crate::window::BypassingServers;
use ironcurtain_protocol::{Protection, QuestionState, QuestionView, SessionView, StatusView};
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of agents, of sessions per agent, and of questions in the menu. The window lists all of them.
const MAX_COUNT: usize = 12;

/// Maximum length of a question in the menu, in characters.
const MAX_LINE_LEN: usize = 60;

/// State from which the menu is built.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TrayState {
    /// State of the trusted process, or `None` before it is known.
    pub(crate) status: Option<StatusView>,
    /// Active sessions.
    pub(crate) sessions: Vec<SessionView>,
    /// Pending questions.
    pub(crate) questions: Vec<PendingQuestion>,
    /// Questions that expired without an answer.
    pub(crate) missed: Vec<QuestionView>,
    /// Servers that agents start without IronCurtain.
    pub(crate) bypassing: BypassingServers,
}

/// Picture of the tray icon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrayPicture {
    /// All servers that were found are sandboxed.
    Protecting,
    /// Some servers are not protected, or could not be checked.
    Part,
    /// No agent is connected.
    Open,
    /// A question is pending.
    Asking,
    Lockdown,
    /// There is a problem, or the state is unknown.
    Degraded,
}

/// Content of the tray icon and its menu.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TrayMenu {
    pub(crate) picture: TrayPicture,
    pub(crate) tooltip: String,
    /// Text beside the icon: the number of questions, or empty without any.
    pub(crate) badge: String,
    pub(crate) entries: Vec<MenuEntry>,
}

/// An entry of the menu.
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
    AskAgain {
        question: String,
    },
    /// Pauses or resumes all sessions of the agent with this name.
    Pause {
        agent: String,
        on: bool,
    },
    End {
        session: String,
    },
    Lockdown {
        on: bool,
    },
    Open,
    Quit,
}

impl MenuAction {
    /// Returns the id of the entry.
    pub(crate) fn id(&self) -> String {
        match self {
            Self::Questions => "questions".to_owned(),
            Self::AskAgain { question } => format!("again:{question}"),
            Self::Pause { agent, on: true } => format!("pause:{agent}"),
            Self::Pause { agent, on: false } => format!("resume:{agent}"),
            Self::End { session } => format!("end:{session}"),
            Self::Lockdown { on: true } => "lockdown".to_owned(),
            Self::Lockdown { on: false } => "lockdown-off".to_owned(),
            Self::Open => "open".to_owned(),
            Self::Quit => "quit".to_owned(),
        }
    }

    /// Parses the id of an entry.
    pub(crate) fn from_id(id: &str) -> Option<Self> {
        match id {
            "questions" => Some(Self::Questions),
            "lockdown" => Some(Self::Lockdown { on: true }),
            "lockdown-off" => Some(Self::Lockdown { on: false }),
            "open" => Some(Self::Open),
            "quit" => Some(Self::Quit),
            other => {
                let (kind, of) = other.split_once(':')?;
                let of = of.to_owned();
                match kind {
                    "again" => Some(Self::AskAgain { question: of }),
                    "pause" => Some(Self::Pause { agent: of, on: true }),
                    "resume" => Some(Self::Pause { agent: of, on: false }),
                    "end" => Some(Self::End { session: of }),
                    _ => None,
                }
            }
        }
    }
}

impl TrayMenu {
    pub(crate) fn new(state: &TrayState) -> Self {
        let (picture, headline) = headline(state);
        let mut entries = vec![MenuEntry::Line(headline.clone())];
        // Omits the line if the headline already ends with it.
        let around = bypass_sentence(state.bypassing).filter(|line| !headline.ends_with(line));
        entries.extend(around.map(MenuEntry::Line));
        entries.push(MenuEntry::Separator);
        let start = entries.len();
        entries.extend(questions(&state.questions));
        if !state.missed.is_empty() {
            entries.push(missed(&state.missed));
        }
        if entries.len() > start {
            entries.push(MenuEntry::Separator);
        }
        let agents = agents(&state.sessions);
        if !agents.is_empty() {
            entries.extend(agents);
            entries.push(MenuEntry::Separator);
        }
        entries.push(lockdown(state));
        entries.push(MenuEntry::Press { text: "Open IronCurtain".to_owned(), action: MenuAction::Open });
        entries.push(MenuEntry::Press { text: quit(state.sessions.len()), action: MenuAction::Quit });
        let n = state.questions.len();
        let badge = if n == 0 { String::new() } else { n.to_string() };
        Self { picture, tooltip: format!("IronCurtain: {headline}"), badge, entries }
    }
}

/// Returns the picture and the first line. Problems take precedence over questions, because answers may have no effect
/// until they are fixed.
fn headline(state: &TrayState) -> (TrayPicture, String) {
    let wrong = |trouble: &str| {
        let words = format!("Something is wrong: {}", text::clip(&text::line(trouble), 120));
        (TrayPicture::Degraded, words)
    };
    let Some(status) = &state.status else { return wrong("not ready yet") };
    if status.protection == Protection::Degraded {
        return wrong(status.troubles.first().map_or("not ready yet", String::as_str));
    }
    if status.lockdown {
        return (TrayPicture::Lockdown, "Locked down: everything that would ask you is denied".to_owned());
    }
    match state.questions.len() {
        0 => protected(&state.sessions, state.bypassing),
        1 => (TrayPicture::Asking, "1 question is waiting for you".to_owned()),
        n => (TrayPicture::Asking, format!("{n} questions are waiting for you")),
    }
}

/// Returns the sentence about servers that bypass IronCurtain, or `None` if there are none.
fn bypass_sentence(bypassing: BypassingServers) -> Option<String> {
    match bypassing.servers {
        0 => None,
        1 => Some("1 server bypasses IronCurtain".to_owned()),
        n => Some(format!("{n} servers bypass IronCurtain")),
    }
}

/// Counts servers that bypass IronCurtain, as the window's home page does.
fn protected(sessions: &[SessionView], bypassing: BypassingServers) -> (TrayPicture, String) {
    let agents = sessions.iter().map(|session| &session.client.name).collect::<BTreeSet<_>>().len();
    let open = sessions.iter().filter(|session| !session.sandboxed && !session.remote);
    let open = open.map(|session| (&session.client.name, &session.server)).collect::<BTreeSet<_>>().len();
    let past = bypass_sentence(bypassing).unwrap_or_default();
    match (agents, open, bypassing) {
        (0, _, BypassingServers { servers: 0, .. }) => (TrayPicture::Open, "No agent connected".to_owned()),
        (0, _, _) => (TrayPicture::Part, format!("Not protected: {past}")),
        (agents, 0, BypassingServers { servers: 0, is_unchecked: false }) => {
            (TrayPicture::Protecting, format!("Protected: {}", count(agents, "agent")))
        }
        (_, 0, BypassingServers { servers: 0, is_unchecked: true }) => {
            let words = "Not fully checked: the settings of an agent could not be read";
            (TrayPicture::Part, words.to_owned())
        }
        (_, 0, _) => (TrayPicture::Part, format!("Partly protected: {past}")),
        (_, open, BypassingServers { servers, .. }) => {
            let verb = if open + servers == 1 { "is" } else { "are" };
            let all = count(open + servers, "server");
            (TrayPicture::Part, format!("Partly protected: {all} {verb} not sandboxed"))
        }
    }
}

/// Returns a menu entry for each pending question. Each entry brings the dialog to the front.
fn questions(questions: &[PendingQuestion]) -> Vec<MenuEntry> {
    let press = |text| MenuEntry::Press { text, action: MenuAction::Questions };
    let mut entries: Vec<MenuEntry> = questions
        .iter()
        .take(MAX_COUNT)
        .map(|question| {
            press(escape_mnemonics(&text::isolated(&text::clip(
                &text::line(&question.sentence),
                MAX_LINE_LEN,
            ))))
        })
        .collect();
    let more = questions.len().saturating_sub(MAX_COUNT);
    if more > 0 {
        entries.push(press(format!("{} more", count(more, "question"))));
    }
    entries
}

/// Returns a submenu for each agent.
fn agents(sessions: &[SessionView]) -> Vec<MenuEntry> {
    let mut agents: BTreeMap<&str, Vec<&SessionView>> = BTreeMap::new();
    for session in sessions {
        agents.entry(&session.client.name).or_default().push(session);
    }
    agents.into_iter().take(MAX_COUNT).map(|(name, sessions)| agent(name, &sessions)).collect()
}

fn agent(name: &str, sessions: &[&SessionView]) -> MenuEntry {
    let is_paused = sessions.iter().all(|session| session.paused);
    let pause = MenuAction::Pause { agent: name.to_owned(), on: !is_paused };
    let mut presses = vec![(if is_paused { "Resume" } else { "Pause" }.to_owned(), pause)];
    presses.extend(sessions.iter().take(MAX_COUNT).map(|session| {
        let words = text::isolated(&format!("End {}", text::name(&session.server)));
        (escape_mnemonics(&words), MenuAction::End { session: session.id.clone() })
    }));
    let state = if is_paused { " (paused)" } else { "" };
    MenuEntry::Sub {
        text: escape_mnemonics(&text::isolated(&format!("{}{state}", text::name(name)))),
        presses,
    }
}

/// Returns the menu entry for reopening expired questions.
fn missed(missed: &[QuestionView]) -> MenuEntry {
    let open = missed.iter().filter(|question| question.state == QuestionState::Missed);
    let presses: Vec<_> = open
        .take(MAX_COUNT)
        .map(|question| {
            let line = question
                .lines
                .first()
                .map_or_else(String::new, |line| text::clip(&text::line(line), MAX_LINE_LEN));
            let words = text::isolated(&format!("{}: {line}", text::name(&question.client)));
            (escape_mnemonics(&words), MenuAction::AskAgain { question: question.id.clone() })
        })
        .collect();
    if presses.is_empty() {
        return MenuEntry::Line("No unanswered questions".to_owned());
    }
    MenuEntry::Sub { text: format!("Unanswered ({})", presses.len()), presses }
}

fn lockdown(state: &TrayState) -> MenuEntry {
    let is_on = state.status.as_ref().is_some_and(|status| status.lockdown);
    let text = if is_on { "End lockdown" } else { "Lock down (deny everything that would ask me)" };
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

/// Escapes ampersands, which mark access keys in menus.
fn escape_mnemonics(text: &str) -> String {
    text.replace('&', "&&")
}

#[cfg(test)]
mod tests;
