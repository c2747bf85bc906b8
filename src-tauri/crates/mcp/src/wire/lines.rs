//! Bounded line reader. An overlong line is skipped and reported, and reading continues with the next line.
//!
//! - `next` is cancel safe: a partly read line stays in the buffer.
//! - With an allowance, memory for a line is acquired before more of the line is read.

use super::memory_budget::{Allowance, Share};
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt};

/// Maximum length of a message from either side: 64 MiB.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// Maximum number of lines that are processed as one batch. A larger batch would delay its first line too long.
pub const MAX_CONCURRENT: usize = 16;

/// A line read from a stream.
#[derive(Debug)]
pub enum Line {
    /// A complete line without its line feed, and the memory that it holds.
    Whole(Vec<u8>, Option<Share>),
    /// A discarded line that exceeded the bound.
    TooLong {
        /// Length of the line in bytes.
        length: u64,
        /// First bytes of the line, for finding the request id.
        head: Vec<u8>,
    },
    /// A discarded line for which no memory was available.
    NoMemory {
        /// First bytes of the line, for finding the request id.
        head: Vec<u8>,
    },
}

/// Maximum number of bytes kept of a discarded line.
const HEAD_BYTES: usize = 64 * 1024;

/// Minimum read size in bytes, and maximum length of a short line.
const MIN_READ_LEN: usize = 8 * 1024;

/// Maximum read size in bytes.
const MAX_READ_LEN: usize = 256 * 1024;

/// Reader of lines of bounded length.
#[derive(Debug)]
pub struct Lines<R> {
    source: R,
    bound: usize,
    allowance: Option<Allowance>,
    /// Bytes that were read. Lines before `start` have been returned.
    buffer: Vec<u8>,
    /// Offset of the line being read.
    start: usize,
    /// Offset up to which the buffer has been searched for a line feed.
    searched: usize,
    /// Memory of the line being read.
    share: Option<Share>,
    skipped: Option<Skipped>,
}

/// Line that is being skipped.
#[derive(Debug)]
struct Skipped {
    head: Vec<u8>,
    /// Number of bytes skipped so far.
    length: u64,
    is_too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Creates a reader of lines of at most `bound` bytes.
    pub fn new(source: R, bound: usize) -> Self {
        Self {
            source,
            bound,
            allowance: None,
            buffer: Vec::new(),
            start: 0,
            searched: 0,
            share: None,
            skipped: None,
        }
    }

    /// Creates a reader of lines of at most `bound` bytes that takes memory from an allowance.
    pub fn with_allowance(allowance: Allowance, source: R, bound: usize) -> Self {
        let bound = bound.min(allowance.max_line_len());
        Self { allowance: Some(allowance), ..Self::new(source, bound) }
    }

    /// Prepends bytes that were already read.
    #[must_use]
    pub fn with_buffered(mut self, read: Vec<u8>) -> Self {
        self.buffer = read;
        self
    }

    /// Returns the bytes that were read beyond the last complete line, or `None` if an overlong line was being
    /// skipped.
    #[must_use]
    pub fn into_unread(self) -> Option<Vec<u8>> {
        let Self { mut buffer, start, skipped, .. } = self;
        skipped.is_none().then(|| buffer.split_off(start))
    }

