//! Questions of a run: the program waits for the answer, a question without a waiting program is withdrawn, and many
//! questions are merged into one about a folder.

use crate::runs::Shell;
use crate::runs_commands::world;
use crate::scripted_user::{Next, paths};
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, DenialReach, Lifetime, Question, Reach};
use std::time::Duration;

/// Timeout of each wait. Only a failing test reaches it.
const TIMEOUT: Duration = Duration::from_secs(20);

#[test]
fn a_question_names_the_program_that_waits_and_offers_the_folder_after_two() {
    let world = world();
    for name in ["a", "b", "c"] {
        world.file(&format!("docs/{name}"), name);
    }
    let mut shell = Shell::start(&world, &world.path("project"));
    for name in ["a", "b", "c"] {
        world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
        assert_eq!(shell.run(&format!("cat ~/docs/{name}")), format!("{name}status 0\n"));
    }
    let asked = world.user.asked();
    let first: Vec<Reach> = asked.iter().map(|question| question.offers[0].reach).collect();
    assert_eq!(first, [Reach::Paths, Reach::Paths, Reach::Folders]);
    let named = asked[0].with.iter().find(|(name, _)| name == "program, by its own name").unwrap();
    let expected = format!("sh → cat {}", world.path("docs/a").display());
    assert_eq!(named.1, expected);
}

#[test]
fn a_question_is_withdrawn_when_nobody_waits() {
    let world = world();
    world.file("docs/a", "a");
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Ignore);
    assert_eq!(shell.run("timeout 1 cat ~/docs/a"), "status 124\n");
    eventually("the question is withdrawn", TIMEOUT, || world.user.withdrawn().len() == 1);
    assert_eq!(world.questions().waiting.len(), 0);
    // A program that retries immediately raises no further question.
    world.user.will(Next::Ignore);
    assert_eq!(
        shell.run("timeout 0.2 cat ~/docs/a; timeout 0.2 cat ~/docs/a; timeout 0.2 cat ~/docs/a"),
        "status 124\n"
    );
    assert_eq!(world.user.asked().len(), 2);
}

#[test]
fn two_hundred_programs_share_one_question() {
    let world = world();
    world.file("docs/a", "a");
    let mut shell = Shell::start(&world, &world.path("project"));
    world.user.will(Next::Ignore);
    let command = "for i in $(seq 200); do cat ~/docs/a > /tmp/$i & done; sleep 0.01; echo started";
    assert_eq!(shell.run(command), "started\nstatus 0\n");
    eventually("the user is asked", TIMEOUT, || world.user.count() == 1);
    // The name lookup does not block, although it happens in the shell's own process.
    assert!(shell.run("ls ~/docs").ends_with("a\nstatus 0\n"));
    world.user.answer_late(Answer::Allow { offer: 0, lifetime: Lifetime::Session });
    assert_eq!(shell.run("wait; cat /tmp/[0-9]* | wc -c"), "200\nstatus 0\n");
    assert_eq!(world.user.asked().len(), 1);
}

/// Starts programs that read many files at once. Waits until the only open question is about their folder.
fn searching(world: &World, shell: &mut Shell) -> Question {
    for number in 0..30 {
        world.file(&format!("docs/{number}/x"), "x");
    }
    (0..60).for_each(|_| world.user.will(Next::Ignore));
    let command = "for i in $(seq 0 29); do cat ~/docs/$i/x > /tmp/$i 2> /tmp/$i.err & done; echo started";
    assert_eq!(shell.run(command), "started\nstatus 0\n");
    let folder = world.path("docs");
    let mut asked = Vec::new();
    eventually("one question about the folder is left", TIMEOUT, || {
        asked.extend(world.user.asked());
        // A question about a single file may still be withdrawn after this one appears.
        asked.retain(|question| paths(question) == [folder.to_str().unwrap()]);
        let waiting = world.questions().waiting;
        waiting.len() == 1 && asked.last().is_some_and(|last| last.id == waiting[0].id)
    });
    asked.pop().unwrap()
}

#[test]
fn reading_many_files_at_once_is_one_question_about_their_folder() {
    let world = world();
    let mut shell = Shell::start(&world, &world.path("project"));
    let last = searching(&world, &mut shell);
    assert!(
        last.also.iter().any(|also| also.contains("files in this folder are waiting")),
        "{:?}",
        last.also
    );
    let offer = last.offers.iter().position(|offer| offer.reach == Reach::Folders).unwrap();
    world.user.answer_ignored(&last.id, Answer::Allow { offer, lifetime: Lifetime::Session });
    assert_eq!(shell.run("wait; cat /tmp/*.err; cat /tmp/[0-9] /tmp/[0-9][0-9] | wc -c"), "30\nstatus 0\n");
}

#[test]
fn denying_a_search_denies_every_file() {
    let world = world();
    let mut shell = Shell::start(&world, &world.path("project"));
    let last = searching(&world, &mut shell);
    world.user.answer_ignored(&last.id, Answer::Deny { note: None, reach: DenialReach::Call });
    let said = shell.run("wait; cat /tmp/*.err | grep -c 'Permission denied'");
    assert_eq!(said, "30\nstatus 0\n");
    world.user.asked();
    let denied = shell.run("cat ~/docs/7/x");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!(world.user.count(), 0);
}
