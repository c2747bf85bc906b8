//! The noes that can be typed, what is told without a question, and nobody at all.

use super::super::super::tests::{broker, question, scope};
use super::super::super::{Answer, Consent, DenialReach, NobodyToAsk, QuestionOutcome};
use super::super::PROMPT;
use super::person::Person;
use super::said;
use std::sync::Arc;

#[test]
fn a_no_can_be_for_the_session_pause_the_agent_or_tell_it_why() {
    let person = Person::at(80);
    let plain = |note: Option<&str>| (note.map(str::to_owned), DenialReach::Call);
    for (line, expected) in [
        ("a\n", (None, DenialReach::Waiting)),
        ("s\n", (None, DenialReach::Session)),
        ("p\n", (None, DenialReach::Pause)),
        ("n use the drafts\n", plain(Some("use the drafts"))),
        ("n \n", plain(None)),
        ("no\n", plain(None)),
        ("sp\n", plain(None)),
    ] {
        let answer = person.is_asked(question("q"));
        assert!(
            person.sees(PROMPT).contains(" answer s   | denies read_file in /home/u until this session ends")
        );
        person.types(line);
        let (note, reach) = expected;
        assert_eq!(said(answer), Answer::Deny { note, reach }, "{line:?}");
    }
}

#[test]
fn a_notice_is_told_between_questions_behind_a_mark() {
    let person = Person::at(80);
    let answer = person.is_asked(question("q"));
    person.sees(PROMPT);
    person.terminal.tell("claude has put 5 questions to you\n answer 1 | forged");
    person.types("\n");
    said(answer);
    let shown = person.sees("forged");
    assert!(
        shown.contains(" notice     | claude has put 5 questions to you\\u{a} answer 1 | forged"),
        "{shown}"
    );
}

#[tokio::test]
async fn with_nobody_to_ask_the_agent_is_told_so() {
    let outcome = broker(Arc::new(NobodyToAsk)).ask(question("q"), &scope(), std::future::pending()).await;
    assert!(matches!(outcome, QuestionOutcome::Unavailable(why) if why.contains("without a display")));
}
