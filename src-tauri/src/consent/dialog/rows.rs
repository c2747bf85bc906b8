//! Builds labels, rows for paths and facts, and text blocks.
//!
//! - All text is plain text with separate attributes. It is never parsed as markup.

use super::long_words;
use super::palette::{self, Colour, Palette};
use crate::consent::read_progress::Extent;
use crate::consent::view::{Fact, HOW, LineView, Span, Tone};
use gtk::glib;
use gtk::prelude::*;
use gtk::{Align, Orientation, gdk, pango};

/// Width and minimum width of labels in characters. A scrolled window computes heights from minimum widths, so a
/// smaller minimum would give the label the height of a narrow column.
pub(super) const WIDE: i32 = 64;
pub(super) const HEADLINE: i32 = 42;
const FACT: i32 = 56;
const PATH: i32 = 52;
/// Width in characters of the note beside a path.
const NOTE: i32 = 14;
const NOTE_CHARS: usize = 14;
const CAPTION: i32 = 6;
/// Minimum width of a label in characters.
const MIN: i32 = 12;
/// Maximum width of a choice's label in characters. A longer label is shortened in the middle, and shown in full in
/// the sentence below.
const LABEL_CHARS: i32 = 56;

/// Horizontal space in pixels needed beside the text: borders, a scroll bar and the window manager's frame.
const MARGINS: i32 = 110;

/// Returns `chars`, or fewer if that many characters do not fit on the screen. All labels use the same unit.
pub(super) fn fitting(chars: i32) -> i32 {
    let context = gtk::Label::new(None).pango_context();
    let mut font = context.font_description().unwrap_or_default();
    // The widest text is the bold sentence about the effect.
    font.set_weight(pango::Weight::Semibold);
    let metrics = context.metrics(Some(&font), None);
    let one = metrics.approximate_char_width().max(metrics.approximate_digit_width()).max(1);
    let room = (screen_size().0 - MARGINS).saturating_mul(pango::SCALE) / one;
    if room < WIDE { (chars * room / WIDE).max(MIN) } else { chars }
}

/// Returns the smallest width and height of all screens, because the dialog can open on any of them.
pub(super) fn screen_size() -> (i32, i32) {
    let display = gdk::Display::default();
    let monitors = display.iter().flat_map(|display| {
        (0..display.n_monitors()).filter_map(|n| display.monitor(n)).map(|monitor| monitor.workarea())
    });
    let sizes = monitors
        .map(|area| (area.width(), area.height()))
        .filter(|(width, height)| *width > 0 && *height > 0);
    sizes.reduce(|one, other| (one.0.min(other.0), one.1.min(other.1))).unwrap_or((1024, 720))
}

/// Sets a control's accessible name and description.
pub(super) fn describe(widget: &impl IsA<gtk::Widget>, name: &str, description: &str) {
    if let Some(accessible) = widget.accessible() {
        accessible.set_name(name);
        accessible.set_description(description);
    }
}

/// Makes screen readers announce a message, if the toolkit supports it.
pub(super) fn announce(widget: &impl IsA<gtk::Widget>, text: &str) {
    if let Some(accessible) = widget.accessible()
        && glib::subclass::SignalId::lookup("announcement", accessible.type_()).is_some()
    {
        accessible.emit_by_name::<()>("announcement", &[&text]);
    }
}

/// Creates a label that wraps its text, within words if necessary.
pub(super) fn wrapped(text: &str, chars: i32) -> gtk::Label {
    let label = gtk::Label::new(None);
    label.set_line_wrap(true);
    label.set_line_wrap_mode(pango::WrapMode::WordChar);
    set_text(&label, text, &pango::AttrList::new());
    let chars = fitting(chars);
    label.set_width_chars(chars);
    label.set_max_width_chars(chars);
    label.set_xalign(0.0);
    label.set_halign(Align::Fill);
    label
}

/// Creates a label from spans of different tones.
pub(super) fn spans(spans: &[Span], chars: i32) -> gtk::Label {
    let label = wrapped("", chars);
    let palette = palette::of(is_dark());
    let attributes = pango::AttrList::new();
    let mut text = String::new();
    for span in spans {
        let start = text.len();
        text.push_str(&span.text);
        for mut attribute in tone(span.tone, palette) {
            attribute.set_start_index(u32::try_from(start).unwrap_or(u32::MAX));
            attribute.set_end_index(u32::try_from(text.len()).unwrap_or(u32::MAX));
            attributes.insert(attribute);
        }
    }
    set_text(&label, &text, &attributes);
    label
}

