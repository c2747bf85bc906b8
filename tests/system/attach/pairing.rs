//! Pairing: who may answer a remote machine's questions, and for which machine a desktop answers.

use super::{Attach, Remote, attach, file, relay};
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use std::io::Write;
use std::process::{Command, Stdio};

#[test]
fn both_sides_show_the_same_code_and_only_a_confirmed_one_pairs() {
    let (desktop, remote) = (World::new(), Remote::new());
    let refused = Attach::start(&desktop.ours(), "devbox", &remote.relay(), "n\n");
    refused.says("the codes were not confirmed", 1);
    refused.gives_up("not paired with devbox");
    assert!(!desktop.home.remotes().exists() && !remote.place.home.desktops().exists());
    let (attach, mut answer) = Attach::waiting(&desktop.ours(), "devbox", &remote.relay());
    attach.says("the code on this desktop is", 1);
    let said = attach.said();
    let code = remote.status().pairing_code.unwrap();
    assert_eq!(code.chars().filter(char::is_ascii_digit).count(), 6);
    assert!(
        said.iter().any(|line| line.ends_with(&format!("the code on this desktop is {code}"))),
        "{said:?}"
    );
    assert_eq!(attach.times(&code), 1, "the remote code does not come through the connection: {said:?}");
    let mut shown = Command::new(programs().join("ironcurtain"));
    shown.arg("status").env("IRONCURTAIN_HOME", remote.place.ours());
    assert!(
        String::from_utf8_lossy(&shown.output().unwrap().stdout).contains(&format!("the code is {code}"))
    );
    writeln!(answer, "y").unwrap();
    attach.attached(1);
    assert_eq!(remote.status().pairing_code, None);
}

#[test]
fn a_second_desktop_needs_the_consent_of_the_first() {
    let (first, second, remote) = (World::new(), World::new(), Remote::new());
    let attached = attach(&first, &remote);
    let pair = || Attach::start(&second.ours(), "devbox", &remote.relay(), "y\n");
    first.user.will(Next::Deny);
    pair().gives_up("the attached desktop did not allow the pairing");
    let asked = first.user.asked();
    let [question] = asked.as_slice() else { panic!("{asked:?}") };
    assert_eq!(question.client.name, "devbox: Another desktop");
    assert!(question.also[0].contains("shows the code"), "{question:?}");
    // Without the first desktop, nothing can consent.
    drop(attached);
    eventually("the first is detached", TIMEOUT, || !remote_is_attached(&remote));
    pair().gives_up("another desktop is paired with this machine, and has to allow this one");
    let attached = attach(&first, &remote);
    first.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    let second_attach = pair();
    second_attach.says("another desktop is attached", 1);
    drop(attached);
    second_attach.attached(1);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    second.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
    assert_eq!(second.user.count(), 1);
}

fn remote_is_attached(remote: &Remote) -> bool {
    remote.status().asked_on == ironcurtain_protocol::AskedOn::Desktop
}

#[test]
fn the_first_desktop_pairs_only_while_no_session_is_active() {
    let (desktop, remote) = (World::new(), Remote::new());
    let agent = remote.connect();
    let pair = || Attach::start(&desktop.ours(), "devbox", &remote.relay(), "y\n");
    pair().gives_up("sessions are active on this machine");
    agent.hang_up();
    eventually("the session ends", TIMEOUT, || remote.status().sessions == 0);
    pair().attached(1);
}

#[test]
fn an_unpaired_desktop_is_refused() {
    let (desktop, remote) = (World::new(), Remote::new());
    drop(attach(&desktop, &remote));
    let known = std::fs::read(remote.place.home.desktops()).unwrap();
    std::fs::remove_file(remote.place.home.desktops()).unwrap();
    let again = || Attach::start(&desktop.ours(), "devbox", &remote.relay(), "");
    again().gives_up("this machine is not paired with the desktop");
    std::fs::write(remote.place.home.desktops(), known).unwrap();
    again().attached(1);
}

#[test]
fn a_program_that_answers_in_place_of_the_remote_machine_is_refused() {
    let (desktop, remote, impostor) = (World::new(), Remote::new(), Remote::new());
    drop(attach(&desktop, &remote));
    let fake = Attach::start(&desktop.ours(), "devbox", &impostor.relay(), "y\n");
    fake.gives_up("devbox has another key than the one that you paired with");
    assert!(!impostor.place.home.desktops().exists());
    let forget = Command::new(programs().join("ironcurtain"))
        .args(["attach", "devbox", "--forget"])
        .env("IRONCURTAIN_HOME", desktop.ours())
        .output()
        .unwrap();
    assert!(forget.status.success(), "{forget:?}");
    Attach::start(&desktop.ours(), "devbox", &impostor.relay(), "y\n").attached(1);
}

#[test]
fn a_desktop_that_asks_its_own_user_accepts_no_other_desktop() {
    // Otherwise an agent on the desktop could answer its own questions.
    let (desktop, agent) = (World::new(), World::new());
    let attach = Attach::start(&agent.ours(), "desktop", &relay(&desktop.ours()), "y\n");
    attach.says("this IronCurtain asks its user itself", 1);
    assert_eq!(attach.times("attached to"), 0);
    assert!(!desktop.home.desktops().exists());
}

#[test]
fn a_relay_without_the_paired_key_receives_nothing() {
    let (desktop, remote) = (World::new(), Remote::new());
    let _attach = attach(&desktop, &remote);
    // A process of the remote machine that only has access to the socket.
    let mut words = remote.relay();
    let program = words.remove(0);
    let spy = Command::new(program).args(words).stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&spy.stderr).into_owned();
    assert!(!spy.status.success() && said.contains("handshake failed"), "{said}");
    assert!(spy.stdout.is_empty(), "{:?}", spy.stdout);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
}
