//! Downloads one bundle repeatedly and decides when.
//!
//! - INVARIANT: after an error or a new bundle, the next download starts after a random pause, because many computers
//!   see a server restart or a new bundle at the same moment. The next download starts immediately only if the server
//!   delayed its response for the whole requested time: the computers' requests then remain spread out.

use crate::download::{BundleClient, Downloaded};
use crate::download_error::DownloadError;
use hyper::body::Bytes;
use std::time::Duration;
use tokio::time::Instant;

/// Tolerance for servers that end long polling early, and minimum duration of long polling.
const EARLY_TOLERANCE: Duration = Duration::from_secs(1);

/// Pauses between downloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PollInterval {
    /// Minimum pause.
    pub min: Duration,
    /// Maximum pause.
    pub max: Duration,
    /// Time for which a server with long polling may delay its response, or `None` to disable long polling.
    pub long_poll: Option<Duration>,
}

impl PollInterval {
    /// Default pauses.
    pub const DEFAULT: Self =
        Self { min: Duration::from_secs(60), max: Duration::from_secs(120), long_poll: None };
}

/// State of repeated downloads of one bundle.
#[derive(Debug, Default)]
pub struct Poller {
    /// `ETag` of the last accepted bundle.
    etag: Option<String>,
    /// `ETag` of the last downloaded bundle.
    downloaded: Option<String>,
    supports_long_polling: bool,
    /// `true` if the server delayed its last response for the whole long-polling time.
    was_delayed: bool,
}

impl Poller {
    /// Downloads the bundle. Returns `None` if the bundle has not changed since the last accepted bundle. If
    /// `is_stored` is `false`, an unchanged bundle is downloaded as well.
    ///
    /// # Errors
    /// Returns [`DownloadError`] if the connection fails or the server does not send a bundle.
    pub async fn download(
        &mut self,
        client: &BundleClient,
        interval: PollInterval,
        is_stored: bool,
    ) -> Result<Option<Bytes>, DownloadError> {
        let started = Instant::now();
        let wait = interval.long_poll.filter(|_| self.supports_long_polling);
        let etag = self.etag.as_deref().filter(|_| is_stored);
        let Downloaded::New { bytes, etag, supports_long_polling } = client.download(etag, wait).await?
        else {
            let is_delayed = |wait: Duration| {
                started.elapsed() >= wait.saturating_sub(EARLY_TOLERANCE).max(EARLY_TOLERANCE)
            };
            self.was_delayed = wait.is_some_and(is_delayed);
            return Ok(None);
        };
        (self.downloaded, self.supports_long_polling) = (etag, supports_long_polling);
        Ok(Some(bytes))
    }

    /// Accepts the downloaded bundle. A refused bundle is downloaded again until it is replaced.
    pub fn accept(&mut self) {
        self.etag = self.downloaded.take();
    }

    /// Returns the pause before the next download. `random` is a number from 0 to 1.
    #[must_use]
    pub fn pause(&mut self, interval: PollInterval, random: f64) -> Duration {
        if std::mem::take(&mut self.was_delayed) {
            return Duration::ZERO;
        }
        interval.min + interval.max.saturating_sub(interval.min).mul_f64(random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BundleLocation;
    use ironcurtain_tls::StreamDialer;
    use std::io;
    use std::sync::Mutex;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

    const NEW: &str = "HTTP/1.1 200 OK\r\netag: \"1\"\r\ncontent-type: application/vnd.openpolicyagent.bundles\r\ncontent-length: 1\r\n\r\n.";
    const UNCHANGED: &str = "HTTP/1.1 304 Not Modified\r\n\r\n";

    /// Returns a client for a server that gives these answers, each after a delay in seconds.
    fn client(answers: &'static [(u64, &str)]) -> BundleClient {
        let answers = Mutex::new(answers.iter());
        let dial = move |_, _| {
            let (client, server) = tokio::io::duplex(1024);
            let (after, answer) = answers.lock().unwrap().next().unwrap();
            tokio::spawn(serve(server, Duration::from_secs(*after), answer));
            std::future::ready(io::Result::Ok(client))
        };
        let location = BundleLocation::parse("http://localhost/b").unwrap();
        BundleClient::new(location, None).with_dialer(StreamDialer::new(dial))
    }

    async fn serve(mut stream: DuplexStream, after: Duration, answer: &str) {
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        tokio::time::sleep(after).await;
        stream.write_all(answer.as_bytes()).await.unwrap();
        // Keeps the connection open until the client closes it.
        let _ = stream.read_u8().await;
    }

    #[tokio::test(start_paused = true)]
    async fn next_download_follows_at_once_only_after_the_whole_long_polling_time() {
        let client =
            client(&[(0, NEW), (60, UNCHANGED), (30, UNCHANGED), (60, NEW), (0, "?"), (60, UNCHANGED)]);
        let interval = PollInterval { long_poll: Some(Duration::from_secs(60)), ..PollInterval::DEFAULT };
        let mut poller = Poller::default();
        for (is_new, pause) in [
            (Some(true), 90),
            (Some(false), 0),
            // The server ended long polling early.
            (Some(false), 90),
            // All computers get a new bundle at the same moment.
            (Some(true), 90),
            (None, 90),
            (Some(false), 0),
        ] {
            let downloaded = poller.download(&client, interval, true).await.ok();
            assert_eq!(downloaded.as_ref().map(Option::is_some), is_new);
            if downloaded.flatten().is_some() {
                poller.accept();
            }
            assert_eq!(poller.pause(interval, 0.5), Duration::from_secs(pause));
        }
        assert_eq!(
            poller.pause(interval, 0.5),
            Duration::from_secs(90),
            "a failure before a download is no long poll"
        );
        assert_eq!([0.0, 1.0].map(|random| poller.pause(interval, random)), [interval.min, interval.max]);
    }
}
