//! Lines to be sent.

use serde_json::value::RawValue;
use std::any::Any;
use std::fmt;

/// Line in parts so that a forwarded payload need not be copied.
pub struct Outgoing {
    head: Vec<u8>,
    body: Option<Box<RawValue>>,
    /// Number of bytes to skip at the start of the body.
    skipped: usize,
    tail: &'static [u8],
    /// Guard of the line. It is dropped when the line is written or discarded.
    guard: LineGuard,
}

/// Guard of a line: a value that is dropped when the line is written or discarded.
pub type LineGuard = Option<Box<dyn Any + Send>>;

impl Outgoing {
    /// Creates a line from its bytes, which include the line feed.
    #[must_use]
    pub fn line(line: Vec<u8>) -> Self {
        Self { head: line, body: None, skipped: 0, tail: b"", guard: None }
    }

    /// Creates a line from three parts. Line breaks between the body's tokens become spaces.
    #[must_use]
    pub fn with_body(head: Vec<u8>, body: Box<RawValue>, tail: &'static [u8]) -> Self {
        if body.get().bytes().any(|b| matches!(b, b'\n' | b'\r')) {
            let mut line = head;
            line.extend(body.get().bytes().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b }));
            line.extend_from_slice(tail);
            return Self::line(line);
        }
        Self { head, body: Some(body), skipped: 0, tail, guard: None }
    }

    /// Like [`Outgoing::with_body`], but inserts `fields`, each followed by a comma, at the start of the body object.
    #[must_use]
    pub(crate) fn with_body_fields(
        head: Vec<u8>,
        fields: &str,
        body: Box<RawValue>,
        tail: &'static [u8],
    ) -> Self {
        let inner = body.get().trim_ascii_start().strip_prefix('{').map(str::trim_ascii_start);
        let Some(inner) = inner.filter(|_| !fields.is_empty()) else {
            return Self::with_body(head, body, tail);
        };
        let fields = if inner.starts_with('}') { fields.trim_end_matches(',') } else { fields };
        let skipped = body.get().len() - inner.len();
        let head = [&head, b"{".as_slice(), fields.as_bytes()].concat();
        if inner.bytes().any(|b| matches!(b, b'\n' | b'\r')) {
            let inner = inner.bytes().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { b });
            return Self::line(head.into_iter().chain(inner).chain(tail.iter().copied()).collect());
        }
        Self { head, body: Some(body), skipped, tail, guard: None }
    }

    /// Returns the line with an empty object in place of its separate body.
    pub(super) fn envelope(&self) -> Vec<u8> {
        let body: &[u8] = if self.body.is_some() { b"{}" } else { b"" };
        [&self.head, body, self.tail].concat()
    }

    /// Returns the separate body, if there is one, and the line's guard.
    pub(super) fn into_body(self) -> (Option<Box<RawValue>>, LineGuard) {
        (self.body, self.guard)
    }

    /// Sets the line's guard to this value.
    #[must_use]
    pub fn holding(mut self, guard: impl Send + 'static) -> Self {
        self.guard = Some(Box::new(guard));
        self
    }

    /// Sets the line's guard to a guard that was taken from another line.
    #[must_use]
    pub fn with_guard(mut self, guard: LineGuard) -> Self {
        self.guard = guard;
        self
    }

    /// Returns the length in bytes.
    #[must_use]
    pub fn length(&self) -> usize {
        self.parts().iter().map(|part| part.len()).sum()
    }

    /// Returns the bytes in order.
    pub fn bytes(&self) -> impl Iterator<Item = u8> {
        self.parts().into_iter().flatten().copied()
    }

    /// Returns the first `most` bytes, or fewer if the line is shorter.
    #[must_use]
    pub fn head_bytes(&self, max: usize) -> Vec<u8> {
        let mut head_bytes = Vec::with_capacity(max.min(self.length()));
        for part in self.parts() {
            head_bytes.extend_from_slice(part.get(..max - head_bytes.len()).unwrap_or(part));
        }
        head_bytes
    }

    fn parts(&self) -> [&[u8]; 3] {
        let body = self.body.as_ref().map_or("", |body| body.get()).as_bytes();
        [&self.head, body.get(self.skipped..).unwrap_or_default(), self.tail]
    }

    /// Returns the parts that remain after the first `written` bytes.
    pub(super) fn unwritten(&self, mut written: usize) -> impl Iterator<Item = &[u8]> {
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
    fn a_line_end_inside_a_body_becomes_a_space() {
        let line = Outgoing::with_body(b"{\"a\":".to_vec(), raw("[1,\r\n2]"), b"}\n");
        assert_eq!(line.bytes().collect::<Vec<_>>(), b"{\"a\":[1,  2]}\n");
    }

    #[test]
    fn our_fields_are_first_in_the_body() {
        let line = |body: &str| {
            let line = Outgoing::with_body_fields(b"{\"result\":".to_vec(), "\"a\":1,", raw(body), b"}\n");
            assert_eq!(line.length(), line.bytes().count());
            String::from_utf8(line.bytes().collect()).unwrap()
        };
        assert_eq!(line(r#"{"b": 2.0}"#), "{\"result\":{\"a\":1,\"b\": 2.0}}\n");
        assert_eq!(line("{ }"), "{\"result\":{\"a\":1}}\n");
        assert_eq!(line("{\n\"b\":\n2}"), "{\"result\":{\"a\":1,\"b\": 2}}\n");
        assert_eq!(line("[]"), "{\"result\":[]}\n");
    }
}
