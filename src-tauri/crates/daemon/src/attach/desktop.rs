//! Desktop's side: shows a remote machine's questions to the local user and returns the answers.
//!
//! - Shows no question and sends no answer until the remote machine has proved possession of the paired key.

use super::received_question::{self, QuestionEvent, ReceivedQuestion};
use super::{AttachError, MessageStream, PING, SILENCE_TIMEOUT, accept_link, channel_key, record, send_note};
use crate::daemon_state::DaemonState;
use ironcurtain_connection::Peer;
use ironcurtain_consent::{Answer, QuestionReceiver};
use ironcurtain_mcp::wire::{Line, Lines};
use ironcurtain_paths::random_name;
use ironcurtain_protocol::{AttachNote, MAX_FRAME_BYTES, PairingConfirmed, RefusalCode};
use ironcurtain_remote::{
    ChannelBinding, ChannelKey, DesktopRequest, FromDesktop, FromRemote, Nonce, PairedKeys, PeerKey,
    QuestionDigest, VERSION, is_valid_name, matches_code, pairing_codes,
};
use ironcurtain_services::{RateLimiter, Services};
use ironcurtain_visible as visible;
use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, interval, sleep_until};

/// Maximum number of pending questions from one remote machine.
const MAX_PENDING: usize = 100;

/// Denial reason for questions beyond [`MAX_PENDING`].
const TOO_MANY: &str =
    "too many questions from this machine are pending on the desktop; wait for their answers";

/// Minimum time between two notices from a remote machine, and between two notifications about answers that it did not
/// accept. Those that arrive earlier are not shown.
const NOTICE_PAUSE: Duration = Duration::from_secs(10);

/// Maximum length of a remote machine's notices and reasons, in characters.
const MAX_TEXT_CHARS: usize = 400;

/// Serves one `ironcurtain attach` process until it exits or the connection to the remote machine ends.
pub(crate) async fn serve(state: &Arc<DaemonState>, mut peer: Peer, host: &str) {
    if !is_valid_name(host) {
        let text = "invalid remote machine name; use at most 64 visible characters".to_owned();
        return peer.refuse(RefusalCode::Malformed, text).await;
    }
    if !state.services.broker.can_ask() {
        let text = "IronCurtain cannot ask you here; start the app, and attach again".to_owned();
        return peer.refuse(RefusalCode::Unavailable, text).await;
    }
    let Some(link) = accept_link(&mut peer).await else { return };
    let (from, to) = peer.stream.into_split();
    let mut user = AttachingProcess { lines: Lines::new(from, MAX_FRAME_BYTES), to };
    let Err(why) = attach(&state.services, host, link, &mut user).await;
    send_note(&mut user.to, &why.to_note()).await;
}

/// Connection to the attaching process, through which the user types the code.
struct AttachingProcess {
    lines: Lines<OwnedReadHalf>,
    to: OwnedWriteHalf,
}

impl AttachingProcess {
    /// Waits for the next message. Fails if the process exited.
    async fn next(&mut self) -> Result<PairingConfirmed, AttachError> {
        match self.lines.next().await? {
            Some(Line::Whole(line, _)) => Ok(serde_json::from_slice(&line)?),
            Some(Line::TooLong { .. } | Line::NoMemory { .. }) => Err(AttachError::Unexpected),
            None => Err(AttachError::Closed),
        }
    }
}

