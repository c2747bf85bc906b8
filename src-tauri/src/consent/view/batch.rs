//! Content of a dialog for several calls by one agent, with a row for each call, most severe first.
//!
//! - INVARIANT: a row shows everything that the user would have to read in the question's own dialog. Allow allows
//!   each ticked call once.

use super::lines::{arguments, line};
use super::shorten::Rest;
use super::{ConsentView, LineView, Span, TextBlock, Tone, details, facts, preview, span};
use crate::consent::text;
use ironcurtain_consent::{Consequence, Question, Verb};
use std::cmp::Reverse;
use std::path::Path;

/// Help text of the tick boxes.
const UNTICK_HINT: &str = "Untick a call to be asked about it separately.";

/// Call in a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallView {
    /// Id of the call's question.
    pub(crate) id: String,
    /// Tool and server, such as "edit_file, a tool of the server filesystem".
    pub(crate) tool: String,
    /// All effects, most severe first.
    pub(crate) lines: Vec<LineView>,
    /// Arguments that no effect mentions.
    pub(crate) with: Vec<LineView>,
    /// Content that the call would write.
    pub(crate) preview: Option<TextBlock>,
    /// Full text of everything shortened in the fields above.
    pub(crate) rest: Option<TextBlock>,
}

impl ConsentView {
    /// Creates the view for several questions from one agent, or returns `None` for fewer than two questions. `alone`
    /// is the number of questions from the agent that must be answered separately.
    pub(crate) fn for_batch(questions: &[&Question], alone: usize, home: &Path) -> Option<Self> {
        let mut questions = questions.to_vec();
        questions.sort_by_key(|question| Reverse(question.consequences.first().map(|worst| worst.verb)));
        let first = questions.first().filter(|_| questions.len() > 1)?;
        let all: Vec<String> = questions.iter().map(|question| details::details(question)).collect();
        let who = facts::facts(first, home).into_iter().take(1).collect();
        Some(Self {
            headline: headline(&questions),
            lines: Vec::new(),
            with: Vec::new(),
            also: std::iter::once(UNTICK_HINT.to_owned()).chain(left_out(alone)).collect(),
            facts: who,
            preview: None,
            rest: None,
            details: text::block(&all.join("\n\n")),
            choices: Vec::new(),
            calls: questions.iter().map(|question| call(question, home)).collect(),
            ..Self::new(first, home)
        })
    }

    /// Returns the label of Allow and the sentence about its effect for a number of ticked calls. Both fit on one
    /// line, because a growing dialog would move its controls under the pointer.
    pub(crate) fn effect(&self, ticked: usize) -> (String, String) {
        let who = self.headline.first().map(|name| name.text.as_str()).unwrap_or_default();
        match ticked {
            0 => ("_Allow".to_owned(), "Nothing is ticked, so nothing can be allowed.".to_owned()),
            1 => ("_Allow this 1 once".to_owned(), format!("{who} may make the 1 ticked call, once.")),
            n => {
                (format!("_Allow these {n} once"), format!("{who} may make the {n} ticked calls, each once."))
            }
        }
    }
}

/// Returns a headline such as "Claude Code wants to **change 1 file** and **read 3 files**".
fn headline(questions: &[&Question]) -> Vec<Span> {
    let mut deeds: Vec<(Verb, Vec<&Consequence>)> = Vec::new();
    for deed in questions.iter().flat_map(|question| &question.consequences) {
        match deeds.iter_mut().find(|(verb, _)| *verb == deed.verb) {
            Some((_, same)) if same.iter().any(|other| other.object == deed.object) => {}
            Some((_, same)) => same.push(deed),
            None => deeds.push((deed.verb, vec![deed])),
        }
    }
    deeds.sort_by_key(|(verb, _)| Reverse(*verb));
    let name = questions.first().map(|question| text::name(&question.client.name)).unwrap_or_default();
    let mut spans = vec![span(name, Tone::Strong)];
    for (n, (verb, same)) in deeds.iter().enumerate() {
        spans.push(span(if n == 0 { " wants to " } else { " and " }, Tone::Plain));
        let files = if same.len() == 1 { "file" } else { "files" };
        spans.push(span(format!("{} {} {files}", verb.word(), same.len()), Tone::Strong));
    }
    spans
}

