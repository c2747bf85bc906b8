//! Taking the place of a trusted process of this user that can ask nobody.
//!
//! - Anybody of this user can end that one (`ironcurtain stop`); what is asked here is that it moves its sessions first.

use super::ENDING;
use ironcurtain_config::home::Home;
use ironcurtain_connection::{ListenError, Listener};
use ironcurtain_protocol::{Hello, Purpose, Sockets, VERSION, Welcome, read_frame, write_frame};
use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// The number of times that another one may come first.
const TRIES: usize = 3;

/// The time for which one that has ended is waited for: its sessions are moved, and its sandboxes end.
const BOUND: Duration = ENDING.saturating_add(Duration::from_secs(5));

/// The time for which locks are tried whose holder does not listen: the kernel may not have finished its end.
const KILLED_BOUND: Duration = Duration::from_secs(1);

/// The pause between two tries.
const KILLED_PAUSE: Duration = Duration::from_millis(10);

/// Listens as [`Listener::bind`] does. Tries again for a moment while the locks are held and nobody listens, as after a kill.
pub(super) async fn bind(home: &Home) -> Result<Listener, ListenError> {
    let until = Instant::now() + KILLED_BOUND;
    loop {
        match Listener::bind(&home.socket, &home.state) {
            Err(ListenError::AlreadyRunning(_))
                if Instant::now() < until && UnixStream::connect(&home.socket).is_err() =>
            {
                tokio::time::sleep(KILLED_PAUSE).await;
            }
            bound => return bound,
        }
    }
}

/// Listens as [`bind`] does, in the place of one that runs if that one gives way.
pub(super) async fn listen(home: &Home) -> Result<Listener, ListenError> {
    for _ in 0..TRIES {
        match bind(home).await {
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
    bind(home).await
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

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn locks_of_one_that_was_just_killed_are_waited_for_and_those_of_one_that_listens_are_not() {
        let all = tempfile::tempdir().unwrap();
        let home = Home::under(all.path(), all.path());
        home.prepare().unwrap();
        let held = Listener::bind(&home.socket, &home.state).unwrap();
        let began = Instant::now();
        assert!(matches!(bind(&home).await, Err(ListenError::AlreadyRunning(_))));
        assert!(began.elapsed() < KILLED_BOUND, "it listens");
        // Its socket is closed, and its locks are not yet.
        let locks = held.close();
        let (bound, ()) = tokio::join!(bind(&home), async {
            tokio::time::sleep(KILLED_PAUSE * 5).await;
            drop(locks);
        });
        bound.unwrap();
    }
}
