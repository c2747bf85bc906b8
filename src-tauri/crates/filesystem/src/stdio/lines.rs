//! Reads lines of limited length, in bounded memory.

use std::io::{self, BufRead as _, BufReader, Read};

/// Maximum capacity in bytes of the buffer that is kept between lines.
const BUFFER_LEN: usize = 64 * 1024;

/// Reader that skips lines longer than the limit.
pub(super) struct Lines<R> {
    input: BufReader<R>,
    line: Vec<u8>,
    limit: usize,
}

/// Next part of the input.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    /// A line, without its line feed.
    Whole(&'a [u8]),
    /// A line that exceeded the limit and was skipped.
    TooLong,
    /// The end of the input. An incomplete last line is dropped.
    End,
}

impl<R: Read> Lines<R> {
    pub(super) fn new(input: R, limit: usize) -> Self {
        Self { input: BufReader::with_capacity(BUFFER_LEN, input), line: Vec::new(), limit }
    }

    /// Reads the next line.
    pub(super) fn next(&mut self) -> io::Result<Line<'_>> {
        self.line.clear();
        self.line.shrink_to(BUFFER_LEN);
        let mut too_long = false;
        loop {
            let available = match self.input.fill_buf() {
                Ok([]) => return Ok(Line::End),
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let mut parts = available.splitn(2, |byte| *byte == b'\n');
            let part = parts.next().unwrap_or_default();
            let is_complete = parts.next().is_some();
            too_long |= self.line.len().saturating_add(part.len()) > self.limit;
            if too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(part);
            }
            let consumed = part.len().saturating_add(usize::from(is_complete));
            self.input.consume(consumed);
            match (is_complete, too_long) {
                (true, true) => return Ok(Line::TooLong),
                (true, false) => return Ok(Line::Whole(&self.line)),
                (false, _) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn any_bytes_are_split_into_lines(input in proptest::collection::vec(0_u8..20, 0..200), limit in 0_usize..30) {
            let mut lines = Lines::new(input.as_slice(), limit);
            let mut expected: Vec<&[u8]> = input.split(|byte| *byte == b'\n').collect();
            expected.pop();
            for line in expected {
                let expected = if line.len() > limit { Line::TooLong } else { Line::Whole(line) };
                proptest::prop_assert_eq!(lines.next().expect("line"), expected);
            }
            proptest::prop_assert_eq!(lines.next().expect("line"), Line::End);
        }
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_one_is_complete() {
        let mut lines = Lines::new(&b"one\n\n12345\n123456\n1234567\ntwo\nunfinished"[..], 5);
        assert_eq!(lines.next().expect("line"), Line::Whole(b"one"));
        assert_eq!(lines.next().expect("line"), Line::Whole(b""));
        assert_eq!(lines.next().expect("line"), Line::Whole(b"12345"));
        assert_eq!(lines.next().expect("line"), Line::TooLong);
        assert_eq!(lines.next().expect("line"), Line::TooLong);
        assert_eq!(lines.next().expect("line"), Line::Whole(b"two"));
        assert_eq!(lines.next().expect("line"), Line::End);
    }
}
