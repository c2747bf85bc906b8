//! Colours of the dialog, for light and dark desktops.
//!
//! - Inactive windows use the same colours, so that the dialog is readable before the user clicks it.
//! - INVARIANT: the contrast is at least 7:1 for sentences and at least 4.5:1 for other text. A test verifies this.

/// Red, green and blue component.
pub(super) type Colour = (u8, u8, u8);

/// Colours for a light or a dark desktop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Palette {
    ground: Colour,
    /// Background of buttons and text fields.
    field: Colour,
    edge: Colour,
    ink: Colour,
    pub(super) quiet: Colour,
    pub(super) danger: Colour,
    /// Amber, for warnings.
    pub(super) warn: Colour,
    pub(super) added: Colour,
    pub(super) removed: Colour,
}

/// Background of the default button and of the warning about an unsandboxed server, both with white text.
const DENY: Colour = (0x34, 0x48, 0x92);
const BAND: Colour = (0x9c, 0x12, 0x12);
const WHITE: Colour = (0xff, 0xff, 0xff);

const LIGHT: Palette = Palette {
    ground: (0xfa, 0xfa, 0xfa),
    field: (0xff, 0xff, 0xff),
    edge: (0x8c, 0x90, 0x96),
    ink: (0x1d, 0x1f, 0x22),
    quiet: (0x55, 0x5a, 0x61),
    danger: (0x9c, 0x12, 0x12),
    warn: (0x70, 0x43, 0x00),
    added: (0x0b, 0x5c, 0x33),
    removed: (0x9c, 0x12, 0x12),
};

const DARK: Palette = Palette {
    ground: (0x24, 0x25, 0x28),
    field: (0x1a, 0x1b, 0x1d),
    edge: (0x7c, 0x80, 0x88),
    ink: (0xf2, 0xf2, 0xf3),
    quiet: (0xb4, 0xb8, 0xbf),
    danger: (0xff, 0xb0, 0xa8),
    warn: (0xff, 0xc9, 0x5c),
    added: (0x7e, 0xe2, 0xa8),
    removed: (0xff, 0xb0, 0xa8),
};

/// Returns the colours for a dark or a light desktop.
pub(super) fn of(dark: bool) -> Palette {
    if dark { DARK } else { LIGHT }
}

impl Palette {
    /// Returns the CSS colour definitions.
    pub(super) fn definitions(self) -> String {
        let Self { ground, field, edge, ink, quiet, .. } = self;
        let named = [
            ("ground", ground),
            ("field", field),
            ("edge", edge),
            ("ink", ink),
            ("quiet", quiet),
            ("deny", DENY),
            ("band", BAND),
            ("white", WHITE),
        ];
        named.map(|(name, (r, g, b))| format!("@define-color ic_{name} #{r:02x}{g:02x}{b:02x};\n")).concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contrast_is_at_least_7_for_sentences_and_4_5_for_other_text() {
        for palette in [LIGHT, DARK] {
            let Palette { ground, field, edge, ink, quiet, danger, warn, added, removed } = palette;
            for (text, on, least) in [
                (ink, ground, 7.0),
                (ink, field, 7.0),
                (WHITE, BAND, 7.0),
                (danger, ground, 7.0),
                (warn, ground, 7.0),
                (WHITE, DENY, 4.5),
                (quiet, ground, 4.5),
                (quiet, field, 4.5),
                (added, field, 4.5),
                (removed, field, 4.5),
                (edge, ground, 3.0),
                (edge, field, 3.0),
            ] {
                let contrast = contrast(text, on);
                assert!(contrast >= least, "{text:x?} on {on:x?} is {contrast:.2}");
            }
        }
    }

    /// Computes the WCAG 2 contrast ratio.
    fn contrast(one: Colour, other: Colour) -> f64 {
        let part = |value: u8| {
            let value = f64::from(value) / 255.0;
            if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
        };
        let light = |(r, g, b): Colour| 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
        let (one, other) = (light(one), light(other));
        (one.max(other) + 0.05) / (one.min(other) + 0.05)
    }
}
