//! Accepts connections, retrying after errors.

use std::io;
use std::time::Duration;

/// Delay after a failed accept, for example because no file descriptors are available.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns the next connection. Logs errors from `accept` and retries.
pub async fn next_connection<T, A>(accept: impl Fn() -> A) -> T
where
    A: Future<Output = io::Result<T>>,
{
    loop {
        match accept().await {
            Ok(connection) => return connection,
            Err(problem) => {
                tracing::error!(%problem, "failed to accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{PAUSE, next_connection};
    use std::cell::Cell;
    use std::io;
    use tokio::time::Instant;

    #[tokio::test(start_paused = true)]
    async fn an_error_delays_the_next_connection_and_ends_nothing() {
        let (tries, start) = (Cell::new(0), Instant::now());
        let accept = || async {
            tries.set(tries.get() + 1);
            if tries.get() <= 3 { Err(io::Error::from_raw_os_error(24)) } else { Ok("connection") }
        };
        assert_eq!(next_connection(accept).await, "connection");
        assert_eq!((tries.get(), start.elapsed()), (4, 3 * PAUSE));
        assert_eq!(next_connection(accept).await, "connection");
        assert_eq!((tries.get(), start.elapsed()), (5, 3 * PAUSE));
    }
}
