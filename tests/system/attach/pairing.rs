//! Pairing: who may answer a remote machine's questions, and for which machine a desktop answers.

use super::{Attach, Remote, attach, file, relay};
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::AskedOn;
use ironcurtain_remote::{ChannelKey, DesktopRequest, FromDesktop, FromRemote, PairingRefusal, VERSION};
use ironcurtain_testkit::wait::until;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::time::timeout;

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
    let code = until("the remote machine shows its code", TIMEOUT, || remote.status().pairing_code);
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
    remote.status().asked_on == AskedOn::Desktop
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
    let second = || Attach::start(&desktop.ours(), "me@devbox", &remote.relay(), "y\n");
    second().gives_up("this machine is already attached as devbox");
    assert_eq!(attached.times("attached to"), 1);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
    drop(attached);
    eventually("the first is detached", TIMEOUT, || !remote_is_attached(&remote));
    second().attached(1);
}

#[test]
fn a_program_that_answers_in_place_of_the_remote_machine_is_refused() {
    let (desktop, remote, impostor) = (World::new(), Remote::new(), Remote::new());
    drop(attach(&desktop, &remote));
    let fake = Attach::start(&desktop.ours(), "devbox", &impostor.relay(), "y\n");
    fake.gives_up("the key of devbox has changed since you paired");
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

/// Says hello to a remote machine with a desktop's key, and returns its first answer.
async fn answered(words: &[String], key: &ChannelKey, hello: &str) -> FromRemote {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let input = OwnedFd::from(theirs.try_clone().unwrap());
    let mut relay =
        Command::new(&words[0]).args(&words[1..]).stdin(input).stdout(OwnedFd::from(theirs)).spawn().unwrap();
    ours.set_nonblocking(true).unwrap();
    let mut channel = key.connect(tokio::net::UnixStream::from_std(ours).unwrap()).await.unwrap();
    channel.stream.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    channel.stream.flush().await.unwrap();
    let mut line = String::new();
    BufReader::new(channel.stream).read_line(&mut line).await.unwrap();
    let _ = relay.kill();
    relay.wait().unwrap();
    serde_json::from_str(&line).unwrap()
}

#[test]
fn a_desktop_with_another_key_or_version_receives_nothing() {
    let (desktop, remote) = (World::new(), Remote::new());
    let _attach = attach(&desktop, &remote);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    desktop.user.will(Next::Ignore);
    let pending = agent.begin_call("read_text_file", serde_json::json!({ "path": path }));
    eventually("the question is shown", TIMEOUT, || desktop.user.count() == 1);
    // A process of the remote machine that only has access to the socket.
    let key = ChannelKey::of_seed(&[7; 32]).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let says = |hello: &str| {
        let relay = remote.relay();
        let answer = answered(&relay, &key, hello);
        match runtime.block_on(async { timeout(TIMEOUT, answer).await.unwrap() }) {
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
