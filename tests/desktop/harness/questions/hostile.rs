//! A misleading question.

use super::{foreign, line};
use ironcurtain_consent::{Consequence, Lifetime, Offer, Preview, Question, Reach, TextPart, Verb};

/// Returns a question whose text contains markup, reverses the text direction, and could push the buttons out of view.
pub(super) fn hostile(base: Question) -> Question {
    let long = format!("/home/ada/{}", "a".repeat(10_000));
    let markup = "/home/ada/<b>Allow</b>&amp;<span size=\"99999\">\nDeny\0\u{202e}gnp.exe";
    let mut client = base.client;
    client.name = format!("</b>\u{202e}{}", "Trusted System Update ".repeat(200));
    client.claimed_name = Some("IronCurtain\n\nWho   you\n".repeat(50));
    client.cwd = Some(format!("/tmp/{}", "b/".repeat(4_000)));
    let text = "W".repeat(10_000);
    Question {
        client,
        consequences: vec![
            Consequence {
                object: vec![foreign(&text), TextPart::Fixed(" to "), foreign(markup)],
                ..line(Verb::Push, "", &text)
            },
            Consequence { asked_for: Some(long.clone()), ..line(Verb::Write, &long, "new") },
            line(Verb::Write, markup, "replaces 18446744073 GB"),
        ],
        with: vec![(text.clone(), text.clone()), (markup.into(), markup.into())],
        reason: text.clone(),
        rule: text.clone(),
        server: text.clone(),
        tool: Some(text.clone()),
        arguments: vec![(text.clone(), "\0\u{7}\n".repeat(5_000))],
        preview: Some(Preview::Content(text.repeat(100))),
        offers: vec![
            Offer {
                reach: Reach::Paths,
                label: text.clone(),
                sentence: text.clone(),
                lifetimes: vec![Lifetime::Once],
            },
            Offer {
                reach: Reach::Folders,
                label: "<i>x</i>\n\n\n".into(),
                sentence: text,
                lifetimes: vec![Lifetime::Once, Lifetime::Always],
            },
        ],
        ..base
    }
}
