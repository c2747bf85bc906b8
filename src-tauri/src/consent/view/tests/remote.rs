//! Tests views of questions that a remote machine asks.

use super::*;

#[test]
fn a_question_of_a_remote_machine_is_marked_in_all_sentences_with_paths() {
    let mut asked = Question { host: Some("devbox".to_owned()), ..question() };
    asked.client.name = "devbox: Claude Code".to_owned();
    let view = ConsentView::new(&asked, Path::new("/home/ada"));
    let band = "Remote machine: devbox. What you allow happens there, not on this computer.";
    assert_eq!(view.host.as_deref(), Some(band));
    let sentence =
        "devbox: Claude Code wants to write /home/ada/Documents/tax/2026/summary.md (new file, 7 bytes)";
    assert_eq!((view.sentence().as_str(), view.client.as_str()), (sentence, "devbox: Claude Code"));
    assert!(view.kind.starts_with("devbox: Claude Code wants to"), "{}", view.kind);
    let here = ConsentView::new(&question(), Path::new("/home/ada"));
    assert_eq!(here.host, None);
    assert_eq!(view.outcome(0, Lifetime::Once), format!("On devbox: {}", here.outcome(0, Lifetime::Once)));
}

#[test]
fn a_question_about_another_desktop_names_no_server_and_no_program() {
    let words = TextPart::Fixed("who answers the remote machine's questions, with the code ");
    let asked = Question {
        host: Some("devbox".to_owned()),
        client: ClientView {
            name: "devbox: Another desktop".into(),
            exe: None,
            chain: vec![],
            cwd: None,
            claimed_name: Some("laptop".into()),
            label: None,
        },
        server: String::new(),
        server_command: String::new(),
        sandboxed: false,
        tool: None,
        consequences: vec![Consequence::new(Verb::Change, vec![words, TextPart::Untrusted("204517".into())])],
        arguments: vec![],
        offers: vec![Offer {
            reach: Reach::Request,
            label: "the other desktop".into(),
            sentence: "The desktop with the code 204517 may answer".into(),
            lifetimes: vec![Lifetime::Always],
        }],
        ..question()
    };
    let view = ConsentView::new(&asked, Path::new("/"));
    let sentence = "devbox: Another desktop wants to change who answers the remote machine's questions, with the code 204517";
    assert_eq!(view.sentence(), sentence);
    assert_eq!(view.kind, "devbox: Another desktop wants to pair with the remote machine");
    assert_eq!(view.band, None);
    let lines = vec![
        vec![span("another desktop, not a program", Tone::Plain)],
        vec![span("claims to be \u{201c}laptop\u{201d}", Tone::Quiet)],
    ];
    assert_eq!(view.facts, [Fact { label: "Who", lines }]);
    assert!(!view.details.contains("server:") && !view.details.contains("sandboxed"), "{}", view.details);
    let outcome = "On devbox: The desktop with the code 204517 may answer until you revoke it.";
    assert_eq!(view.outcome(0, Lifetime::Always), outcome);
    // A question from a server without a sandbox keeps its warning.
    let server = Question { server: "git".to_owned(), ..asked };
    assert_eq!(ConsentView::new(&server, Path::new("/")).band, Some(NOT_SANDBOXED));
}
