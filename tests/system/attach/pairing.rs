//! Tests pairing: which desktops can answer a remote machine's questions, and which machine a desktop answers for.

use super::peer::Peer;
use super::{Attach, NOT_WAITING, Remote, attach, file, pair, relay, run};
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach, TextPart};
use ironcurtain_protocol::PromptLocation;
use ironcurtain_remote::{ChannelKey, DesktopRequest, FromDesktop, FromRemote, PairingRefusal, VERSION};
use std::io::Write;

/// Returns a code that differs from this one.
fn other(code: &str) -> &str {
    if code == "000000" { "000001" } else { "000000" }
}

/// Asserts that neither machine has stored a pairing.
#[track_caller]
fn nothing_is_stored(desktop: &World, remote: &Remote) {
    assert!(!desktop.home.remotes().exists() && !remote.place.home.desktops().exists());
}

#[test]
fn both_codes_pair_and_only_one_of_them_passes_through_the_desktop() {
    let (desktop, remote) = (World::new(), Remote::new());
    let (attach, mut user) = Attach::waiting(&desktop.ours(), "devbox", &remote.relay());
    let code = attach.code();
    nothing_is_stored(&desktop, &remote);
    // Spaces in the code are accepted, also between arguments.
    let remote_code = pair(&remote.place.ours(), &format!("{} {}", &code[..3], &code[3..])).unwrap();
    assert_eq!(attach.times(&remote_code), 0, "{:?}", attach.said());
    nothing_is_stored(&desktop, &remote);
    writeln!(user, "{remote_code}").unwrap();
    attach.attached(1);
    assert!(desktop.home.remotes().exists() && remote.place.home.desktops().exists());
    let again = run(&remote.place.ours(), &["pair", &code[..3], &code[3..]]).unwrap_err();
    assert!(again.contains(NOT_WAITING), "{again}");
}

#[test]
fn another_code_on_the_remote_machine_refuses_the_pairing_on_both_sides() {
    let (desktop, remote) = (World::new(), Remote::new());
    let nobody = run(&remote.place.ours(), &["pair", "000000"]).unwrap_err();
    assert!(nobody.contains("no desktop is waiting for a code; run `ironcurtain attach`"), "{nobody}");
    let (attach, _user) = Attach::waiting(&desktop.ours(), "devbox", &remote.relay());
    let code = attach.code();
    let refused = pair(&remote.place.ours(), other(&code)).unwrap_err();
    assert!(refused.contains("not paired: the desktop that is pairing has another code"), "{refused}");
    assert!(refused.contains("a program may be between the two machines"), "{refused}");
    // Only one attempt is allowed.
    let again = run(&remote.place.ours(), &["pair", &code]).unwrap_err();
    assert!(again.contains(NOT_WAITING), "{again}");
    // The desktop's user has not typed anything.
    attach.says("a program may be between the two machines", 1);
    attach.gives_up("a wrong code was typed on the remote machine");
    nothing_is_stored(&desktop, &remote);
    assert!(remote.log().contains("not paired: a wrong code was typed"), "{}", remote.log());
    assert!(desktop.log().contains("did not pair with devbox"), "{}", desktop.log());
    super::attach(&desktop, &remote);
}

#[test]
fn another_code_on_the_desktop_refuses_the_pairing_on_both_sides() {
    let (desktop, remote) = (World::new(), Remote::new());
    let (attach, mut user) = Attach::waiting(&desktop.ours(), "devbox", &remote.relay());
    let remote_code = pair(&remote.place.ours(), &attach.code()).unwrap();
    writeln!(user, "{}", other(&remote_code)).unwrap();
    attach.says("a program may be between the two machines", 1);
    attach.gives_up("the remote machine at the other end has another code");
    nothing_is_stored(&desktop, &remote);
    assert!(desktop.log().contains("did not pair with devbox"), "{}", desktop.log());
    eventually("the remote machine records it", TIMEOUT, || {
        remote.log().contains("did not pair with the desktop with the key")
    });
    let silent = Attach::start(&desktop.ours(), "devbox", &remote.relay());
    silent.gives_up("no code was typed on this desktop");
    super::attach(&desktop, &remote);
}

