//! Computes the dialog's visibility from the windows on an X11 screen.
//!
//! - With a compositor, X11 does not report covered windows, so [`watch`] reads the stacking order.
//! - INVARIANT: in doubt, the dialog counts as covered, for example if there are too many windows or the dialog is not
//!   shown.
//! - Ignores windows of this process (menus, tooltips), windows that draw nothing, and the compositor's overlay.
//! - Compositors can draw over windows. They are trusted, like the rest of the desktop shell.

mod watch;

pub(super) use watch::OcclusionWatch;

use super::arming::InView;

/// Maximum number of windows above the dialog to check. With more windows, the dialog counts as covered.
const MAX_WINDOWS: usize = 2000;
/// Bits that are set only in ids assigned by the X server itself, such as the id of the compositor's overlay window.
const SERVER_IDS: u32 = 0xe000_0000;

/// Rectangle on the screen in pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Area {
    x: i32,
    y: i32,
    width: i32,
    height: i32,
}

/// Window that may be above the dialog.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UpperWindow {
    is_shown: bool,
    /// `true` if the window draws pixels, `false` if it only receives input.
    draws: bool,
    /// Screen areas that the window covers.
    areas: Vec<Area>,
}

impl Area {
    fn overlaps(self, other: Self) -> bool {
        let meet = |at: i32, length: i32, other_at: i32, other_length: i32| {
            at < other_at.saturating_add(other_length) && other_at < at.saturating_add(length)
        };
        let has_pixels = |area: Self| area.width > 0 && area.height > 0;
        has_pixels(self)
            && has_pixels(other)
            && meet(self.x, self.width, other.x, other.width)
            && meet(self.y, self.height, other.y, other.height)
    }

    /// Returns the parts of this area that are outside `other`.
    fn without(self, other: Self) -> Vec<Self> {
        if !self.overlaps(other) {
            return vec![self];
        }
        let (right, bottom) = (self.x + self.width, self.y + self.height);
        let top = other.y.clamp(self.y, bottom);
        let end = (other.y + other.height).clamp(self.y, bottom);
        let left_end = other.x.clamp(self.x, right);
        let right_start = (other.x + other.width).clamp(self.x, right);
        let parts = [
            Self { height: top - self.y, ..self },
            Self { y: end, height: bottom - end, ..self },
            Self { y: top, height: end - top, width: left_end - self.x, ..self },
            Self { y: top, height: end - top, x: right_start, width: right - right_start },
        ];
        parts.into_iter().filter(|part| part.width > 0 && part.height > 0).collect()
    }

    fn is_within(self, all: &[Self]) -> bool {
        let left = all.iter().fold(vec![self], |left, screen| {
            left.into_iter().flat_map(|part| part.without(*screen)).collect()
        });
        left.is_empty()
    }
}

/// Returns `true` if the window and the dialog belong to different X11 clients. `client_mask` selects the id bits that
/// identify the client.
fn is_foreign(id: u32, dialog: u32, client_mask: u32) -> bool {
    id & SERVER_IDS == 0 && id & !client_mask != dialog & !client_mask
}

/// Computes the visibility of the dialog, given the screens and the windows above it.
fn in_view(dialog: Area, screens: &[Area], windows: &[UpperWindow]) -> InView {
    let covers = |window: &UpperWindow| {
        window.is_shown && window.draws && window.areas.iter().any(|area| area.overlaps(dialog))
    };
    if windows.iter().any(covers) {
        InView::Covered
    } else if dialog.is_within(screens) {
        InView::Whole
    } else {
        InView::OffScreen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCREEN: Area = area(0, 0, 1280, 800);
    const DIALOG: Area = area(300, 200, 600, 400);

    const fn area(x: i32, y: i32, width: i32, height: i32) -> Area {
        Area { x, y, width, height }
    }

    fn window(areas: &[Area]) -> UpperWindow {
        UpperWindow { is_shown: true, draws: true, areas: areas.to_vec() }
    }

    #[test]
    fn a_visible_overlapping_window_above_covers_the_dialog() {
        let seen = |windows: &[UpperWindow]| in_view(DIALOG, &[SCREEN], windows);
        assert_eq!(seen(&[]), InView::Whole);
        for corner in [area(299, 199, 2, 2), area(899, 599, 1, 1), SCREEN, area(500, 300, 1, 1)] {
            assert_eq!(seen(&[window(&[corner])]), InView::Covered, "{corner:?}");
            let hidden = UpperWindow { is_shown: false, ..window(&[corner]) };
            let takes_input_alone = UpperWindow { draws: false, ..window(&[corner]) };
            assert_eq!(seen(&[hidden, takes_input_alone]), InView::Whole, "{corner:?}");
        }
        for beside in
            [area(0, 0, 300, 800), area(300, 600, 600, 10), area(900, 0, 9, 800), area(400, 300, 0, 5)]
        {
            assert_eq!(seen(&[window(&[beside])]), InView::Whole, "{beside:?}");
        }
        // A shaped window covers only its shape.
        assert_eq!(seen(&[window(&[area(0, 0, 10, 10), area(1200, 0, 10, 10)])]), InView::Whole);
        assert_eq!(seen(&[window(&[area(0, 0, 10, 10), area(400, 300, 10, 10)])]), InView::Covered);
    }

    #[test]
    fn detects_parts_outside_every_screen() {
        let seen = |screens: &[Area]| in_view(DIALOG, screens, &[]);
        assert_eq!(seen(&[area(0, 0, 899, 800)]), InView::OffScreen);
        assert_eq!(seen(&[area(0, 0, 500, 800), area(500, 0, 500, 800)]), InView::Whole, "on two screens");
        assert_eq!(seen(&[area(0, 0, 500, 800), area(500, 0, 500, 590)]), InView::OffScreen, "one is lower");
        assert_eq!(seen(&[SCREEN, SCREEN]), InView::Whole, "the same twice");
        assert_eq!(seen(&[]), InView::OffScreen);
    }

    #[test]
    fn windows_of_this_process_and_the_x_server_do_not_cover() {
        let mask = 0x001f_ffff;
        let dialog = 0x0240_0007;
        assert!(!is_foreign(0x0240_0123, dialog, mask), "our own menu");
        assert!(!is_foreign(0x4000_0001, dialog, mask), "the compositor's overlay");
        assert!(is_foreign(0x0260_0007, dialog, mask), "another program's");
    }
}
