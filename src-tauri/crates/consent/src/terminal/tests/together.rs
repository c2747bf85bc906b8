//! Several calls of one agent, answered together.

use super::super::super::tests::question;
use super::super::super::{Answer, Consent, Question, Verb, Withdrawn};
use super::super::{NO, PROMPT};
use super::person::Person;
use super::{ONCE, ended, of_file, said};

fn of(id: &str) -> Question {
    of_file(id, &format!("/home/u/{id}.txt"), id)
}

/// Asks about these, and leafs to the end of all that the person can allow together.
fn sees_all(person: &Person) -> String {
    sees_all_and(person, "\n")
}

/// As [`sees_all`], with this typed at the end of it.
fn sees_all_and(person: &Person, at_its_end: &str) -> String {
    person.types("b\n");
    let mut seen = String::new();
    loop {
        seen.push_str(&person.sees(" Enter: "));
        if person.sees(". ").starts_with("back") {
            person.types(at_its_end);
            return seen;
        }
        person.types("\n");
    }
}

#[test]
fn calls_of_an_agent_are_allowed_together_after_every_row_was_shown() {
    let person = Person::at(80);
    let other = Question { session: "another agent".into(), ..of("other") };
    // One that does more than to read or change a file is answered by itself.
    let grave = Question { fits_a_batch: false, ..of("grave") };
    let first = person.is_asked(of("first"));
    person.sees(PROMPT);
    let mut answers = Vec::new();
    for asked in [of("second"), other, grave, of("third"), of("over")] {
        answers.push(person.is_asked(asked));
    }
    // Drawn anew, with what came meanwhile.
    person.types("d\n");
    person.sees(" Enter: back. ");
    person.types("\n");
    assert!(
        person
            .sees(PROMPT)
            .contains(" 3 more questions of this agent are pending. Type b to see all 4 together.")
    );
    let shown = sees_all(&person);
    for name in ["first", "second", "third", "over"] {
        assert!(shown.contains(&format!(" READ       | /home/u/{name}.txt")), "{name}: {shown}");
    }
    assert_eq!(shown.matches(" if allowed | claude may read it").count(), 4, "{shown}");
    assert!(!shown.contains("other.txt") && !shown.contains("grave.txt"), "{shown}");
    person.sees(PROMPT);
    // One came, and one is over, after all were shown.
    let late = person.is_asked(of("late"));
    person.terminal.withdraw("over", Withdrawn::Cancelled);
    person.types("all 4\n");
    assert_eq!(said(first), ONCE);
    let [second, other, grave, third, over] = answers.try_into().unwrap();
    assert_eq!((said(second), said(third)), (ONCE, ONCE));
    assert_eq!(ended(over), None);
    for (answer, name) in [(other, "other"), (grave, "grave"), (late, "late")] {
        assert!(person.sees(PROMPT).contains(&format!("{name}.txt")));
        person.types("\n");
        assert_eq!(said(answer), NO);
    }
}

#[test]
fn nothing_is_allowed_together_by_less_than_all_of_it() {
    let person = Person::at(80);
    let first = person.is_asked(of("first"));
    person.sees(PROMPT);
    // Alone there is nothing to be seen together: it is no answer that allows.
    person.types("b\n");
    assert_eq!(said(first), NO);
    let first = person.is_asked(of("first"));
    let second = person.is_asked(of("second"));
    for typed in ["all 2\n", "1\n", "all 3\n", "\n"].map(Some).into_iter().chain([None]) {
        person.sees(PROMPT);
        person.types("d\n");
        person.sees(" Enter: back. ");
        person.types("\n");
        person.sees(PROMPT);
        match typed {
            // Left before the end of it.
            None => {
                person.types("b\n");
                person.sees(" Enter: ");
                person.types("q\n");
            }
            Some("all 2\n") => {
                // Typed before it was quiet for half a second, for it is all one.
                sees_all_and(&person, "\nall 2\n");
                person.sees(PROMPT);
                person.types("\n");
            }
            Some(typed) => {
                sees_all(&person);
                person.sees(PROMPT);
                person.types(typed);
            }
        }
    }
    person.sees(PROMPT);
    person.types("a\n");
    let Answer::Deny { reach, .. } = said(first) else { panic!("it was allowed") };
    assert_eq!(reach, super::super::DenialReach::Waiting);
    person.sees(PROMPT);
    person.types("\n");
    assert_eq!(said(second), NO);
}

#[test]
fn a_question_alone_has_no_word_of_others() {
    let person = Person::at(80);
    let answer = person.is_asked(question("q"));
    assert!(!person.sees(PROMPT).contains("Type b"));
    person.types("\n");
    assert_eq!(said(answer), NO);
}

#[test]
fn of_two_calls_that_change_the_same_file_one_is_asked_about_by_itself() {
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