/// Creates a list with a row for each line.
pub(super) fn lines(lines: &[LineView], name: &str) -> gtk::Box {
    let list = gtk::Box::new(Orientation::Vertical, 4);
    for one in lines {
        list.pack_start(&line(one), false, false, 0);
    }
    list.style_context().add_class("ic-paths");
    describe(&list, name, "");
    list
}

/// Creates a prominent warning across the width of the dialog.
pub(super) fn band(text: &str) -> gtk::Label {
    let label = wrapped(text, WIDE);
    label.style_context().add_class("ic-band");
    label
}

/// Creates a radio button.
pub(super) fn radio(text: &str, group: Option<&gtk::RadioButton>) -> gtk::RadioButton {
    let label = gtk::Label::new(None);
    label.set_text(text);
    label.set_ellipsize(pango::EllipsizeMode::Middle);
    label.set_max_width_chars(fitting(LABEL_CHARS));
    label.set_xalign(0.0);
    let radio = gtk::RadioButton::new();
    if let Some(group) = group {
        radio.join_group(Some(group));
    }
    radio.add(&label);
    describe(&radio, text, "");
    radio
}

/// Creates a row for each fact. The row about the server shows its icon.
pub(super) fn facts(facts: &[Fact], server: &impl IsA<gtk::Widget>) -> gtk::Box {
    let list = gtk::Box::new(Orientation::Vertical, 6);
    list.style_context().add_class("ic-facts");
    for fact in facts {
        let lines = gtk::Box::new(Orientation::Vertical, 2);
        for line in &fact.lines {
            let label = spans(line, FACT);
            label.set_selectable(true);
            label.set_can_focus(false);
            lines.pack_start(&label, false, false, 0);
        }
        let content = gtk::Box::new(Orientation::Horizontal, 6);
        if fact.label == HOW {
            content.pack_start(server, false, false, 0);
        }
        content.pack_start(&lines, true, true, 0);
        list.pack_start(&captioned(fact.label, &content), false, false, 0);
    }
    list
}

/// Creates a row with a caption on the left. Uses a box, because screen readers read a grid in reverse order.
pub(super) fn captioned(name: &str, content: &impl IsA<gtk::Widget>) -> gtk::Box {
    let caption = gtk::Label::new(Some(name));
    caption.set_width_chars(CAPTION);
    caption.set_xalign(0.0);
    caption.set_valign(Align::Start);
    caption.style_context().add_class("ic-quiet");
    let row = gtk::Box::new(Orientation::Horizontal, 8);
    row.pack_start(&caption, false, false, 0);
    row.pack_start(content, true, true, 0);
    row
}

/// Expander with plain text, as high as its text up to a maximum height.
#[derive(Clone)]
pub(super) struct Block {
    pub(super) expander: gtk::Expander,
    scroller: gtk::ScrolledWindow,
    view: gtk::TextView,
}

/// Creates a collapsed block. Its text is laid out when the user first expands the block.
pub(super) fn block(title: &str, text: &str, diff: bool, height: i32) -> Block {
    let view = gtk::TextView::new();
    view.set_editable(false);
    view.set_cursor_visible(false);
    view.set_accepts_tab(false);
    view.set_monospace(true);
    view.set_wrap_mode(gtk::WrapMode::WordChar);
    view.set_left_margin(8);
    view.set_right_margin(8);
    view.set_top_margin(6);
    view.set_bottom_margin(6);
    describe(&view, title, "");
    let scroller = gtk::ScrolledWindow::builder()
        .hscrollbar_policy(gtk::PolicyType::Never)
        .overlay_scrolling(false)
        .propagate_natural_height(true)
        .max_content_height(height)
        .build();
    scroller.add(&view);
    scroller.style_context().add_class("ic-block");
    let expander = gtk::Expander::new(Some(title));
    expander.add(&scroller);
    let (text, shown) = (text.to_owned(), view.clone());
    expander.connect_expanded_notify(move |expander| {
        if let Some(buffer) = shown.buffer()
            && expander.is_expanded()
            && buffer.char_count() == 0
        {
            long_words::fill(&buffer, &text);
            if diff {
                colour(&buffer, palette::of(is_dark()));
            }
        }
    });
    Block { expander, scroller, view }
}

impl Block {
    /// Returns the adjustment of the block's scroll bar.
    pub(super) fn adjustment(&self) -> gtk::Adjustment {
        self.scroller.vadjustment()
    }