async fn attach(
    services: &Services,
    host: &str,
    link: UnixStream,
    user: &mut AttachingProcess,
) -> Result<Infallible, AttachError> {
    let key = channel_key(services).await?;
    // Without a timeout, because ssh may be waiting for the user's password.
    let channel = tokio::select! {
        channel = key.connect(link) => channel?,
        early = user.next() => return Err(early.err().unwrap_or(AttachError::Unexpected)),
    };
    let store = PairedKeys::new(services.home.remotes());
    let paired_key = store.read()?.get(host).copied();
    if paired_key.is_some_and(|paired_key| paired_key != channel.peer) {
        return Err(AttachError::final_refusal(format!(
            "the key of {host} has changed since you paired. If you reinstalled IronCurtain there, run `ironcurtain \
             attach --forget {host}` and pair again. Otherwise, do not pair: another program may be answering for \
             {host}"
        )));
    }
    let (remote, binding) = (channel.peer, channel.binding);
    let entry = services.attached_hosts.attach(host, remote).map_err(|already| {
        let why = already.to_string();
        // An earlier connection with the same name may still be closing.
        if already.name == host {
            AttachError::temporary_refusal(why)
        } else {
            AttachError::final_refusal(why)
        }
    })?;
    let mut wire = MessageStream::new(channel.stream);
    match paired_key {
        Some(_) => wire.send(&hello(DesktopRequest::Attach)).await?,
        None => {
            if let Err(problem) = pair(host, &mut wire, (&key, remote, binding), user).await {
                record(services, format!("did not pair with {host}, key {remote}: {problem}")).await?;
                return Err(problem);
            }
            record(services, format!("paired with {host}, key {remote}")).await?;
            store.add(host, remote)?;
        }
    }
    let FromRemote::Attached = next_message(&mut wire, user).await? else {
        return Err(AttachError::Unexpected);
    };
    record(services, format!("attached to {host}: its questions are asked here")).await?;
    send_note(&mut user.to, &AttachNote::Attached).await;
    let Err(why) = show_questions(services, (host, &entry.pace), &mut wire, user).await;
    record(services, format!("detached from {host}: {why}")).await?;
    Err(why)
}

fn hello(want: DesktopRequest) -> FromDesktop {
    let name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    FromDesktop::Hello { version: VERSION, name, want }
}

/// Pairs with a remote machine after the user has typed its code on this desktop. Returns once the remote machine has
/// stored the pairing.
async fn pair(
    host: &str,
    wire: &mut MessageStream,
    (key, remote, binding): (&ChannelKey, PeerKey, ChannelBinding),
    user: &mut AttachingProcess,
) -> Result<(), AttachError> {
    let ours = Nonce::generate()?;
    wire.send(&hello(DesktopRequest::Pair { commitment: ours.commitment() })).await?;
    let FromRemote::Nonce { nonce } = next_message(wire, user).await? else {
        return Err(AttachError::Unexpected);
    };
    let codes = pairing_codes(binding, (key.public(), remote), (&ours, &nonce));
    wire.send(&FromDesktop::Reveal { nonce: ours }).await?;
    send_note(&mut user.to, &AttachNote::Code { code: codes.desktop }).await;
    let confirmed = tokio::select! {
        confirmed = user.next() => confirmed?,
        message = wire.next::<FromRemote>() => return Err(unexpected(message?)),
    };
    if confirmed.code.trim().is_empty() {
        return Err(AttachError::final_refusal(format!(
            "not paired with {host}: no code was typed on this desktop"
        )));
    }
    if !matches_code(&codes.remote, &confirmed.code) {
        return Err(AttachError::final_refusal(format!(
            "not paired with {host}: the remote machine at the other end has another code; if you typed the code that \
             `ironcurtain pair` printed, a program may be between the two machines"
        )));
    }
    wire.send(&FromDesktop::Confirm).await?;
    let FromRemote::Paired = next_message(wire, user).await? else { return Err(AttachError::Unexpected) };
    Ok(())
}

/// Waits for the remote machine's next message other than a ping. Fails if the remote machine refuses, or if the
/// attaching process exits.
async fn next_message(
    wire: &mut MessageStream,
    user: &mut AttachingProcess,
) -> Result<FromRemote, AttachError> {
    loop {
        let message = tokio::select! {
            message = wire.next::<FromRemote>() => message?,
            early = user.next() => return Err(early.err().unwrap_or(AttachError::Unexpected)),
        };
        match message {
            FromRemote::Ping => {}
            FromRemote::Refused { .. } => return Err(unexpected(message)),
            FromRemote::Nonce { .. }
            | FromRemote::Paired
            | FromRemote::Attached
            | FromRemote::Question { .. }
            | FromRemote::Withdraw { .. }
            | FromRemote::NotAccepted { .. }
            | FromRemote::Notice { .. } => return Ok(message),
        }
    }
}

fn unexpected(message: FromRemote) -> AttachError {
    match message {
        FromRemote::Refused { refusal, why } => AttachError::Refused { refusal, why: truncated(&why) },
        FromRemote::Nonce { .. }
        | FromRemote::Paired
        | FromRemote::Attached
        | FromRemote::Question { .. }
        | FromRemote::Withdraw { .. }
        | FromRemote::NotAccepted { .. }
        | FromRemote::Notice { .. }
        | FromRemote::Ping => AttachError::Unexpected,
    }
}

