//! In-memory server that counts its traffic in each second.

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use ironcurtain_tls::StreamDialer;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum number of bytes that one side of a connection can send before the other side reads.
const BUFFER: usize = 16 * 1024;

/// Response, or `None` to close the connection without a response.
pub type Answered = Pin<Box<dyn Future<Output = Option<Response<Full<Bytes>>>> + Send>>;

/// Traffic in one second, or the sum of several seconds. The byte counts include HTTP headers, but no TLS or TCP
/// overhead.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traffic {
    /// Connection attempts.
    pub connections: u64,
    pub requests: u64,
    pub received: u64,
    pub sent: u64,
}

/// In-memory server.
pub struct Site {
    began: Instant,
    seconds: Mutex<Vec<Traffic>>,
    /// Connections are refused while it is `false`, and closed when it becomes `false`.
    is_up: watch::Sender<bool>,
    answer: Box<dyn Fn(Request<Incoming>) -> Answered + Send + Sync>,
}

impl Site {
    pub fn new(answer: impl Fn(Request<Incoming>) -> Answered + Send + Sync + 'static) -> Arc<Self> {
        let (began, is_up) = (Instant::now(), watch::Sender::new(true));
        Arc::new(Self { began, seconds: Mutex::default(), is_up, answer: Box::new(answer) })
    }

    /// Returns a dialer that connects every host to this server.
    pub fn dialer(self: &Arc<Self>) -> StreamDialer {
        let site = self.clone();
        StreamDialer::new(move |_, _| std::future::ready(site.open()))
    }

    pub fn set_up(&self, is_up: bool) {
        self.is_up.send_replace(is_up);
    }

    /// Returns the traffic of each second in a period.
    pub fn between(&self, from: Instant, until: Instant) -> Vec<Traffic> {
        let second = |at: Instant| usize::try_from((at - self.began).as_secs()).expect("a time");
        let (from, until) = (second(from), second(until));
        let seconds = self.seconds.lock().expect("no panic");
        (from..until).map(|at| seconds.get(at).copied().unwrap_or_default()).collect()
    }

    fn count(&self, add: impl FnOnce(&mut Traffic)) {
        let second = usize::try_from(self.began.elapsed().as_secs()).expect("a time");
        let mut seconds = self.seconds.lock().expect("no panic");
        if seconds.len() <= second {
            seconds.resize(second + 1, Traffic::default());
        }
        if let Some(last) = seconds.last_mut() {
            add(last);
        }
    }

    fn open(self: &Arc<Self>) -> io::Result<DuplexStream> {
        self.count(|second| second.connections += 1);
        if !*self.is_up.borrow() {
            return Err(io::ErrorKind::ConnectionRefused.into());
        }
        let (client, server) = tokio::io::duplex(BUFFER);
        tokio::spawn(self.clone().serve(server));
        Ok(client)
    }

    async fn serve(self: Arc<Self>, stream: DuplexStream) {
        let mut is_up = self.is_up.subscribe();
        let service = service_fn(|request| {
            self.count(|second| second.requests += 1);
            let answered = (self.answer)(request);
            async { answered.await.ok_or(io::Error::from(io::ErrorKind::ConnectionReset)) }
        });
        let counted = TokioIo::new(Counted { stream, site: self.clone() });
        tokio::select! {
            // Fails if the client disconnects.
            _ = http1::Builder::new().max_buf_size(BUFFER).serve_connection(counted, service) => {}
            _ = is_up.wait_for(|is_up| !is_up) => {}
        }
    }
}

/// Returns the total traffic of several seconds.
pub fn total(seconds: &[Traffic]) -> Traffic {
    seconds.iter().fold(Traffic::default(), |sum, second| Traffic {
        connections: sum.connections + second.connections,
        requests: sum.requests + second.requests,
        received: sum.received + second.received,
        sent: sum.sent + second.sent,
    })
}

/// Server side of a connection.
struct Counted {
    stream: DuplexStream,
    site: Arc<Site>,
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        let read = (buf.filled().len() - before) as u64;
        if read > 0 {
            self.site.count(|second| second.received += read);
        }
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, buf);
        if let Poll::Ready(Ok(written)) = &polled {
            self.site.count(|second| second.sent += *written as u64);
        }
        polled
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Set of desktops that have reached a state, and the time when the last desktop did.
#[derive(Debug)]
pub struct Progress(Mutex<(Vec<bool>, Instant)>);

impl Progress {
    pub fn new(desktops: usize) -> Self {
        Self(Mutex::new((vec![false; desktops], Instant::now())))
    }

    /// Removes all desktops from the set.
    pub fn reset(&self) {
        self.0.lock().expect("no panic").0.fill(false);
    }

    pub fn reach(&self, desktop: usize) {
        let (reached, last) = &mut *self.0.lock().expect("no panic");
        let reached = reached.get_mut(desktop).expect("a desktop");
        if !std::mem::replace(reached, true) {
            *last = Instant::now();
        }
    }

    /// Waits until all desktops have reached the state. Returns the time from `from` until the last desktop reached it.
    pub async fn all(&self, from: Instant, timeout: Duration) -> Duration {
        loop {
            {
                let (reached, last) = &*self.0.lock().expect("no panic");
                if reached.iter().all(|reached| *reached) {
                    return last.saturating_duration_since(from);
                }
                let left = reached.iter().filter(|reached| !**reached).count();
                assert!(from.elapsed() < timeout, "{left} desktops are not done after {timeout:?}");
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}
