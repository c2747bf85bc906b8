//! Status lines of a run, printed on the user's terminal.

use ironcurtain_protocol::RunUse;
use ironcurtain_visible as visible;
use std::collections::VecDeque;
use std::path::Path;

/// Maximum number of denials printed so that a program cannot flood the terminal.
const MAX_DENIALS: usize = 10;

/// Maximum number of pending lines. Beyond this limit, the oldest line is dropped.
const MAX_LINES: usize = 100;

/// Status lines that have not been printed yet.
pub struct RunLines {
    is_shown: bool,
    home: String,
    session: String,
    denials: usize,
    lines: VecDeque<Line>,
}

struct Line {
    text: String,
    /// `true` if the line is only correct while a question is pending.
    is_about_question: bool,
}

impl Line {
    fn new(text: &str) -> Self {
        Self { text: format!("ironcurtain: {text}"), is_about_question: false }
    }
}

impl RunLines {
    pub fn new(is_shown: bool) -> Self {
        let home = std::env::var("HOME").unwrap_or_default();
        Self { is_shown, home, session: String::new(), denials: 0, lines: VecDeque::new() }
    }

    pub fn started(&mut self, session: String, principal: &str, folder: Option<&str>, profile: &str) {
        let program = principal.strip_prefix("run:").unwrap_or(principal);
        let program = visible::quoted(&visible::line(program));
        let may = match folder {
            Some(folder) => {
                format!("may use {}; other files and hosts need your answer", self.shorten(folder))
            }
            None => "has no folder of its own; files and hosts need your answer".to_owned(),
        };
        self.session = session;
        self.add(&format!("{program} {may} (profile {})", visible::line(profile)));
    }

    pub fn limited(&mut self, limitation: &str) {
        self.add(&visible::line(limitation));
    }

    pub fn waiting(&mut self, path: &str) {
        let line = Line::new(&format!("waiting for your answer about {}", self.shorten(path)));
        self.push(Line { is_about_question: true, ..line });
    }

    /// Drops the lines about pending questions, because all questions have ended.
    pub fn answered(&mut self) {
        self.lines.retain(|line| !line.is_about_question);
    }

    pub fn denied(&mut self, path: &str, why: Option<&str>) {
        self.denials += 1;
        if self.denials <= MAX_DENIALS {
            let why = why.map_or_else(String::new, |why| format!(": {}", visible::line(why)));
            let line = format!("denied {}{why}", self.shorten(path));
            self.add(&line);
        } else if self.denials == MAX_DENIALS + 1 {
            self.add("further denials are not printed");
        }
    }

    /// Adds the final lines. The reason a run was cut off is added even in quiet mode.
    pub fn ended(&mut self, used: Option<RunUse>, end_reason: Option<&str>) {
        if let Some(why) = end_reason {
            self.lines.push_back(Line::new(&format!("the run was cut off: {}", visible::line(why))));
        }
        let Some(RunUse { read, written, denied }) = used else { return };
        let files = if read == 1 { "file" } else { "files" };
        let line = if (read, written, denied) == (0, 0, 0) {
            "used no other files".to_owned()
        } else {
            format!("read {read} other {files}, wrote {written}, {denied} denied")
        };
        self.add(&format!("{line} · ironcurtain session {}", visible::line(&self.session)));
    }

    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Removes and returns all lines.
    pub fn take(&mut self) -> impl Iterator<Item = String> {
        self.lines.drain(..).map(|line| line.text)
    }

    fn add(&mut self, line: &str) {
        self.push(Line::new(line));
    }

    fn push(&mut self, line: Line) {
        if self.is_shown {
            if self.lines.len() >= MAX_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back(line);
        }
    }

    /// Formats a path for display.
    fn shorten(&self, path: &str) -> String {
        let below = Path::new(path).strip_prefix(&self.home).ok().filter(|_| !self.home.is_empty());
        let short = match below.and_then(Path::to_str) {
            Some("") => "~".to_owned(),
            Some(below) => format!("~/{below}"),
            None => path.to_owned(),
        };
        visible::path(&short)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(act: impl FnOnce(&mut RunLines)) -> Vec<String> {
        let mut lines = RunLines { home: "/home/u".into(), ..RunLines::new(true) };
        act(&mut lines);
        lines.take().map(|line| line.strip_prefix("ironcurtain: ").unwrap().to_owned()).collect()
    }

    #[test]
    fn foreign_text_cannot_move_the_cursor() {
        let denied = lines(|lines| lines.denied("/home/u/a\x1b[2J\nb", Some("no\x07")));
        assert_eq!(denied, ["denied ~/a\\u{1b}[2J\\u{a}b: no\\u{7}"]);
    }

    #[test]
    fn denials_are_limited() {
        let denied = lines(|lines| (0..100).for_each(|_| lines.denied("/x", None)));
        assert_eq!(denied.len(), MAX_DENIALS + 1);
        assert_eq!(denied.last().unwrap(), "further denials are not printed");
    }

    #[test]
    fn waiting_lines_are_limited() {
        let waiting = lines(|lines| (0..1000).for_each(|number| lines.waiting(&format!("/{number}"))));
        assert_eq!(waiting.len(), MAX_LINES);
        assert_eq!(waiting.last().unwrap(), "waiting for your answer about /999");
    }

    #[test]
    fn ended_questions_are_not_printed() {
        let printed = lines(|lines| {
            lines.waiting("/a");
            lines.denied("/a", None);
            lines.answered();
        });
        assert_eq!(printed, ["denied /a"]);
    }

    #[test]
    fn the_end_line_counts_files() {
        let ended = lines(|lines| {
            lines.started("s1".into(), "run:bash", Some("/home/u/project"), "plain");
            lines.ended(Some(RunUse { read: 1, written: 2, denied: 3 }), Some("it was ended"));
        });
        let expected = [
            "bash may use ~/project; other files and hosts need your answer (profile plain)",
            "the run was cut off: it was ended",
            "read 1 other file, wrote 2, 3 denied · ironcurtain session s1",
        ];
        assert_eq!(ended, expected);
    }
}
