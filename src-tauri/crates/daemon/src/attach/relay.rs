//! Remote machine's side: sends the daemon's questions to a desktop.
//!
//! - Accepts a desktop only if it proves possession of a paired key and if this daemon cannot ask the user itself.

use super::pairing::Pairing;
use super::{AttachError, MessageStream, PING, SILENCE_TIMEOUT, accept_link, channel_key, record, send_note};
use crate::daemon_state::DaemonState;
use ironcurtain_connection::Peer;
use ironcurtain_protocol::{AttachNote, RefusalCode};
use ironcurtain_remote::{DesktopRequest, FromDesktop, FromRemote, PairedKeys, PeerKey, VERSION};
use ironcurtain_services::Attachment;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::time::{Instant, interval, sleep_until, timeout};

/// Maximum time for a desktop to prove possession of its key and send its hello message.
const HELLO_TIMEOUT: Duration = Duration::from_secs(30);

/// Serves one `ironcurtain relay` process until its desktop disconnects.
pub(crate) async fn serve(state: &Arc<DaemonState>, mut peer: Peer) {
    if !state.services.desktop.needs_desktop() {
        let text = "this machine shows questions to its own user, so no desktop can be attached".to_owned();
        return peer.refuse(RefusalCode::CannotTakeOver, text).await;
    }
    let Some(link) = accept_link(&mut peer).await else { return };
    let Err(why) = relay(state, link, &mut peer.stream).await;
    tracing::info!("the relay's connection ended: {why}");
    send_note(&mut peer.stream, &why.to_note()).await;
}

async fn relay(
    state: &Arc<DaemonState>,
    link: UnixStream,
    notes: &mut UnixStream,
) -> Result<std::convert::Infallible, AttachError> {
    let key = channel_key(&state.services).await?;
    let timed_out = |_| AttachError::TimedOut;
    let channel = timeout(HELLO_TIMEOUT, key.accept(link)).await.map_err(timed_out)??;
    let (desktop, binding) = (channel.peer, channel.binding);
    let mut wire = MessageStream::new(channel.stream);
    let hello = timeout(HELLO_TIMEOUT, wire.next_line()).await.map_err(timed_out)??;
    let accepted = async {
        if FromDesktop::version(&hello).is_some_and(|version| version != VERSION) {
            let text = "the two IronCurtains have different versions; install the same one on both machines";
            return Err(AttachError::final_refusal(text));
        }
        let FromDesktop::Hello { name, want, .. } = serde_json::from_slice(&hello)? else {
            return Err(AttachError::Unexpected);
        };
        match want {
            DesktopRequest::Pair { commitment } => {
                let pairing = Pairing { state, keys: (desktop, key.public()), binding, name: &name };
                if let Err(problem) = pairing.perform(&mut wire, &commitment).await {
                    let text = format!("did not pair with the desktop with the key {desktop}: {problem}");
                    record(&state.services, text).await?;
                    return Err(problem);
                }
            }
            DesktopRequest::Attach => check_paired(state, desktop)?,
        }
        state
            .services
            .desktop
            .attach(desktop)
            .map_err(|other| AttachError::temporary_refusal(other.to_string()))
    };
    let accepted = accepted.await;
    let mut attachment = match accepted {
        Ok(attachment) => attachment,
        Err(problem) => {
            wire.send(&FromRemote::Refused { refusal: problem.refusal(), why: problem.to_string() }).await?;
            return Err(problem);
        }
    };
    record(&state.services, format!("the desktop with the key {desktop} answers questions from now on"))
        .await?;
    wire.send(&FromRemote::Attached).await?;
    send_note(notes, &AttachNote::Attached).await;
    state.services.changed();
    let Err(why) = forward_questions(state, desktop, &mut wire, &mut attachment).await;
    drop(attachment);
    state.services.changed();
    if let AttachError::Refused { why, refusal } = &why {
        // Fails only if the desktop has disconnected.
        let _ = wire.send(&FromRemote::Refused { refusal: *refusal, why: why.clone() }).await;
    }
    let text = format!("the desktop with the key {desktop} answers no more questions: {why}");
    record(&state.services, text).await?;
    Err(why)
}

/// Checks that a desktop is paired.
fn check_paired(state: &DaemonState, desktop: PeerKey) -> Result<(), AttachError> {
    let paired = PairedKeys::new(state.services.home.desktops()).read()?;
    if paired.values().any(|paired| *paired == desktop) {
        return Ok(());
    }
    Err(AttachError::final_refusal(
        "this machine does not know your desktop; run `ironcurtain attach --forget HOST` with this machine's name, and \
         pair again",
    ))
}

async fn forward_questions(
    state: &DaemonState,
    desktop: PeerKey,
    wire: &mut MessageStream,
    attachment: &mut Attachment,
) -> Result<std::convert::Infallible, AttachError> {
    let (mut ping, mut last_message) = (interval(PING), Instant::now());
    let replaced = attachment.replaced.clone();
    loop {
        tokio::select! {
            message = wire.next::<FromDesktop>() => {
                last_message = Instant::now();
                match message? {
                    FromDesktop::Answer { id, digest, answer } => {
                        if let Err(refused) = attachment.answer(&id, &digest, answer) {
                            let why = refused.to_string();
                            record(&state.services, format!("refused an answer of the desktop: {why}")).await?;
                            wire.send(&FromRemote::NotAccepted { id, why }).await?;
                        }
                    }
                    FromDesktop::Working { id } => attachment.extend_deadline(&id),
                    FromDesktop::Ping => {}
                    FromDesktop::Hello { .. } | FromDesktop::Reveal { .. } | FromDesktop::Confirm => {
                        return Err(AttachError::Unexpected);
                    }
                }
            }
            Some(message) = attachment.outgoing.recv() => wire.send(&message).await?,
            _ = ping.tick() => {
                // Checks again, because the user may have removed the desktop.
                check_paired(state, desktop)?;
                wire.send(&FromRemote::Ping).await?;
            }
            () = replaced.cancelled() => return Err(AttachError::temporary_refusal("the desktop connected again")),
            () = sleep_until(last_message + SILENCE_TIMEOUT) => return Err(AttachError::TimedOut),
        }
    }
}
