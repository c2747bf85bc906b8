//! Determines from measurements whether all required text has been in view.
//!
//! - Each scrolling part must be read to its end: the question, the text blocks and the effect of Allow.
//! - Text that has been in view counts as read until it grows or its visible area shrinks.

/// Height of a required text and of its visible area.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) height: f64,
    pub(super) room: f64,
}

/// Extent of a part when all of its text had been in view, or `None` if some text has not been in view yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadExtent(Option<Extent>);

impl ReadExtent {
    /// Records a measurement at the scroll offset `above`. Returns `true` if everything has been in view, or `None` if
    /// the layout is unknown.
    pub(super) fn record(&mut self, extent: Extent, above: f64) -> Option<bool> {
        let Extent { height, room } = extent;
        if !(height > 1.0 && room > 1.0) {
            return None;
        }
        let still = |read: &Extent| height <= read.height && room >= read.room;
        let is_in_view = above + room >= height - 1.0;
        self.0 = if is_in_view { Some(extent) } else { self.0.filter(still) };
        Some(self.0.is_some())
    }

    /// Returns `true` if everything had been in view by the last measurement.
    pub(super) fn is_read(&self) -> bool {
        self.0.is_some()
    }
}

/// Reading progress of each part.
#[derive(Debug, Clone, Default)]
pub(super) struct ReadProgress(Vec<ReadExtent>);

impl ReadProgress {
    /// Records a measurement of each part, in order. `None` leaves a part's progress unchanged. Returns `true` if all
    /// parts have been read, or `None` if the first part, the question, is not laid out yet.
    pub(super) fn record(&mut self, measures: &[Option<(Extent, f64)>]) -> Option<bool> {
        self.0.resize_with(measures.len(), ReadExtent::default);
        let mut is_laid_out = false;
        for (at, (part, measure)) in self.0.iter_mut().zip(measures).enumerate() {
            let seen = measure.and_then(|(extent, above)| part.record(extent, above));
            is_laid_out |= at == 0 && seen.is_some();
        }
        is_laid_out.then(|| self.0.iter().all(ReadExtent::is_read))
    }

    /// Returns the index of the first unread part.
    pub(super) fn unread(&self) -> Option<usize> {
        self.0.iter().position(|part| !part.is_read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_read_until_it_grows_or_has_less_space() {
        let mut reading = ReadExtent::default();
        let mut record = |height, room, above| reading.record(Extent { height, room }, above);
        assert_eq!(record(500.0, 200.0, 0.0), Some(false));
        assert_eq!(record(500.0, 200.0, 298.0), Some(false));
        assert_eq!(record(500.0, 200.0, 299.5), Some(true), "its end is in view");
        assert_eq!(record(500.0, 200.0, 0.0), Some(true), "and was");
        assert_eq!(record(480.0, 240.0, 0.0), Some(true), "less of it, more room");
        assert_eq!(record(520.0, 240.0, 0.0), Some(false), "there is more of it");
        assert_eq!(record(480.0, 240.0, 0.0), Some(false), "which was not read since");
        for nothing in [0.0, -5.0, f64::NAN] {
            assert_eq!(record(nothing, 240.0, 0.0), None);
            assert_eq!(record(480.0, nothing, 900.0), None);
        }
        assert_eq!(record(480.0, 240.0, f64::NAN), Some(false));
    }

    #[test]
    fn every_part_must_be_read_and_a_collapsed_one_keeps_its_state() {
        let whole = Some((Extent { height: 100.0, room: 200.0 }, 0.0));
        let long = |above| Some((Extent { height: 900.0, room: 180.0 }, above));
        let mut reading = ReadProgress::default();
        assert_eq!(reading.record(&[None, whole]), None, "nothing is laid out");
        assert_eq!(reading.record(&[whole, long(0.0)]), Some(false));
        assert_eq!(reading.unread(), Some(1));
        assert_eq!(reading.record(&[whole, None]), Some(false), "folded before it was read");
        assert_eq!(reading.record(&[whole, long(719.5)]), Some(true));
        assert_eq!(
            (reading.record(&[whole, None]), reading.unread()),
            (Some(true), None),
            "folded afterwards"
        );
        assert_eq!(reading.record(&[whole, long(0.0), long(0.0)]), Some(false), "another part");
    }
}