#[test]
fn a_second_desktop_needs_the_consent_of_the_first() {
    let (first, second, remote) = (World::new(), World::new(), Remote::new());
    drop(attach(&first, &remote));
    eventually("the first is detached", TIMEOUT, || !remote_is_attached(&remote));
    // While the first desktop is detached, the second one cannot get consent.
    let alone = Attach::start(&second.ours(), "devbox", &remote.relay());
    alone.gives_up("another desktop is paired with this machine, and has to allow this one");
    let attached = attach(&first, &remote);
    first.user.will(Next::Allow(Reach::Request, Lifetime::Always));
    let (second_attach, mut user) = Attach::waiting(&second.ours(), "devbox", &remote.relay());
    let code = second_attach.code();
    assert_eq!(first.user.count(), 0, "the question follows the code");
    writeln!(user, "{}", pair(&remote.place.ours(), &code).unwrap()).unwrap();
    second_attach.says("another desktop is attached", 1);
    let asked = first.user.asked();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.client.name, "devbox: Another desktop");
    let words = TextPart::Fixed("who answers the remote machine's questions, with the code ");
    assert_eq!(question.consequences[0].object, [words, TextPart::Untrusted(code.clone())]);
    assert!(question.also[0].contains(&format!("shows the code {code}")), "{question:?}");
    assert!(!question.has_server() && !question.remote);
    drop(attached);
    second_attach.attached(1);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    second.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
    assert_eq!(second.user.count(), 1);
}

#[test]
fn a_second_desktop_that_the_first_denied_is_not_asked_about_again_at_once() {
    let (first, second, remote) = (World::new(), World::new(), Remote::new());
    let _attached = attach(&first, &remote);
    let (wrong, _user) = Attach::waiting(&second.ours(), "devbox", &remote.relay());
    pair(&remote.place.ours(), other(&wrong.code())).unwrap_err();
    wrong.gives_up("a wrong code was typed on the remote machine");
    assert_eq!(first.user.count(), 0, "a wrong code causes no question");
    first.user.will(Next::Deny);
    let (denied, _user) = Attach::waiting(&second.ours(), "devbox", &remote.relay());
    pair(&remote.place.ours(), &denied.code()).unwrap();
    denied.gives_up("the attached desktop did not allow the pairing");
    let paused = Attach::start(&second.ours(), "devbox", &remote.relay());
    paused.gives_up("the attached desktop did not allow a pairing in the last minute; try again in ");
    assert_eq!(first.user.count(), 1);
    assert!(!second.home.remotes().exists());
    assert!(remote.log().contains("did not pair with the desktop"), "{}", remote.log());
}

fn remote_is_attached(remote: &Remote) -> bool {
    remote.status().prompt_location == PromptLocation::Desktop
}

#[test]
fn the_first_desktop_pairs_only_while_no_session_is_active() {
    let (desktop, remote) = (World::new(), Remote::new());
    let agent = remote.connect();
    let refused = Attach::start(&desktop.ours(), "devbox", &remote.relay());
    refused.gives_up("sessions are active on this machine");
    agent.hang_up();
    eventually("the session ends", TIMEOUT, || remote.status().sessions == 0);
    attach(&desktop, &remote);
}

