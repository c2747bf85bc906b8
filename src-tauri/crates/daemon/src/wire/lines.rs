//! Lines with a bound: one that is too long is skipped to its end and reported, and the stream lives on.
//!
//! - What is read of a line is kept when the wait for its end is given up, so waiting for something else beside it loses
//!   nothing.

use std::io;
use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// The longest message either side may send: 64 MiB.
pub const MAX_LINE_BYTES: usize = 64 * 1024 * 1024;

/// One line as it was read.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// One line, without its line feed.
    Whole(Vec<u8>),
    /// A line over the bound, gone; how long it was, and its first bytes.
    TooLong {
        /// Its length in bytes.
        length: u64,
        /// Its beginning, for finding the request's id.
        head: Vec<u8>,
    },
}

/// The part of an overlong line that is kept.
const HEAD_BYTES: usize = 64 * 1024;

/// A reader of bounded lines.
#[derive(Debug)]
pub struct Lines<R> {
    from: R,
    bound: usize,
    /// The line as read so far, or its beginning.
    kept: Vec<u8>,
    /// The length of the line so far, in bytes.
    length: u64,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    /// Lines of at most `bound` bytes.
    pub fn new(from: R, bound: usize) -> Self {
        Self { from, bound, kept: Vec::new(), length: 0 }
    }

    /// The next line; `None` at the end. A last line without a line feed is not a message and is dropped.
    ///
    /// # Errors
    /// The stream's error.
    pub async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.from.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let end = piece.iter().position(|&b| b == b'\n');
            let text = piece.get(..end.unwrap_or(piece.len())).unwrap_or_default();
            self.length = self.length.saturating_add(text.len() as u64);
            let fits = usize::try_from(self.length).is_ok_and(|n| n <= self.bound);
            if fits {
                self.kept.extend_from_slice(text);
            } else if self.kept.len() > HEAD_BYTES {
                self.kept.truncate(HEAD_BYTES);
                self.kept.shrink_to_fit();
            }
            let used = end.map_or(piece.len(), |n| n + 1);
            self.from.consume(used);
            if end.is_some() {
                let (kept, length) = (std::mem::take(&mut self.kept), std::mem::take(&mut self.length));
                return Ok(Some(if fits { Line::Whole(kept) } else { Line::TooLong { length, head: kept } }));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncWriteExt;

    async fn all(text: &[u8], bound: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, bound);
        let mut got = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            got.push(line);
        }
        got
    }

    #[tokio::test]
    async fn a_long_line_is_reported_and_the_next_one_read() {
        let long = Line::TooLong { length: 6, head: vec![] };
        let want =
            [Line::Whole(b"abc".to_vec()), long, Line::Whole(b"".to_vec()), Line::Whole(b"d".to_vec())];
        assert_eq!(all(b"abc\n123456\n\nd\n", 5).await, want);
    }

    #[tokio::test]
    async fn giving_up_the_wait_for_a_line_loses_nothing_of_it() {
        let (mut far, near) = tokio::io::duplex(64);
        let mut lines = Lines::new(tokio::io::BufReader::new(near), 100);
        for piece in [b"ab", b"cd"] {
            far.write_all(piece).await.unwrap();
            tokio::select! {
                biased;
                line = lines.next() => panic!("{line:?}"),
                () = std::future::ready(()) => {}
            }
        }
        far.write_all(b"e\n").await.unwrap();
        assert_eq!(lines.next().await.unwrap(), Some(Line::Whole(b"abcde".to_vec())));
    }

    #[tokio::test]
    async fn half_a_line_is_no_message() {
        assert_eq!(all(b"whole\nhal", 100).await, [Line::Whole(b"whole".to_vec())]);
    }
}
