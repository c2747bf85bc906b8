//! Stream wrapper that records the time of the last read or write.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// Stream that updates its [`Activity`] on each read and write.
#[derive(Debug)]
pub(crate) struct ActivityStream<T> {
    inner: T,
    activity: Activity,
}

/// Time of a stream's last read or write.
#[derive(Debug, Clone)]
pub(crate) struct Activity {
    start: Instant,
    last: Arc<AtomicU64>,
}

impl<T> ActivityStream<T> {
    pub(crate) fn new(inner: T) -> (Self, Activity) {
        let activity = Activity { start: Instant::now(), last: Arc::default() };
        (Self { inner, activity: activity.clone() }, activity)
    }
}

impl Activity {
    /// Waits until the stream has been idle for `bound`.
    pub(crate) async fn wait_idle(&self, timeout: Duration) {
        loop {
            let deadline = self.start + Duration::from_millis(self.last.load(Ordering::Relaxed)) + timeout;
            if deadline <= Instant::now() {
                return;
            }
            tokio::time::sleep_until(deadline).await;
        }
    }

    fn record(&self) {
        let elapsed = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(elapsed, Ordering::Relaxed);
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for ActivityStream<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.inner).poll_read(cx, buf);
        if polled.is_ready() {
            self.activity.record();
        }
        polled
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ActivityStream<T> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(cx, buf);
        if polled.is_ready() {
            self.activity.record();
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test(start_paused = true)]
    async fn silence_is_counted_from_the_last_byte() {
        let (near, mut far) = tokio::io::duplex(8);
        let (mut near, activity) = ActivityStream::new(near);
        let start = Instant::now();
        let talk = async {
            tokio::time::sleep(Duration::from_secs(8)).await;
            far.write_all(b"x").await.unwrap();
            near.read_u8().await.unwrap();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = talk => {}
            () = activity.wait_idle(Duration::from_secs(10)) => {}
        }
        assert_eq!(start.elapsed(), Duration::from_secs(18));
    }
}
