//! The way out to one reader: lines that whoever has them writes at once, as far as the pipe takes them.
//!
//! - Lines arrive whole and in the order in which they were sent; a line is never mixed with another.
//! - Sending never waits. What the pipe does not take stays in the queue until it does, and with it its share of the memory:
//!   who sends takes care that there is room.
//! - A task runs only while something waits, and ends with the reader.
//! - A reader of another revision of the protocol has a translator, which every line goes through.

use super::{Outgoing, Output};
use std::collections::VecDeque;
use std::fmt;
use std::io::{self, IoSlice};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The pause between two looks at whether all is written.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The number of parts that are written at once.
const AT_ONCE: usize = 64;

/// The end of a way out.
#[derive(Debug)]
pub enum Outlet {
    /// Lines are written.
    Stream(Output),
    /// Lines are handed over.
    Memory(mpsc::UnboundedSender<Outgoing>),
}

/// A handle to the way out. With the last one what still waits is lost, and the pipe closed.
#[derive(Debug, Clone)]
pub struct Outbox(Arc<Guard>);

#[derive(Debug)]
struct Guard(Arc<Way>);

impl fmt::Debug for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Way").field("queue", &self.queue).finish_non_exhaustive()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// Lines are gathered.
#[derive(Debug)]
pub struct Gathered(Arc<Way>);

impl Drop for Gathered {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.gathered -= 1;
        self.0.push(queue);
    }
}

/// Turns one line into those that its reader is sent, in order, and hands each to the second argument.
pub type Translator = dyn Fn(Outgoing, &mut dyn FnMut(Outgoing)) + Send + Sync;

struct Way {
    /// Nothing is written before it is there.
    output: OnceLock<Outlet>,
    translator: OnceLock<Box<Translator>>,
    queue: Mutex<Queue>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct Queue {
    lines: VecDeque<Outgoing>,
    /// The bytes of the first line that are written.
    written: usize,
    /// Set while a task waits for the pipe.
    is_flushed: bool,
    /// The number of those who have more to send before anything is written.
    gathered: usize,
    is_closed: bool,
}

impl Outbox {
    /// A way out through this pipe.
    #[must_use]
    pub fn new(output: Output) -> Self {
        let way = Self::unopened();
        way.open(output);
        way
    }

    /// A way out that leads nowhere yet.
    #[must_use]
    pub fn unopened() -> Self {
        let way = Way {
            output: OnceLock::new(),
            translator: OnceLock::new(),
            queue: Mutex::default(),
            closed: CancellationToken::new(),
        };
        Self(Arc::new(Guard(Arc::new(way))))
    }

    /// Opens it, once; what waits is written.
    pub fn open(&self, output: Output) {
        self.open_to(Outlet::Stream(output));
    }

    /// As [`Outbox::open`], also for lines that are handed over.
    pub fn open_to(&self, outlet: Outlet) {
        // A second one is dropped.
        let _ = self.0.0.output.set(outlet);
        self.0.0.push(self.0.0.queue());
    }

    /// From now on every line that is sent is translated; once.
    pub fn translate(&self, translator: Box<Translator>) {
        // A second one is dropped.
        let _ = self.0.0.translator.set(translator);
    }

    /// Sends a line: all of it is written before this returns, if the pipe takes it.
    pub fn send(&self, line: Outgoing) {
        match self.0.0.translator.get() {
            None => self.0.0.append(line),
            Some(translator) => translator(line, &mut |line| self.0.0.append(line)),
        }
    }

    /// Until this is dropped, lines wait: then all of them are written at once. Nothing may be waited for meanwhile.
    #[must_use]
    pub fn gather(&self) -> Gathered {
        self.0.0.queue().gathered += 1;
        Gathered(self.0.0.clone())
    }

    /// Sends a line that is in the language of its reader.
    pub fn send_translated(&self, line: Outgoing) {
        self.0.0.append(line);
    }

    /// Writes no more, and forgets what waits.
    pub fn close(&self) {
        self.0.0.close();
    }

    /// Completes when it is closed, because its reader is gone or by [`Outbox::close`]. A reader that is gone shows only when
    /// something is written.
    pub async fn closed(&self) {
        self.0.0.closed.cancelled().await;
    }

