//! One line on its way to a reader.

use serde_json::value::RawValue;
use std::any::Any;
use std::fmt;

/// One line on its way, in parts, so that what passes through is not copied.
pub struct Outgoing {
    head: Vec<u8>,
    body: Option<Box<RawValue>>,
    tail: &'static [u8],
    /// Let go when the line is written, or never will be.
    held: Option<Box<dyn Any + Send>>,
}

impl Outgoing {
    /// A line with its line feed.
    #[must_use]
    pub fn line(line: Vec<u8>) -> Self {
        Self { head: line, body: None, tail: b"", held: None }
    }

    /// A line of three parts. A line end between the tokens of the body would end the line for its reader.
    #[must_use]
    pub fn around(head: Vec<u8>, body: Box<RawValue>, tail: &'static [u8]) -> Self {
        if body.get().bytes().any(|b| matches!(b, b'\n' | b'\r')) {
            let mut line = head;
            line.extend(body.get().bytes().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }));
            line.extend_from_slice(tail);
            return Self::line(line);
        }
        Self { head, body: Some(body), tail, held: None }
    }

    /// The same, with something that is kept until it is written.
    #[must_use]
    pub fn holding(mut self, held: impl Send + 'static) -> Self {
        self.held = Some(Box::new(held));
        self
    }

    /// The whole length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// The bytes in order.
    pub fn bytes(&self) -> impl Iterator<Item = u8> {
        self.parts().into_iter().flatten().copied()
    }

    fn parts(&self) -> [&[u8]; 3] {
        let body = self.body.as_ref().map_or("", |body| body.get());
        [&self.head, body.as_bytes(), self.tail]
    }

    /// The parts after so many bytes.
    pub(super) fn rest(&self, mut written: usize) -> impl Iterator<Item = &[u8]> {
        self.parts().into_iter().filter_map(move |part| {
            let skipped = written.min(part.len());
            written -= skipped;
            part.get(skipped..).filter(|rest| !rest.is_empty())
        })
    }
}

impl fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outgoing").field("length", &self.length()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Box<RawValue> {
        RawValue::from_string(text.to_owned()).unwrap()
    }

    #[test]
    fn a_line_end_in_the_middle_becomes_a_space() {
        let line = Outgoing::around(b"{\"a\":".to_vec(), raw("[1,\r\n2]"), b"}\n");
        assert_eq!(line.bytes().collect::<Vec<_>>(), b"{\"a\":[1,  2]}\n");
    }
}
