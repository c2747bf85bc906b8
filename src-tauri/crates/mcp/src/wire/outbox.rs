//! Queue of lines to one reader. The sender itself writes the lines for as long as the pipe accepts bytes.
//!
//! - Lines arrive complete, in order and never interleaved.
//! - Sending never blocks. Bytes that the pipe does not accept stay in the queue and hold their memory; the sender must
//!   limit their amount.
//! - A background task runs only while the pipe is full, and exits when the reader closes the pipe.
//! - If the reader uses a different protocol version, every line passes through a translator.

use super::{Outgoing, Output};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Interval for polling whether all lines are written.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Maximum number of buffers per vectored write.
const MAX_SLICES: usize = 64;

/// Destination of an outbox.
#[derive(Debug)]
pub enum LineSink {
    /// A stream to write to.
    Stream(Output),
    /// A channel to send to.
    Channel(mpsc::UnboundedSender<Outgoing>),
}

/// Handle to the queue. Dropping the last handle discards pending lines and closes the pipe.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<CloseOnDrop>);

#[derive(Debug)]
struct CloseOnDrop(Arc<OutboxState>);

impl fmt::Debug for OutboxState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutboxState").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Guard that delays all writes until it is dropped.
#[derive(Debug)]
pub struct WriteBatch(Arc<OutboxState>);

impl Drop for WriteBatch {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.batches -= 1;
        self.0.write_queued(queue);
    }
}

/// Translates one line into the lines that the reader receives, and passes them in order to the second argument.
pub(crate) type Translator = dyn Fn(Outgoing, &mut dyn FnMut(Outgoing)) + Send + Sync;

struct OutboxState {
    translator: OnceLock<Box<Translator>>,
    queue: Mutex<Queue>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Queue {
    /// Destination, or `None` before the outbox is opened and after it is closed. Lines are queued until it is opened.
    output: Option<Arc<LineSink>>,
    lines: VecDeque<Outgoing>,
    /// Number of bytes of the first line that have been written.
    written: usize,
    /// `true` while a task waits until the pipe accepts more bytes.
    is_flushing: bool,
    /// Number of live [`WriteBatch`] guards.
    batches: usize,
    is_closed: bool,
}

impl Outbox {
    /// Creates an outbox that writes to this pipe.
    #[must_use]
    pub fn new(output: Output) -> Self {
        let state = Self::unopened();
        state.open(output);
        state
    }

    /// Creates an outbox without a destination. Lines are queued until the outbox is opened.
    #[must_use]
    pub fn unopened() -> Self {
        let state = OutboxState {
            translator: OnceLock::new(),
            queue: Mutex::default(),
            closed: CancellationToken::new(),
        };
        Self(Arc::new(CloseOnDrop(Arc::new(state))))
    }

    /// Sets the destination, unless a destination is already set, and writes the queued lines.
    pub fn open(&self, output: Output) {
        self.open_sink(LineSink::Stream(output));
    }

    /// Like [`Outbox::open`], but also accepts a channel.
    pub fn open_sink(&self, outlet: LineSink) {
        let mut queue = self.0.0.queue();
        if !queue.is_closed {
            queue.output.get_or_insert_with(|| Arc::new(outlet));
        }
        self.0.0.write_queued(queue);
    }

    /// Sets the translator for all lines sent from now on, unless a translator is already set.
    pub(crate) fn translate(&self, translator: Box<Translator>) {
        // Ignored if a translator is already set.
        let _ = self.0.0.translator.set(translator);
    }

    /// Sends a line. If the pipe accepts the line, it is written before this function returns.
    pub fn send(&self, line: Outgoing) {
        match self.0.0.translator.get() {
            None => self.0.0.enqueue(line),
            Some(translator) => translator(line, &mut |line| self.0.0.enqueue(line)),
        }
    }

    /// Delays writing until the guard is dropped, then writes all lines at once. Do not await while holding it.
    #[must_use]
    pub fn batch_writes(&self) -> WriteBatch {
        self.0.0.queue().batches += 1;
        WriteBatch(self.0.0.clone())
    }

    /// Sends a line without translating it.
    pub(crate) fn send_translated(&self, line: Outgoing) {
        self.0.0.enqueue(line);
    }

    /// Discards pending lines and closes the pipe.
    pub fn close(&self) {
        self.0.0.close();
    }

    /// Completes when the outbox is closed: by [`Outbox::close`], or because the reader closed its end. A reader's
    /// close is noticed only on a write.
    pub async fn closed(&self) {
        self.0.0.closed.cancelled().await;
    }

    /// Completes when no line is pending.
    pub async fn drained(&self) {
        // Polling suffices, because this delays only the end of a conversation.
        while !self.0.0.queue().lines.is_empty() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl OutboxState {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        close(self.queue(), &self.closed);
    }

    fn enqueue(self: &Arc<Self>, line: Outgoing) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        queue.lines.push_back(line);
        self.write_queued(queue);
    }

