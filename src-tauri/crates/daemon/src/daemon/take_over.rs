//! Taking the place of a trusted process of this user that can ask nobody.
//!
//! - Anybody of this user can end that one (`ironcurtain stop`); what is asked here is that it moves its sessions first.

use super::ENDING;
use crate::home::Home;
use crate::listener::{ListenError, Listener};
use ironcurtain_protocol::{Hello, Purpose, Sockets, VERSION, Welcome, read_frame, write_frame};
use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The number of times that another one may come first.
const TRIES: usize = 3;

/// The time for which one that has ended is waited for: its sessions are moved, and its sandboxes end.
const BOUND: Duration = ENDING.saturating_add(Duration::from_secs(5));

/// Listens as [`Listener::bind`] does, in the place of one that runs if that one gives way.
pub(super) async fn listen(home: &Home) -> Result<Listener, ListenError> {
    for _ in 0..TRIES {
        match Listener::bind(&home.socket, &home.state) {
            Err(ListenError::AlreadyRunning(lock)) => {
                let home = home.clone();
                let gave_way = tokio::task::spawn_blocking(move || ask(&home)).await;
                match gave_way {
                    Ok(Ok(true)) => tracing::info!("another IronCurtain, which could ask nobody, gave way"),
                    Ok(Ok(false)) => return Err(ListenError::AlreadyRunning(lock)),
                    Ok(Err(problem)) => {
                        tracing::warn!(%problem, "whether the one that runs gives way could not be asked");
                        return Err(ListenError::AlreadyRunning(lock));
                    }
                    Err(_) => return Err(ListenError::AlreadyRunning(lock)),
                }
            }
            other => return other,
        }
    }
    Listener::bind(&home.socket, &home.state)
}

/// Asks the one that runs, and waits until it has ended.
fn ask(home: &Home) -> io::Result<bool> {
    let mut stream = match UnixStream::connect(&home.socket) {
        Ok(stream) => stream,
        // It may have been told of another place.
        Err(error) => {
            let elsewhere =
                Sockets::of_user().map_err(io::Error::other)?.connect().map_err(io::Error::other)?;
            elsewhere.ok_or(error)?
        }
    };
    stream.set_read_timeout(Some(BOUND))?;
    write_frame(&mut stream, &Hello { version: VERSION, purpose: Purpose::TakeOver })
        .map_err(io::Error::other)?;
    let mut answers = BufReader::new(stream);
    match read_frame::<Welcome>(&mut answers).map_err(io::Error::other)? {
        Welcome::Refused(_) => Ok(false),
        Welcome::Accepted { .. } => answers.read_to_end(&mut Vec::new()).map(|_| true),
    }
}
