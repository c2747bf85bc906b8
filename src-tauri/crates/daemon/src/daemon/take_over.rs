//! Takes over from another daemon of this user if that daemon cannot ask the user.
//!
//! - A takeover adds no risk, because any process of the user can stop the other daemon anyway (`ironcurtain stop`).
//!   Unlike stopping, a takeover preserves the sessions.

use super::SHUTDOWN_TIMEOUT;
use ironcurtain_config::home::Home;
use ironcurtain_connection::{ListenError, Listener};
use ironcurtain_protocol::{Hello, Purpose, Sockets, VERSION, Welcome, read_frame, write_frame};
use std::io::{self, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Maximum number of attempts, because another process may take the lock first.
const MAX_ATTEMPTS: usize = 3;

/// Maximum time for the other daemon to hand over its sessions and terminate its sandboxes.
const TIMEOUT: Duration = SHUTDOWN_TIMEOUT.saturating_add(Duration::from_secs(5));

/// Maximum time to retry if the locks are held but no process is listening. The owner may have just been killed, and
/// the kernel may not have released its locks yet.
const KILLED_TIMEOUT: Duration = Duration::from_secs(1);

/// Delay between attempts to take the locks.
const KILLED_PAUSE: Duration = Duration::from_millis(10);

/// Binds the socket. Retries briefly if the locks are held but no process is listening, as can happen after the owner
/// was killed.
pub(super) async fn bind(home: &Home) -> Result<Listener, ListenError> {
    let deadline = Instant::now() + KILLED_TIMEOUT;
    loop {
        match Listener::bind(&home.socket, &home.state) {
            Err(ListenError::AlreadyRunning(_))
                if Instant::now() < deadline && UnixStream::connect(&home.socket).is_err() =>
            {
                tokio::time::sleep(KILLED_PAUSE).await;
            }
            bound => return bound,
        }
    }
}

/// Binds the socket. If another daemon is running and agrees, takes over from it.
pub(super) async fn listen(home: &Home) -> Result<Listener, ListenError> {
    for _ in 0..MAX_ATTEMPTS {
        match bind(home).await {
            Err(ListenError::AlreadyRunning(lock)) => {
                let home = home.clone();
                let handed_over = tokio::task::spawn_blocking(move || request_takeover(&home)).await;
                match handed_over {
                    Ok(Ok(true)) => {
                        tracing::info!("took over from another IronCurtain, which could not ask the user")
                    }
                    Ok(Ok(false)) => return Err(ListenError::AlreadyRunning(lock)),
                    Ok(Err(problem)) => {
                        tracing::warn!(%problem, "failed to ask the running IronCurtain for a takeover");
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

/// Asks the running daemon to hand over and waits until it has exited. Returns `false` if the daemon refuses.
fn request_takeover(home: &Home) -> io::Result<bool> {
    let mut stream = match UnixStream::connect(&home.socket) {
        Ok(stream) => stream,
        // The daemon may be listening on a configured path.
        Err(error) => {
            let other_stream =
                Sockets::for_current_user().map_err(io::Error::other)?.connect().map_err(io::Error::other)?;
            other_stream.ok_or(error)?
        }
    };
    stream.set_read_timeout(Some(TIMEOUT))?;
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
    async fn waits_for_the_locks_of_a_killed_process_but_not_of_a_listening_one() {
        let all = tempfile::tempdir().unwrap();
        let home = Home::under(all.path(), all.path());
        home.prepare().unwrap();
        let held = Listener::bind(&home.socket, &home.state).unwrap();
        let began = Instant::now();
        assert!(matches!(bind(&home).await, Err(ListenError::AlreadyRunning(_))));
        assert!(began.elapsed() < KILLED_TIMEOUT, "it listens");
        // The socket is closed, but the locks are still held.
        let locks = held.close();
        let (bound, ()) = tokio::join!(bind(&home), async {
            tokio::time::sleep(KILLED_PAUSE * 5).await;
            drop(locks);
        });
        bound.unwrap();
    }
}