    /// Writes as much as the pipe accepts, and spawns a task for the rest.
    fn write_queued(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        let is_delayed = queue.is_flushing || queue.batches > 0;
        let Some(outlet) = queue.output.clone().filter(|_| !is_delayed) else { return };
        let written = match &*outlet {
            LineSink::Stream(output) => write(output, &mut queue),
            LineSink::Channel(lines) => send_all(lines, &mut queue),
        };
        match written {
            Ok(true) => {}
            Ok(false) => {
                queue.is_flushing = true;
                tokio::spawn(flush(self.clone(), outlet));
            }
            Err(_) => close(queue, &self.closed),
        }
    }
}

/// Writes as much as the pipe accepts. Returns `true` if the queue is empty.
fn write(output: &Output, queue: &mut Queue) -> io::Result<bool> {
    while let Some(first) = queue.lines.front() {
        let mut slices = [IoSlice::new(b""); MAX_SLICES];
        let later = queue.lines.iter().skip(1).flat_map(|line| line.unwritten(0));
        let mut used = 0;
        for (slice, part) in slices.iter_mut().zip(first.unwritten(queue.written).chain(later)) {
            *slice = IoSlice::new(part);
            used += 1;
        }
        match output.try_write_vectored(slices.get(..used).unwrap_or_default()) {
            Ok(written) => queue.remove_written(written),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Sends all lines to the channel. They hold their memory until they are received.
fn send_all(to: &mpsc::UnboundedSender<Outgoing>, queue: &mut Queue) -> io::Result<bool> {
    while let Some(line) = queue.lines.pop_front() {
        to.send(line).map_err(|_| io::ErrorKind::BrokenPipe)?;
    }
    Ok(true)
}

impl Queue {
    /// Removes this number of written bytes from the queue.
    fn remove_written(&mut self, written: usize) {
        self.written += written;
        while let Some(length) = self.lines.front().map(Outgoing::length).filter(|n| *n <= self.written) {
            self.written -= length;
            self.lines.pop_front();
        }
    }
}

fn close(mut queue: MutexGuard<'_, Queue>, closed: &CancellationToken) {
    let closed_queue = Queue { batches: queue.batches, is_closed: true, ..Queue::default() };
    let discarded = std::mem::replace(&mut *queue, closed_queue);
    drop(queue);
    drop(discarded);
    closed.cancel();
}

/// Writes the queue whenever the pipe accepts more bytes.
async fn flush(state: Arc<OutboxState>, outlet: Arc<LineSink>) {
    // Only a pipe can be full.
    let LineSink::Stream(output) = &*outlet else { return };
    loop {
        let ready = tokio::select! {
            ready = output.writable() => ready,
            () = state.closed.cancelled() => return,
        };
        let mut queue = state.queue();
        match ready.and_then(|()| write(output, &mut queue)) {
            Ok(true) => {
                queue.is_flushing = false;
                return;
            }
            Ok(false) => {}
            Err(_) => return close(queue, &state.closed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::value::RawValue;
    use std::io::Read;
    use tokio::sync::oneshot;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    fn state() -> (Outbox, io::PipeReader) {
        let (from, to) = io::pipe().unwrap();
        (Outbox::new(Output::new(to.into()).unwrap()), from)
    }

    #[tokio::test]
    async fn lines_arrive_complete_and_in_order_at_a_slow_reader() {
        let (out, mut from) = state();
        let mut expected = Vec::new();
        for n in 0..300_usize {
            let line = Outgoing::with_body(
                format!("{n}:").into_bytes(),
                raw(&format!("\"{}\"", "x".repeat(n * 10))),
                b"}\n",
            );
            expected.extend(line.bytes());
            out.send(line);
        }
        let length = expected.len();
        let got = tokio::task::spawn_blocking(move || {
            let mut got = vec![0; length];
            from.read_exact(&mut got).unwrap();
            got
        });
        assert!(got.await.unwrap() == expected);
        out.drained().await;
    }

    #[tokio::test]
    async fn a_lines_guard_is_dropped_when_it_is_written_or_lost() {
        struct LineGuard(Option<oneshot::Sender<()>>);
        impl Drop for LineGuard {
            fn drop(&mut self) {
                let _ = self.0.take().unwrap().send(());
            }
        }
        let (out, mut from) = state();
        let (sender, mut let_go) = oneshot::channel();
        out.send(Outgoing::line(vec![b'x'; 1_000_000]).holding(LineGuard(Some(sender))));
        tokio::task::yield_now().await;
        assert!(let_go.try_recv().is_err());
        let read = tokio::task::spawn_blocking(move || {
            from.read_exact(&mut vec![0; 1_000_000]).unwrap();
            from
        });
        (&mut let_go).await.unwrap();
        let _from = read.await.unwrap();

        let (sender, let_go) = oneshot::channel();
        out.send(Outgoing::line(vec![b'x'; 1_000_000]).holding(LineGuard(Some(sender))));
        out.close();
        let_go.await.unwrap();
        out.closed().await;
    }

    #[tokio::test]
    async fn gathered_lines_are_written_when_the_last_guard_is_dropped() {
        let (out, mut from) = state();
        rustix::io::ioctl_fionbio(&from, true).unwrap();
        let (one, other) = (out.batch_writes(), out.batch_writes());
        out.send(Outgoing::line(b"a\n".to_vec()));
        drop(one);
        out.send(Outgoing::line(b"b\n".to_vec()));
        let mut got = [0; 10];
        assert_eq!(from.read(&mut got).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(other);
        out.drained().await;
        assert_eq!(from.read(&mut got).unwrap(), 4);
        assert_eq!(&got[..4], b"a\nb\n");
    }

    #[tokio::test]
    async fn a_closed_reader_closes_the_outbox() {
        let (out, from) = state();
        drop(from);
        out.send(Outgoing::line(vec![b'x'; 10]));
        out.closed().await;
    }
}