/// Returns a note about the questions left out of the batch.
fn left_out(alone: usize) -> Option<String> {
    let grave = "does more than read or change an existing file, or changes one of these files again";
    match alone {
        0 => None,
        1 => Some(format!(
            "Not shown here: 1 more call, which {grave}. You will be asked about it separately."
        )),
        n => Some(format!(
            "Not shown here: {n} more calls, each of which {grave}. You will be asked about each separately."
        )),
    }
}

fn call(question: &Question, home: &Path) -> CallView {
    let tool = question.tool.as_deref().map(text::name).unwrap_or_default();
    let mut rest = Rest::default();
    let lines = question.consequences.iter().map(|deed| line(deed, true, &mut rest, home)).collect();
    let with = arguments(question, &mut rest);
    CallView {
        id: question.id.clone(),
        tool: text::isolated(&format!("{tool}, a tool of the server {}", text::name(&question.server))),
        lines,
        with,
        preview: preview(question),
        rest: rest.into_block(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain;
    use super::super::tests::question;
    use super::*;
    use ironcurtain_consent::{Preview, TextPart};

    fn of(id: &str, verb: Verb, path: &str) -> Question {
        let object = vec![TextPart::Path(path.to_owned())];
        let consequences = vec![Consequence::new(verb, object)];
        let tool = Some(format!("{}_file", verb.word()));
        Question {
            id: id.into(),
            tool,
            consequences,
            with: vec![],
            also: vec![],
            preview: None,
            ..question()
        }
    }

    #[test]
    fn each_call_has_a_full_row_and_the_worst_is_first() {
        let home = Path::new("/home/ada");
        let read = of("read", Verb::Read, "/home/ada/a.txt");
        let again = of("again", Verb::Read, "/home/ada/a.txt");
        let change = Question {
            with: vec![("dryRun".into(), "false".into())],
            preview: Some(Preview::Diff("-a\n+b\n".into())),
            ..of("change", Verb::Change, "/home/ada/b.txt")
        };
        let view = ConsentView::for_batch(&[&read, &again, &change], 2, home).unwrap();
        assert_eq!(view.sentence(), "Claude Code wants to change 1 file and read 1 file");
        let row =
            |call: &CallView| (call.id.clone(), call.lines.iter().map(|line| plain(&line.words)).collect());
        let rows: Vec<(String, String)> = view.calls.iter().map(row).collect();
        let expected = [("change", "change ~/b.txt"), ("read", "read ~/a.txt"), ("again", "read ~/a.txt")];
        assert_eq!(rows, expected.map(|(id, line)| (id.to_owned(), line.to_owned())));
        let first = &view.calls[0];
        assert_eq!(first.tool, "change_file, a tool of the server filesystem");
        assert_eq!(plain(&first.with[0].words), "with dryRun: false");
        assert_eq!(first.preview.as_ref().map(|preview| preview.text.as_str()), Some("-a\n+b\n"));
        let alone = "Not shown here: 2 more calls, each of which does more than read or change an existing file, or \
            changes one of these files again. You will be asked about each separately.";
        assert_eq!(
            (view.also, view.choices, view.band),
            (vec![UNTICK_HINT.to_owned(), alone.to_owned()], vec![], None)
        );
        assert_eq!(ConsentView::for_batch(&[&read], 2, home), None, "one alone is no batch");
    }

    #[test]
    fn allow_names_the_number_of_calls() {
        let (one, other) = (of("one", Verb::Read, "/a"), of("other", Verb::Read, "/b"));
        let view = ConsentView::for_batch(&[&one, &other], 0, Path::new("/")).unwrap();
        let text = [0, 1, 2].map(|ticked| view.effect(ticked));
        let expected = [
            ("_Allow", "Nothing is ticked, so nothing can be allowed."),
            ("_Allow this 1 once", "Claude Code may make the 1 ticked call, once."),
            ("_Allow these 2 once", "Claude Code may make the 2 ticked calls, each once."),
        ];
        assert_eq!(text, expected.map(|(words, effect)| (words.to_owned(), effect.to_owned())));
        assert_eq!(view.also, [UNTICK_HINT]);
    }
}