    /// Returns the next line, or `None` at the end of the input. An unterminated last line is dropped.
    ///
    /// # Errors
    /// Returns the stream's I/O error.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
            let end = unsearched.iter().position(|&b| b == b'\n').map(|n| self.searched + n);
            self.searched = end.unwrap_or(self.buffer.len());
            let length = self.searched - self.start;
            if self.skipped.is_none() {
                if length > self.bound {
                    self.start_skipping(true);
                } else if !self.acquire_memory(length, end.is_some()).await {
                    self.start_skipping(false);
                }
            }
            if let Some(skipped) = &mut self.skipped {
                skipped.length = skipped.length.saturating_add(length as u64);
                self.start = self.searched;
            }
            if let Some(end) = end {
                return Ok(Some(self.take_line(end)));
            }
            if !self.read().await? {
                return Ok(None);
            }
        }
    }

    /// Returns the next line if it is already buffered and short, and its memory is immediately available.
    pub fn try_next(&mut self) -> Option<Line> {
        if self.skipped.is_some() || self.share.is_some() {
            return None;
        }
        let unsearched = self.buffer.get(self.searched..).unwrap_or_default();
        let end = self.searched + unsearched.iter().position(|&b| b == b'\n')?;
        let length = end - self.start;
        if length > MIN_READ_LEN.min(self.bound) {
            return None;
        }
        if let Some(allowance) = &self.allowance {
            self.share = Some(allowance.try_acquire(length)?);
        }
        Some(self.take_line(end))
    }

    /// Waits until a memory share is acquired for the current line. `length` is the number of bytes read so far.
    /// Returns `false` if no share becomes available.
    async fn acquire_memory(&mut self, length: usize, is_whole: bool) -> bool {
        let Some(allowance) = &self.allowance else { return true };
        // An incomplete line gets twice its current length so that it rarely waits again.
        let wanted = if is_whole { length } else { (length * 2).min(self.bound) };
        match &mut self.share {
            Some(share) if share.bytes() >= length => {
                if is_whole {
                    allowance.shrink(share, length);
                }
                return true;
            }
            None if !is_whole && length <= MIN_READ_LEN => return true,
            Some(_) | None => {}
        }
        let share = match self.share.take() {
            Some(share) => allowance.grow(share, wanted).await,
            None => allowance.acquire(wanted).await,
        };
        self.share = share.ok();
        if let (Some(share), true) = (&mut self.share, is_whole) {
            allowance.shrink(share, length);
        }
        self.share.is_some()
    }

    /// Starts skipping the current line.
    fn start_skipping(&mut self, is_too_long: bool) {
        let head =
            self.buffer.get(self.start..self.searched.min(self.start + HEAD_BYTES)).unwrap_or_default();
        self.skipped = Some(Skipped { head: head.to_vec(), length: 0, is_too_long });
        self.share = None;
    }

    /// Takes the line that ends at `end`.
    fn take_line(&mut self, end: usize) -> Line {
        let start = std::mem::replace(&mut self.start, end + 1);
        self.searched = end + 1;
        if let Some(Skipped { head, length, is_too_long }) = self.skipped.take() {
            self.free_consumed();
            return if is_too_long { Line::TooLong { length, head } } else { Line::NoMemory { head } };
        }
        let share = self.share.take();
        let is_long = end - start > MIN_READ_LEN;
        if start == 0 && is_long {
            let rest = self.buffer.split_off(self.start);
            let mut line = std::mem::replace(&mut self.buffer, rest);
            line.truncate(end);
            (self.start, self.searched) = (0, 0);
            return Line::Whole(line, share);
        }
        let line = self.buffer.get(start..end).unwrap_or_default().to_vec();
        self.free_consumed();
        Line::Whole(line, share)
    }

    /// Frees the consumed part of the buffer.
    fn free_consumed(&mut self) {
        if self.start == self.buffer.len() {
            // A small buffer is kept, which avoids an allocation per message.
            self.buffer.clear();
            self.buffer.shrink_to(MIN_READ_LEN * 2);
        } else if self.start > MAX_READ_LEN {
            self.buffer.drain(..self.start);
        } else {
            return;
        }
        self.searched = self.searched.saturating_sub(self.start);
        self.start = 0;
    }

    /// Reads more bytes. Returns `false` at EOF.
    async fn read(&mut self) -> io::Result<bool> {
        if self.start == self.buffer.len() && self.buffer.capacity() > MAX_READ_LEN {
            self.buffer = Vec::new();
            (self.start, self.searched) = (0, 0);
        }
        if self.start > 0 {
            self.buffer.drain(..self.start);
            self.searched -= self.start;
            self.start = 0;
        }
        self.buffer.reserve(self.buffer.len().clamp(MIN_READ_LEN, MAX_READ_LEN));
        Ok(self.source.read_buf(&mut self.buffer).await? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MemoryBudget;
    use super::*;
    use std::io::Cursor;
    use tokio::io::AsyncWriteExt;

    #[derive(Debug, PartialEq)]
    enum Seen {
        Whole(Vec<u8>),
        TooLong(u64, Vec<u8>),
        NoMemory(Vec<u8>),
    }

    async fn all(mut lines: Lines<impl AsyncRead + Unpin>) -> Vec<Seen> {
        let mut got = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            got.push(match line {
                Line::Whole(line, _) => Seen::Whole(line),
                Line::TooLong { length, head } => Seen::TooLong(length, head),
                Line::NoMemory { head } => Seen::NoMemory(head),
            });
        }
        got
    }

    fn whole(text: &[u8]) -> Seen {
        Seen::Whole(text.to_vec())
    }

    #[tokio::test]
    async fn a_too_long_line_is_reported_and_the_next_one_read() {
        let got = all(Lines::new(Cursor::new(b"abc\n123456\n\nd\n"), 5)).await;
        assert_eq!(got, [whole(b"abc"), Seen::TooLong(6, b"123456".to_vec()), whole(b""), whole(b"d")]);
    }

    #[tokio::test]
    async fn an_endless_line_is_not_buffered() {
        let (mut far, near) = tokio::io::duplex(1024);
        let writing = tokio::spawn(async move {
            for _ in 0..3000 {
                far.write_all(&[b'x'; 1000]).await.unwrap();
            }
            far.write_all(b"\nnext\n").await.unwrap();
        });
        let mut lines = Lines::new(near, 1_000_000);
        let Some(Line::TooLong { length, head }) = lines.next().await.unwrap() else { panic!() };
        assert_eq!((length, head.len()), (3_000_000, HEAD_BYTES));
        assert!(lines.buffer.capacity() < 2_000_000, "{}", lines.buffer.capacity());
        assert!(matches!(lines.next().await.unwrap(), Some(Line::Whole(line, _)) if line == b"next"));
        writing.await.unwrap();
    }

    #[tokio::test]
    async fn lines_of_every_length_round_trip() {
        let lengths = [0, 1, 10, 8191, 8192, 8193, 100_000, 3, 300_000, 300_001, 5, 0, 70_000];
        let lines: Vec<Vec<u8>> = lengths.iter().map(|n| vec![b'y'; *n]).collect();
        for piece in [1, 1000, 1 << 20] {
            let (mut far, near) = tokio::io::duplex(piece);
            let text: Vec<u8> = lines.iter().flat_map(|line| [line.as_slice(), b"\n"].concat()).collect();
            let writing = tokio::spawn(async move { far.write_all(&text).await });
            let allowance = MemoryBudget::new(8, 2).allowance(2);
            let got = all(Lines::with_allowance(allowance, near, MAX_LINE_BYTES)).await;
            assert!(got == lines.iter().map(|line| whole(line)).collect::<Vec<_>>(), "{piece}");
            writing.await.unwrap().unwrap();
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_line_without_memory_is_skipped_and_the_next_one_read() {
        let memory = MemoryBudget::new(1, 1);
        let held = memory.allowance(1).acquire(900_000).await.unwrap();
        let text = [b"{\"id\":7,".as_slice(), &[b'x'; 300_000], b"\nshort\n"].concat();
        let mut lines = Lines::with_allowance(memory.allowance(1), Cursor::new(text.clone()), MAX_LINE_BYTES);
        let Some(Line::NoMemory { head }) = lines.next().await.unwrap() else { panic!() };
        assert!(head.starts_with(b"{\"id\":7,"));
        assert!(matches!(lines.next().await.unwrap(), Some(Line::Whole(line, Some(_))) if line == b"short"));
        drop(held);
        let got = all(Lines::with_allowance(memory.allowance(1), Cursor::new(text), MAX_LINE_BYTES)).await;
        assert!(matches!(&got[0], Seen::Whole(line) if line.len() == 300_008), "{}", got.len());
    }

    #[tokio::test]
    async fn a_cancelled_read_loses_no_bytes() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut lines = Lines::new(near, 100);
        for piece in [b"ab", b"cd"] {
            far.write_all(piece).await.unwrap();
            tokio::select! {
                biased;
                line = lines.next() => panic!("{line:?}"),
                () = std::future::ready(()) => {}
            }
        }
        far.write_all(b"e\n").await.unwrap();
        assert!(matches!(lines.next().await.unwrap(), Some(Line::Whole(line, _)) if line == b"abcde"));
    }

    #[tokio::test]
    async fn short_buffered_lines_are_available_at_once() {
        let long = [vec![b'x'; MIN_READ_LEN + 1], b"\nd\nhalf".to_vec()].concat();
        let text = [b"a\nb\n\nc\n".as_slice(), &long].concat();
        let memory = MemoryBudget::new(64, 1);
        let (mut far, near) = tokio::io::duplex(text.len());
        far.write_all(&text).await.unwrap();
        let mut lines = Lines::with_allowance(memory.allowance(1), near, MAX_LINE_BYTES);
        assert!(lines.try_next().is_none(), "`try_next` does not read");
        assert!(matches!(lines.next().await.unwrap(), Some(Line::Whole(line, _)) if line == b"a"));
        for expected in [b"b".as_slice(), b"", b"c"] {
            let Some(Line::Whole(line, Some(_))) = lines.try_next() else { panic!("{expected:?}") };
            assert_eq!(line, expected);
        }
        assert!(lines.try_next().is_none());
        assert!(
            matches!(lines.next().await.unwrap(), Some(Line::Whole(line, _)) if line.len() == MIN_READ_LEN + 1)
        );
        assert!(matches!(lines.try_next(), Some(Line::Whole(line, _)) if line == b"d"));
        assert!(lines.try_next().is_none(), "the line is incomplete");
    }

    #[tokio::test]
    async fn an_incomplete_line_is_not_a_message() {
        assert_eq!(all(Lines::new(Cursor::new(b"whole\nhal"), 100)).await, [whole(b"whole")]);
    }
}