    /// Returns the text's extent and the scroll offset, or `None` if the block is collapsed or not laid out.
    ///
    /// The toolkit lays out long text in steps and reports a growing height, so a height that is too small for all
    /// lines is not final.
    pub(super) fn extent(&self) -> Option<(Extent, f64)> {
        let buffer = self.view.buffer()?;
        if !self.expander.is_expanded() || buffer.char_count() == 0 || !self.view.is_mapped() {
            return None;
        }
        let metrics = self.view.pango_context().metrics(None, None);
        let line = (metrics.ascent() + metrics.descent()) / pango::SCALE;
        let least = 0.75 * f64::from(line.max(1)) * f64::from(buffer.line_count());
        let at = self.adjustment();
        Some((Extent { height: at.upper().max(least), room: at.page_size() }, at.value()))
    }
}

fn line(line: &LineView) -> gtk::Box {
    let row = gtk::Box::new(Orientation::Vertical, 1);
    if !line.words.is_empty() {
        // Short notes, such as sizes, are aligned in a column. A longer note follows the text.
        let is_short = |note: &&String| note.chars().count() <= NOTE_CHARS;
        let (beside, behind) =
            (line.note.as_ref().filter(is_short), line.note.as_ref().filter(|note| !is_short(note)));
        let mut words = line.words.clone();
        words.extend(behind.map(|note| Span { text: format!(" ({note})"), tone: Tone::Quiet }));
        let label = spans(&words, if beside.is_some() { PATH - NOTE } else { PATH });
        label.set_valign(Align::Start);
        label.set_selectable(true);
        label.set_can_focus(false);
        label.style_context().add_class("ic-path");
        let words = gtk::Box::new(Orientation::Horizontal, 12);
        words.pack_start(&label, true, true, 0);
        if let Some(note) = beside {
            let note = wrapped(note, NOTE);
            note.set_xalign(1.0);
            note.set_justify(gtk::Justification::Right);
            note.set_valign(Align::Start);
            note.style_context().add_class("ic-quiet");
            words.pack_start(&note, false, false, 0);
        }
        row.pack_start(&words, false, false, 0);
    }
    for note in &line.notes {
        let note = spans(std::slice::from_ref(note), PATH);
        note.style_context().add_class("ic-path-note");
        row.pack_start(&note, false, false, 0);
    }
    row
}

/// Sets the text of a label that wraps, with its attributes. Disables hyphenation, because a hyphen would look like part
/// of a path.
pub(super) fn set_text(label: &gtk::Label, text: &str, attributes: &pango::AttrList) {
    attributes.insert(pango::AttrInt::new_insert_hyphens(false));
    long_words::divide(text, attributes);
    label.set_text(text);
    label.set_attributes(Some(attributes));
}

fn tone(tone: Tone, palette: Palette) -> Vec<pango::Attribute> {
    let bold = || pango::AttrInt::new_weight(pango::Weight::Semibold).into();
    let colour = |(red, green, blue): Colour| {
        let wide = |part: u8| u16::from(part) * 257;
        pango::AttrColor::new_foreground(wide(red), wide(green), wide(blue)).into()
    };
    match tone {
        Tone::Plain => vec![],
        Tone::Strong => vec![bold()],
        Tone::Quiet => vec![colour(palette.quiet)],
        Tone::Warn => vec![bold(), colour(palette.warn)],
        Tone::Danger => vec![bold(), colour(palette.danger)],
    }
}

/// Colours added and removed lines, in addition to their signs `+` and `-`.
fn colour(buffer: &gtk::TextBuffer, palette: Palette) {
    let Some(table) = buffer.tag_table() else { return };
    let [added, removed] = [palette.added, palette.removed].map(|(red, green, blue)| {
        let tag = gtk::TextTag::builder().foreground(format!("#{red:02x}{green:02x}{blue:02x}")).build();
        table.add(&tag);
        tag
    });
    for number in 0..buffer.line_count() {
        let mut end = buffer.iter_at_line(number);
        let start = end;
        let tag = match start.char() {
            Some('+') => &added,
            Some('-') => &removed,
            Some(_) | None => continue,
        };
        end.forward_to_line_end();
        buffer.apply_tag(tag, &start, &end);
    }
}

/// Returns `true` if the theme is dark. Looks up the text colour of a window that is not created.
pub(super) fn is_dark() -> bool {
    let path = gtk::WidgetPath::new();
    path.append_type(gtk::Window::static_type());
    let style = gtk::StyleContext::new();
    style.set_path(&path);
    style.add_class("background");
    let ink = style.color(gtk::StateFlags::NORMAL);
    ink.red() + ink.green() + ink.blue() > 1.5
}