fn truncated(text: &str) -> String {
    visible::head(&visible::line(text), MAX_TEXT_CHARS)
}

/// Shows the remote machine's questions until the connection ends. Pending questions are then withdrawn.
async fn show_questions(
    services: &Services,
    (host, pace): (&str, &RateLimiter),
    wire: &mut MessageStream,
    user: &mut AttachingProcess,
) -> Result<Infallible, AttachError> {
    let (send, mut answers) = mpsc::channel(MAX_PENDING);
    // Dropping a sender withdraws its question.
    let mut pending: HashMap<String, oneshot::Sender<()>> = HashMap::new();
    let (mut ping, mut last_message) = (interval(PING), Instant::now());
    let mut next_notice = last_message;
    let (mut allowed, mut next_refusal) = (VecDeque::new(), last_message);
    loop {
        tokio::select! {
            message = wire.next::<FromRemote>() => {
                last_message = Instant::now();
                match message? {
                    FromRemote::Question { id, question } => {
                        if pending.contains_key(&id) {
                            return Err(AttachError::Unexpected);
                        }
                        let digest = QuestionDigest::of(question.get());
                        if pending.len() >= MAX_PENDING {
                            let answer = Some(Answer::Unavailable { why: TOO_MANY.to_owned() });
                            wire.send(&FromDesktop::Answer { id, digest, answer }).await?;
                            continue;
                        }
                        pace.acquire().await;
                        let (withdraw, withdrawn) = oneshot::channel();
                        pending.insert(id.clone(), withdraw);
                        // The conversion runs here so that only one conversion per machine uses memory at a time.
                        let question = QuestionReceiver { host }.question(question.get(), random_name()?);
                        let asked = ReceivedQuestion { host: host.to_owned(), id, digest, question };
                        tokio::spawn(received_question::ask(services.clone(), asked, withdrawn, send.clone()));
                    }
                    FromRemote::Withdraw { id } => drop(pending.remove(&id)),
                    FromRemote::Notice { text } if last_message >= next_notice => {
                        next_notice = last_message + NOTICE_PAUSE;
                        services.broker.notify(&format!("{host}: {}", truncated(&text)));
                    }
                    FromRemote::Notice { .. } => {}
                    FromRemote::NotAccepted { id, why } => {
                        // Each answer is reported once, so the machine cannot cause more log entries than there are
                        // answers.
                        let Some(at) = allowed.iter().position(|allowed| *allowed == id) else { continue };
                        allowed.remove(at);
                        let text = format!("{host}: a call that you allowed was denied there: {}", truncated(&why));
                        if last_message >= next_refusal {
                            next_refusal = last_message + NOTICE_PAUSE;
                            services.broker.notify(&text);
                        }
                        record(services, text).await?;
                    }
                    FromRemote::Ping => {}
                    other @ (FromRemote::Refused { .. }
                    | FromRemote::Nonce { .. }
                    | FromRemote::Paired
                    | FromRemote::Attached) => return Err(unexpected(other)),
                }
            }
            Some(answer) = answers.recv() => match answer {
                QuestionEvent::Working { id } => wire.send(&FromDesktop::Working { id }).await?,
                QuestionEvent::Unanswered { id } => drop(pending.remove(&id)),
                QuestionEvent::Answered { id, digest, answer } => {
                    if pending.remove(&id).is_some() {
                        // Genuine ids are much shorter.
                        if matches!(answer, Some(Answer::Allow { .. })) && id.len() <= MAX_TEXT_CHARS {
                            allowed.truncate(MAX_PENDING - 1);
                            allowed.push_front(id.clone());
                        }
                        wire.send(&FromDesktop::Answer { id, digest, answer }).await?;
                    } else if let Some(Answer::Allow { .. }) = answer {
                        let late = format!("{host}: your answer was too late, so the call was denied");
                        services.broker.notify(&late);
                        record(services, late).await?;
                    }
                }
            },
            _ = ping.tick() => wire.send(&FromDesktop::Ping).await?,
            early = user.next() => return Err(early.err().unwrap_or(AttachError::Unexpected)),
            () = sleep_until(last_message + SILENCE_TIMEOUT) => return Err(AttachError::TimedOut),
        }
    }
}
