//! Plays one of the two daemons: a desktop of a real remote machine, or a remote machine of a real desktop.

use super::transports::Running;
use super::{Attach, NOT_WAITING, Remote, file, pair, run};
use crate::client::{Client, TIMEOUT};
use crate::scripted_user::Next;
use crate::test_home::TestHome;
use crate::world::{World, eventually};
use ironcurtain_consent::{Answer, Consequence, Lifetime, Offer, Question, Reach, TextPart, Verb};
use ironcurtain_protocol::ClientView;
use ironcurtain_remote::{
    Channel, ChannelBinding, ChannelKey, ChannelStream, DesktopRequest, FromDesktop, FromRemote, Nonce,
    PairedKeys, PairingCodes, PairingRefusal, PeerKey, QuestionDigest, VERSION, pairing_codes,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::to_raw_value;
use std::io::Write;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// One side of a channel, driven by the test.
pub(super) struct Peer<S> {
    runtime: Runtime,
    stream: BufReader<ChannelStream<S>>,
    /// Key of the daemon at the other end.
    peer: PeerKey,
    binding: ChannelBinding,
    _relay: Option<Running>,
}

/// Starts the relay of a remote machine. Returns the other end of its standard input and output.
pub(super) fn start_relay(remote: &Remote) -> (Running, UnixStream) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (words, input) = (remote.relay(), OwnedFd::from(theirs.try_clone().unwrap()));
    let mut relay = Command::new(&words[0]);
    let relay = relay.args(&words[1..]).stdin(input).stdout(OwnedFd::from(theirs)).spawn().unwrap();
    ours.set_nonblocking(true).unwrap();
    (Running(relay), ours)
}

/// Listens for `ironcurtain attach`. Returns the command that connects its standard streams.
pub(super) fn listen() -> (TcpListener, Vec<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let script = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; cat <&3 & exec cat >&3");
    (listener, ["bash", "-c", &script].map(str::to_owned).to_vec())
}

pub(super) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

impl Peer<tokio::net::UnixStream> {
    /// Connects to a remote machine as a desktop with this key.
    pub(super) fn desktop(remote: &Remote, key: &ChannelKey) -> Self {
        let (relay, link) = start_relay(remote);
        let runtime = runtime();
        let channel = runtime
            .block_on(async { key.connect(tokio::net::UnixStream::from_std(link).unwrap()).await.unwrap() });
        Self { _relay: Some(relay), ..Self::of(runtime, channel) }
    }

    /// Returns the next message that is not a ping.
    fn next_except_ping(&mut self) -> FromRemote {
        loop {
            match self.next() {
                FromRemote::Ping => {}
                other => return other,
            }
        }
    }

    /// Waits for a question. Returns its id, and a message that gives `answer` to the question.
    fn answer_to_next(&mut self, answer: &Answer) -> (String, FromDesktop) {
        match self.next_except_ping() {
            FromRemote::Question { id, question } => {
                let digest = QuestionDigest::of(question.get());
                (id.clone(), FromDesktop::Answer { id, digest, answer: Some(answer.clone()) })
            }
            other => panic!("{other:?}"),
        }
    }

    /// Starts a pairing as a desktop. Returns the codes.
    fn begin(&mut self, key: &ChannelKey) -> PairingCodes {
        let ours = Nonce::generate().unwrap();
        let want = DesktopRequest::Pair { commitment: ours.commitment() };
        self.send(&FromDesktop::Hello { version: VERSION, name: "laptop".to_owned(), want });
        let nonce = match self.next() {
            FromRemote::Nonce { nonce } => nonce,
            other => panic!("{other:?}"),
        };
        let codes = pairing_codes(self.binding, (key.public(), self.peer), (&ours, &nonce));
        self.send(&FromDesktop::Reveal { nonce: ours });
        codes
    }
}

impl Peer<tokio::net::TcpStream> {
    /// Pairs a desktop with a remote machine that the test plays.
    fn remote(desktop: &World, key: &ChannelKey) -> (Self, Attach) {
        let (listener, command) = listen();
        let (attach, mut user) = Attach::waiting(&desktop.ours(), "devbox", &command);
        let (link, _) = listener.accept().unwrap();
        link.set_nonblocking(true).unwrap();
        let runtime = runtime();
        let channel = runtime
            .block_on(async { key.accept(tokio::net::TcpStream::from_std(link).unwrap()).await.unwrap() });
        let mut remote = Self::of(runtime, channel);
        let FromDesktop::Hello { want: DesktopRequest::Pair { commitment }, .. } = remote.next() else {
            panic!("the desktop does not pair");
        };
        let ours = Nonce::generate().unwrap();
        remote.send(&FromRemote::Nonce { nonce: ours.clone() });
        let FromDesktop::Reveal { nonce } = remote.next() else { panic!("the desktop reveals no nonce") };
        commitment.check(&nonce).unwrap();
        let codes = pairing_codes(remote.binding, (remote.peer, key.public()), (&nonce, &ours));
        assert_eq!(attach.code(), codes.desktop);
        writeln!(user, "{}", codes.remote).unwrap();
        assert!(matches!(remote.next(), FromDesktop::Confirm));
        assert!(!desktop.home.remotes().exists(), "the remote machine stores the pairing first");
        remote.send(&FromRemote::Paired);
        remote.send(&FromRemote::Attached);
        attach.attached(1);
        (remote, attach)
    }

