//! Tests allowing several calls by one agent together.

use super::super::super::tests::question;
use super::super::super::{Answer, Consent, Question, Verb, WithdrawalReason};
use super::super::{DENY, PROMPT};
use super::user::SimulatedUser;
use super::{ONCE, answer_of, ended, of_file};

fn of(id: &str) -> Question {
    of_file(id, &format!("/home/u/{id}.txt"), id)
}

/// Pages to the end of the batch and returns the displayed text.
fn page_through(user: &SimulatedUser) -> String {
    page_through_and_type(user, "\n")
}

/// Like [`page_through`], but types this input at the end.
fn page_through_and_type(user: &SimulatedUser, at_its_end: &str) -> String {
    user.types("b\n");
    let mut seen = String::new();
    loop {
        seen.push_str(&user.sees(" Enter: "));
        if user.sees(". ").starts_with("back") {
            user.types(at_its_end);
            return seen;
        }
        user.types("\n");
    }
}

#[test]
fn a_batch_is_allowed_after_every_row_was_shown() {
    let user = SimulatedUser::at(80);
    let other = Question { session: "another agent".into(), ..of("other") };
    // A call that does more than read or change a file is answered separately.
    let grave = Question { fits_a_batch: false, ..of("grave") };
    let first = user.is_asked(of("first"));
    user.sees(PROMPT);
    let mut answers = Vec::new();
    for asked in [of("second"), other, grave, of("third"), of("over")] {
        answers.push(user.is_asked(asked));
    }
    // Redrawing adds the questions that arrived since the first drawing to the batch.
    user.types("d\n");
    user.sees(" Enter: back. ");
    user.types("\n");
    assert!(
        user.sees(PROMPT)
            .contains(" 3 more questions of this agent are pending. Type b to see all 4 together.")
    );
    let shown = page_through(&user);
    for name in ["first", "second", "third", "over"] {
        assert!(shown.contains(&format!(" READ       | /home/u/{name}.txt")), "{name}: {shown}");
    }
    assert_eq!(shown.matches(" if allowed | claude may read it").count(), 4, "{shown}");
    assert!(!shown.contains("other.txt") && !shown.contains("grave.txt"), "{shown}");
    user.sees(PROMPT);
    // After the batch was shown, one question arrives and one is withdrawn.
    let late = user.is_asked(of("late"));
    user.terminal.withdraw("over", WithdrawalReason::Cancelled);
    user.types("all 4\n");
    assert_eq!(answer_of(first), ONCE);
    let [second, other, grave, third, over] = answers.try_into().unwrap();
    assert_eq!((answer_of(second), answer_of(third)), (ONCE, ONCE));
    assert_eq!(ended(over), None);
    for (answer, name) in [(other, "other"), (grave, "grave"), (late, "late")] {
        assert!(user.sees(PROMPT).contains(&format!("{name}.txt")));
        user.types("\n");
        assert_eq!(answer_of(answer), DENY);
    }
}

#[test]
fn a_partly_shown_batch_is_not_allowed() {
    let user = SimulatedUser::at(80);
    let first = user.is_asked(of("first"));
    user.sees(PROMPT);
    // Without other questions, `b` is not a valid answer and denies the call.
    user.types("b\n");
    assert_eq!(answer_of(first), DENY);
    let first = user.is_asked(of("first"));
    let second = user.is_asked(of("second"));
    for typed in ["all 2\n", "1\n", "all 3\n", "\n"].map(Some).into_iter().chain([None]) {
        user.sees(PROMPT);
        user.types("d\n");
        user.sees(" Enter: back. ");
        user.types("\n");
        user.sees(PROMPT);
        match typed {
            // The user leaves the batch before its end.
            None => {
                user.types("b\n");
                user.sees(" Enter: ");
                user.types("q\n");
            }
            Some("all 2\n") => {
                // The user types the approval in the first half second, together with the input for paging.
                page_through_and_type(&user, "\nall 2\n");
                user.sees(PROMPT);
                user.types("\n");
            }
            Some(typed) => {
                page_through(&user);
                user.sees(PROMPT);
                user.types(typed);
            }
        }
    }
    user.sees(PROMPT);
    user.types("a\n");
    let Answer::Deny { reach, .. } = answer_of(first) else { panic!("it was allowed") };
    assert_eq!(reach, super::super::DenialReach::Waiting);
    user.sees(PROMPT);
    user.types("\n");
    assert_eq!(answer_of(second), DENY);
}

#[test]
fn a_single_question_offers_no_batch() {
    let user = SimulatedUser::at(80);
    let answer = user.is_asked(question("q"));
    assert!(!user.sees(PROMPT).contains("Type b"));
    user.types("\n");
    assert_eq!(answer_of(answer), DENY);
}

#[test]
fn two_calls_that_change_the_same_file_are_not_batched() {
    let change = |id: &str, path: &str| {
        let mut question = of_file(id, path, id);
        question.consequences[0].verb = Verb::Change;
        question
    };
    let (one, again, other) = (change("one", "/p/a"), change("again", "/p/a"), change("other", "/p/b"));
    let read = of_file("read", "/p/a", "read");
    let joins = |question: &Question, batch: &[&Question]| question.joins(batch.iter().copied());
    assert!(!joins(&again, &[&one]) && !joins(&again, &[&other, &one]));
    assert!(joins(&other, &[&one]) && joins(&read, &[&one, &other]) && joins(&one, &[&read]));
    assert!(!joins(&Question { session: "another".into(), ..read.clone() }, &[&one]));
    assert!(!joins(&read, &[&Question { fits_a_batch: false, ..one.clone() }]));
}
