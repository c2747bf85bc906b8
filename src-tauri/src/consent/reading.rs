//! The judgement whether all of what has to be read was in view. Whoever draws it measures, and decides nothing.
//!
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
}