    /// Completes when nothing waits any more.
    pub async fn is_written(&self) {
        // Only for the end of a conversation, which nobody needs to be told of at once.
        while !self.0.0.queue().lines.is_empty() {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

impl Way {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn close(&self) {
        close(self.queue(), &self.closed);
    }

    fn append(self: &Arc<Self>, line: Outgoing) {
        let mut queue = self.queue();
        if queue.is_closed {
            return;
        }
        queue.lines.push_back(line);
        self.push(queue);
    }

    /// Writes what the pipe takes, and leaves the rest to a task.
    fn push(self: &Arc<Self>, mut queue: MutexGuard<'_, Queue>) {
        let waits = queue.is_flushed || queue.gathered > 0;
        let Some(outlet) = self.output.get().filter(|_| !waits) else { return };
        let written = match outlet {
            Outlet::Stream(output) => write(output, &mut queue),
            Outlet::Memory(lines) => hand_over(lines, &mut queue),
        };
        match written {
            Ok(true) => {}
            Ok(false) => {
                queue.is_flushed = true;
                tokio::spawn(flush(self.clone()));
            }
            Err(_) => close(queue, &self.closed),
        }
    }
}

/// Writes what the pipe takes; tells if that was all.
fn write(output: &Output, queue: &mut Queue) -> io::Result<bool> {
    while let Some(first) = queue.lines.front() {
        let mut slices = [IoSlice::new(b""); AT_ONCE];
        let later = queue.lines.iter().skip(1).flat_map(|line| line.rest(0));
        let mut used = 0;
        for (slice, part) in slices.iter_mut().zip(first.rest(queue.written).chain(later)) {
            *slice = IoSlice::new(part);
            used += 1;
        }
        match output.try_write_vectored(slices.get(..used).unwrap_or_default()) {
            Ok(written) => queue.forget(written),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(false),
            Err(e) => return Err(e),
        }
    }
    Ok(true)
}

/// Hands over everything; the lines hold what they hold until they are taken.
fn hand_over(to: &mpsc::UnboundedSender<Outgoing>, queue: &mut Queue) -> io::Result<bool> {
    while let Some(line) = queue.lines.pop_front() {
        to.send(line).map_err(|_| io::ErrorKind::BrokenPipe)?;
    }
    Ok(true)
}

impl Queue {
    /// Takes so many written bytes off.
    fn forget(&mut self, written: usize) {
        self.written += written;
        while let Some(length) = self.lines.front().map(Outgoing::length).filter(|n| *n <= self.written) {
            self.written -= length;
            self.lines.pop_front();
        }
    }
}

fn close(mut queue: MutexGuard<'_, Queue>, closed: &CancellationToken) {
    queue.is_closed = true;
    queue.written = 0;
    let lost = std::mem::take(&mut queue.lines);
    drop(queue);
    drop(lost);
    closed.cancel();
}

/// Writes what waits as the pipe takes it.
async fn flush(way: Arc<Way>) {
    // Only a pipe can be full.
    let Some(Outlet::Stream(output)) = way.output.get() else { return };
    loop {
        let ready = tokio::select! {
            ready = output.writable() => ready,
            () = way.closed.cancelled() => return,
        };
        let mut queue = way.queue();
        match ready.and_then(|()| write(output, &mut queue)) {
            Ok(true) => {
                queue.is_flushed = false;
                return;
            }
            Ok(false) => {}
            Err(_) => return close(queue, &way.closed),
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

    fn way() -> (Outbox, io::PipeReader) {
        let (from, to) = io::pipe().unwrap();
        (Outbox::new(Output::new(to.into()).unwrap()), from)
    }

    #[tokio::test]
    async fn lines_arrive_whole_and_in_order_however_slowly_they_are_read() {
        let (out, mut from) = way();
        let mut expected = Vec::new();
        for n in 0..300_usize {
            let line = Outgoing::around(
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
        out.is_written().await;
    }

    #[tokio::test]
    async fn what_a_line_holds_is_let_go_when_it_is_written_or_lost() {
        struct Held(Option<oneshot::Sender<()>>);
        impl Drop for Held {
            fn drop(&mut self) {
                let _ = self.0.take().unwrap().send(());
            }
        }
        let (out, mut from) = way();
        let (sender, mut let_go) = oneshot::channel();
        out.send(Outgoing::line(vec![b'x'; 1_000_000]).holding(Held(Some(sender))));
        tokio::task::yield_now().await;
        assert!(let_go.try_recv().is_err());
        let read = tokio::task::spawn_blocking(move || {
            from.read_exact(&mut vec![0; 1_000_000]).unwrap();
            from
        });
        (&mut let_go).await.unwrap();
        let _from = read.await.unwrap();

        let (sender, let_go) = oneshot::channel();
        out.send(Outgoing::line(vec![b'x'; 1_000_000]).holding(Held(Some(sender))));
        out.close();
        let_go.await.unwrap();
        out.closed().await;
    }

    #[tokio::test]
    async fn gathered_lines_are_written_when_the_last_who_gathers_has_done() {
        let (out, mut from) = way();
        rustix::io::ioctl_fionbio(&from, true).unwrap();
        let (one, other) = (out.gather(), out.gather());
        out.send(Outgoing::line(b"a\n".to_vec()));
        drop(one);
        out.send(Outgoing::line(b"b\n".to_vec()));
        let mut got = [0; 10];
        assert_eq!(from.read(&mut got).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(other);
        out.is_written().await;
        assert_eq!(from.read(&mut got).unwrap(), 4);
        assert_eq!(&got[..4], b"a\nb\n");
    }

    #[tokio::test]
    async fn a_reader_that_is_gone_closes_the_way() {
        let (out, from) = way();
        drop(from);
        out.send(Outgoing::line(vec![b'x'; 10]));
        out.closed().await;
    }
}