#[test]
fn an_unpaired_desktop_is_refused() {
    let (desktop, remote) = (World::new(), Remote::new());
    drop(attach(&desktop, &remote));
    let known = std::fs::read(remote.place.home.desktops()).unwrap();
    std::fs::remove_file(remote.place.home.desktops()).unwrap();
    let again = || Attach::start(&desktop.ours(), "devbox", &remote.relay());
    again().gives_up("this machine does not know your desktop");
    std::fs::write(remote.place.home.desktops(), known).unwrap();
    let attach = again();
    attach.attached(1);
    // A desktop that is removed while it is attached is detached.
    std::fs::remove_file(remote.place.home.desktops()).unwrap();
    attach.gives_up("this machine does not know your desktop");
    eventually("the desktop is detached", TIMEOUT, || !remote_is_attached(&remote));
}

#[test]
fn one_machine_is_attached_under_one_name() {
    let (desktop, remote) = (World::new(), Remote::new());
    let attached = attach(&desktop, &remote);
    let second = Attach::start(&desktop.ours(), "me@devbox", &remote.relay());
    second.gives_up("this machine is already attached as devbox");
    assert_eq!(attached.times("attached to"), 1);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
    drop(attached);
    eventually("the first is detached", TIMEOUT, || !remote_is_attached(&remote));
    Attach::pairing(&desktop.ours(), "me@devbox", &remote.relay(), &remote.place.ours()).attached(1);
}

#[test]
fn a_program_that_answers_in_place_of_the_remote_machine_is_refused() {
    let (desktop, remote, impostor) = (World::new(), Remote::new(), Remote::new());
    drop(attach(&desktop, &remote));
    let fake = Attach::start(&desktop.ours(), "devbox", &impostor.relay());
    fake.gives_up("the key of devbox has changed since you paired");
    assert!(!impostor.place.home.desktops().exists());
    run(&desktop.ours(), &["attach", "devbox", "--forget"]).unwrap();
    Attach::pairing(&desktop.ours(), "devbox", &impostor.relay(), &impostor.place.ours()).attached(1);
}

#[test]
fn a_desktop_that_asks_its_own_user_accepts_no_other_desktop() {
    // Otherwise an agent on the desktop could answer its own questions.
    let (desktop, agent) = (World::new(), World::new());
    let attach = Attach::start(&agent.ours(), "desktop", &relay(&desktop.ours()));
    attach.says("this machine shows questions to its own user", 1);
    assert_eq!(attach.times("attached to"), 0);
    assert!(!desktop.home.desktops().exists());
}

#[test]
fn a_desktop_with_another_key_or_version_receives_nothing() {
    let (desktop, remote) = (World::new(), Remote::new());
    let _attach = attach(&desktop, &remote);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.user.will(Next::Ignore);
    let pending = agent.begin_call("read_text_file", serde_json::json!({ "path": path }));
    eventually("the question is shown", TIMEOUT, || desktop.user.count() == 1);
    // Simulates a process on the remote machine that can access the socket but has no paired key.
    let key = ChannelKey::from_seed(&[7; 32]).unwrap();
    let says = |hello: &str| {
        let mut spy = Peer::desktop(&remote, &key);
        spy.send_text(hello);
        match spy.next() {
            FromRemote::Refused { refusal, why } => (refusal, why),
            other => panic!("{other:?}"),
        }
    };
    let hello =
        |version| FromDesktop::Hello { version, name: "spy".to_owned(), want: DesktopRequest::Attach };
    let (refusal, why) = says(&serde_json::to_string(&hello(VERSION)).unwrap());
    assert_eq!(refusal, PairingRefusal::Final);
    assert!(why.contains("this machine does not know your desktop"), "{why}");
    let later = format!("{{\"hello\":{{\"version\":{},\"more\":true}}}}", VERSION + 1);
    let (refusal, why) = says(&later);
    assert_eq!(refusal, PairingRefusal::Final);
    assert!(why.contains("different versions"), "{why}");
    let (refusal, why) = says("{\"hello\":{\"more\":true}}");
    assert_eq!(refusal, PairingRefusal::Final);
    assert!(why.contains("an invalid message"), "{why}");
    // The paired desktop is not affected.
    assert!(remote_is_attached(&remote));
    let _ = pending;
}
