//! The judgement whether all of what has to be read was in view. Whoever draws it measures, and decides nothing.
//!
//! - Every part that scrolls has to be read to its end: the question itself, each text of its own, and what Allow will do.
//! - Text that was in view counts as read until there is more of it, or less room.

/// The height of what has to be read, and of the room that it is seen in.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Extent {
    pub(super) height: f64,
    pub(super) room: f64,
}

/// The extent of what was read, once all of it was in view.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReadExtent(Option<Extent>);

impl ReadExtent {
    /// Takes in a measure, with the height that lies above the room. Returns `true` if all of it was in view by now; nothing
    /// where nothing is laid out yet.
    pub(super) fn look(&mut self, extent: Extent, above: f64) -> Option<bool> {
        let Extent { height, room } = extent;
        if !(height > 1.0 && room > 1.0) {
            return None;
        }
        let still = |read: &Extent| height <= read.height && room >= read.room;
        let is_in_view = above + room >= height - 1.0;
        self.0 = if is_in_view { Some(extent) } else { self.0.filter(still) };
        Some(self.0.is_some())
    }

    /// Returns `true` if all of it was in view when it was last measured.
    pub(super) fn is_read(&self) -> bool {
        self.0.is_some()
    }
}

/// Everything that has to be read, part by part.
#[derive(Debug, Clone, Default)]
pub(super) struct Reading(Vec<ReadExtent>);

impl Reading {
    /// Takes in a measure of each part, in their order; nothing of one that is not laid out, which keeps what it was. Returns
    /// `true` if all of them were read; nothing where the first, the question itself, is not laid out yet.
    pub(super) fn look(&mut self, measures: &[Option<(Extent, f64)>]) -> Option<bool> {
        self.0.resize_with(measures.len(), ReadExtent::default);
        let mut is_laid_out = false;
        for (at, (part, measure)) in self.0.iter_mut().zip(measures).enumerate() {
            let seen = measure.and_then(|(extent, above)| part.look(extent, above));
            is_laid_out |= at == 0 && seen.is_some();
        }
        is_laid_out.then(|| self.0.iter().all(ReadExtent::is_read))
    }

    /// The first part that was not read to its end.
    pub(super) fn unread(&self) -> Option<usize> {
        self.0.iter().position(|part| !part.is_read())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_in_view_counts_until_there_is_more_of_it_or_less_room() {
        let mut reading = ReadExtent::default();
        let mut look = |height, room, above| reading.look(Extent { height, room }, above);
        assert_eq!(look(500.0, 200.0, 0.0), Some(false));
        assert_eq!(look(500.0, 200.0, 298.0), Some(false));
        assert_eq!(look(500.0, 200.0, 299.5), Some(true), "its end is in view");
        assert_eq!(look(500.0, 200.0, 0.0), Some(true), "and was");
        assert_eq!(look(480.0, 240.0, 0.0), Some(true), "less of it, more room");
        assert_eq!(look(520.0, 240.0, 0.0), Some(false), "there is more of it");
        assert_eq!(look(480.0, 240.0, 0.0), Some(false), "which was not read since");
        for nothing in [0.0, -5.0, f64::NAN] {
            assert_eq!(look(nothing, 240.0, 0.0), None);
            assert_eq!(look(480.0, nothing, 900.0), None);
        }
        assert_eq!(look(480.0, 240.0, f64::NAN), Some(false));
    }

    #[test]
    fn every_part_has_to_be_read_and_one_that_is_folded_keeps_what_it_was() {
        let whole = Some((Extent { height: 100.0, room: 200.0 }, 0.0));
        let long = |above| Some((Extent { height: 900.0, room: 180.0 }, above));
        let mut reading = Reading::default();
        assert_eq!(reading.look(&[None, whole]), None, "nothing is laid out");
        assert_eq!(reading.look(&[whole, long(0.0)]), Some(false));
        assert_eq!(reading.unread(), Some(1));
        assert_eq!(reading.look(&[whole, None]), Some(false), "folded before it was read");
        assert_eq!(reading.look(&[whole, long(719.5)]), Some(true));
        assert_eq!((reading.look(&[whole, None]), reading.unread()), (Some(true), None), "folded afterwards");
        assert_eq!(reading.look(&[whole, long(0.0), long(0.0)]), Some(false), "another part");
    }
}
