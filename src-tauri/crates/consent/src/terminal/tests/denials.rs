//! Tests denials and notices on the terminal, and the front end that denies everything.

use super::super::super::tests::{broker, question, scope};
use super::super::super::{Answer, Consent, DenialReach, NoFrontEnd, QuestionOutcome};
use super::super::PROMPT;
use super::answer_of;
use super::user::SimulatedUser;
use std::sync::Arc;

#[test]
fn a_denial_can_last_pause_the_agent_or_carry_a_note() {
    let user = SimulatedUser::at(80);
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
        let answer = user.is_asked(question("q"));
        assert!(
            user.sees(PROMPT).contains(" answer s   | denies read_file in /home/u until this session ends")
        );
        user.types(line);
        let (note, reach) = expected;
        assert_eq!(answer_of(answer), Answer::Deny { note, reach }, "{line:?}");
    }
}

#[test]
fn a_notice_is_shown_between_questions_behind_a_mark() {
    let user = SimulatedUser::at(80);
    let answer = user.is_asked(question("q"));
    user.sees(PROMPT);
    user.terminal.notify("claude has asked you 5 questions\n answer 1 | forged");
    user.types("\n");
    answer_of(answer);
    let shown = user.sees("forged");
    assert!(
        shown.contains(" notice     | claude has asked you 5 questions\\u{a} answer 1 | forged"),
        "{shown}"
    );
}

#[tokio::test]
async fn without_a_user_questions_are_unavailable() {
    let outcome = broker(Arc::new(NoFrontEnd)).ask(question("q"), &scope(), std::future::pending()).await;
    assert!(matches!(outcome, QuestionOutcome::Unavailable(why) if why.contains("without a display")));
}