    fn ask(&mut self, id: &str) {
        let question = to_raw_value(&question(id)).unwrap();
        self.send(&FromRemote::Question { id: id.to_owned(), question });
    }

    /// Returns the desktop's next answer.
    fn answer(&mut self) -> (String, Option<Answer>) {
        loop {
            match self.next() {
                FromDesktop::Answer { id, answer, .. } => return (id, answer),
                FromDesktop::Working { .. } | FromDesktop::Ping => {}
                other => panic!("{other:?}"),
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> Peer<S> {
    fn of(runtime: Runtime, channel: Channel<S>) -> Self {
        let Channel { stream, peer, binding } = channel;
        Self { runtime, stream: BufReader::new(stream), peer, binding, _relay: None }
    }

    fn send(&mut self, message: &impl Serialize) {
        self.send_text(&serde_json::to_string(message).unwrap());
    }

    pub(super) fn send_text(&mut self, line: &str) {
        let stream = &mut self.stream;
        self.runtime.block_on(async {
            stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
            stream.flush().await.unwrap();
        });
    }

    /// Returns the next message.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> T {
        let (mut line, stream) = (String::new(), &mut self.stream);
        self.runtime
            .block_on(async { timeout(TIMEOUT, stream.read_line(&mut line)).await.unwrap().unwrap() });
        serde_json::from_str(&line).unwrap()
    }
}

fn question(id: &str) -> Question {
    let client = ClientView {
        name: "agent".to_owned(),
        exe: None,
        chain: Vec::new(),
        cwd: None,
        claimed_name: None,
        label: None,
    };
    let offer = Offer {
        reach: Reach::Request,
        label: "this call".to_owned(),
        sentence: "The agent may make this call".to_owned(),
        lifetimes: vec![Lifetime::Once],
    };
    Question {
        id: id.to_owned(),
        host: None,
        session: id.to_owned(),
        client,
        server: "notes".to_owned(),
        server_command: "notes".to_owned(),
        sandboxed: true,
        remote: false,
        tool: Some("search".to_owned()),
        consequences: vec![Consequence::new(Verb::Use, vec![TextPart::Untrusted("search".to_owned())])],
        with: Vec::new(),
        also: Vec::new(),
        rule: "ask".to_owned(),
        reason: "a test".to_owned(),
        arguments: Vec::new(),
        preview: None,
        offers: vec![offer],
        denial: "search".to_owned(),
        fits_a_batch: false,
        deadline: Duration::from_secs(600),
        notice: None,
    }
}

#[test]
fn a_desktop_that_confirms_before_its_code_was_typed_is_refused() {
    let (remote, key) = (Remote::new(), ChannelKey::from_seed(&[7; 32]).unwrap());
    let mut early = Peer::desktop(&remote, &key);
    let codes = early.begin(&key);
    early.send(&FromDesktop::Confirm);
    let because = "the desktop confirmed the pairing before its code was typed on this machine";
    match early.next() {
        FromRemote::Refused { refusal: PairingRefusal::Final, why } => assert_eq!(why, because),
        other => panic!("{other:?}"),
    }
    let refused = run(&remote.place.ours(), &["pair", &codes.desktop]).unwrap_err();
    assert!(refused.contains(NOT_WAITING), "{refused}");
    assert!(!remote.place.home.desktops().exists());
    let recorded = format!("did not pair with the desktop with the key {}: {because}", key.public());
    assert!(remote.log().contains(&recorded), "{}", remote.log());
    drop(early);
    // With the code, the same program can pair.
    let mut desktop = Peer::desktop(&remote, &key);
    let codes = desktop.begin(&key);
    assert_eq!(pair(&remote.place.ours(), &codes.desktop).unwrap(), codes.remote);
    assert!(!remote.place.home.desktops().exists());
    desktop.send(&FromDesktop::Confirm);
    assert!(matches!(desktop.next(), FromRemote::Paired));
    assert!(remote.place.home.desktops().exists());
    assert!(matches!(desktop.next(), FromRemote::Attached));
    // An answer that is not accepted is reported to the desktop.
    let (id, answer) = ("late".to_owned(), Some(Answer::Allow { offer: 0, lifetime: Lifetime::Once }));
    desktop.send(&FromDesktop::Answer { id, digest: QuestionDigest::of("{}"), answer });
    match desktop.next_except_ping() {
        FromRemote::NotAccepted { id, why } => {
            assert_eq!(
                (id.as_str(), why.as_str()),
                ("late", "question `late` is not pending on this connection")
            );
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_answer_after_the_deadline_allows_nothing() {
    let settings = r#"{ "questionsPerMinute": 1000, "denialHoldsSeconds": 0, "questionDeadlineSeconds": 5 }"#;
    let remote = Remote::of(TestHome::new(|prepared| {
        std::fs::write(prepared.home.config.join("config.json"), settings).unwrap();
    }));
    let key = ChannelKey::from_seed(&[7; 32]).unwrap();
    PairedKeys::new(remote.place.home.desktops()).add("laptop", key.public()).unwrap();
    let mut desktop = Peer::desktop(&remote, &key);
    let want = DesktopRequest::Attach;
    desktop.send(&FromDesktop::Hello { version: VERSION, name: "laptop".to_owned(), want });
    assert!(matches!(desktop.next(), FromRemote::Attached));
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    let ask = |agent: &mut Client| agent.begin_call("read_text_file", json!({ "path": path }));
    let allow = Answer::Allow { offer: 0, lifetime: Lifetime::Session };
    let (late, (late_id, late_answer)) = (ask(&mut agent), desktop.answer_to_next(&allow));
    // The question is withdrawn at its deadline.
    match desktop.next_except_ping() {
        FromRemote::Withdraw { id } => assert_eq!(id, late_id),
        other => panic!("{other:?}"),
    }
    desktop.send(&late_answer);
    match desktop.next_except_ping() {
        FromRemote::NotAccepted { id, why } => {
            assert_eq!(id, late_id);
            assert!(why.contains("is not pending on this connection"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert!(remote.grants().is_empty());
    // The same answer, given in time, allows the call. Until the first call is denied, the second would wait for the
    // same question.
    agent.outcome(late).refused("did not answer within 5 s");
    let (in_time, (_, answer)) = (ask(&mut agent), desktop.answer_to_next(&allow));
    desktop.send(&answer);
    assert_eq!(agent.outcome(in_time).ok(), "remote content");
    assert_eq!(remote.grants().len(), 1);
}

#[test]
fn the_desktop_reports_a_call_that_was_denied_although_it_was_allowed() {
    let (desktop, key) = (World::new(), ChannelKey::from_seed(&[9; 32]).unwrap());
    let (mut remote, _attach) = Peer::remote(&desktop, &key);
    let allow = || desktop.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    let mut answered = |id: &str| {
        allow();
        remote.ask(id);
        let (answered, answer) = remote.answer();
        assert_eq!(answered, id);
        assert!(matches!(answer, Some(Answer::Allow { .. })), "{answer:?}");
        // Repeated reports, and reports about other questions, are ignored.
        for (id, why) in [("other", "unknown"), (id, "it was late"), (id, "it was late")] {
            remote.send(&FromRemote::NotAccepted { id: id.to_owned(), why: why.to_owned() });
        }
    };
    answered("q1");
    let text = "devbox: a call that you allowed was denied there: it was late";
    eventually("the user is notified", TIMEOUT, || {
        desktop.user.notices().iter().any(|notice| notice == text)
    });
    // The number of notices is limited, but each refusal is recorded.
    answered("q2");
    eventually("both are recorded", TIMEOUT, || desktop.log().matches(text).count() == 2);
    remote.ask("q3");
    assert_eq!(remote.answer().0, "q3");
    assert_eq!(desktop.user.notices().iter().filter(|notice| *notice == text).count(), 1);
    assert_eq!(desktop.log().matches("a call that you allowed").count(), 2, "{}", desktop.log());
}

#[test]
fn a_remote_machine_has_at_most_100_pending_questions() {
    let (desktop, key) = (World::new(), ChannelKey::from_seed(&[9; 32]).unwrap());
    let (mut remote, _attach) = Peer::remote(&desktop, &key);
    for n in 0..100 {
        desktop.user.will(Next::Ignore);
        remote.ask(&format!("q{n}"));
    }
    remote.ask("q100");
    let too_many = "too many questions from this machine are pending on the desktop; wait for their answers";
    let unavailable = Answer::Unavailable { why: too_many.to_owned() };
    assert_eq!(remote.answer(), ("q100".to_owned(), Some(unavailable)));
    eventually("the others are shown", TIMEOUT, || desktop.user.count() == 100);
    // Once a question is withdrawn, another one can be asked.
    remote.send(&FromRemote::Withdraw { id: "q0".to_owned() });
    desktop.user.will(Next::Allow(Reach::Request, Lifetime::Once));
    remote.ask("q101");
    let (id, answer) = remote.answer();
    assert_eq!(id, "q101");
    assert!(matches!(answer, Some(Answer::Allow { .. })), "{answer:?}");
}
