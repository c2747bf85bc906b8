//! The widgets of the dialog, from top to bottom.
//!
//! - Whatever the text, the choices, what Allow will do, and the buttons stay on the screen: what is above them
//!   scrolls when it must.

use super::choices::Choices;
use super::rows;
use crate::consent::view::{ConsentView, PreviewView};
use gtk::prelude::*;
use gtk::{Align, Orientation, gdk, pango};
use std::sync::Once;

/// Height of an open expander.
const BLOCK_HEIGHT: i32 = 180;
/// Share of the screen that the part above the choices may take, in percent.
const SCREEN_SHARE: i32 = 48;

/// The style is the whole screen's, so it is added once and not by every dialog.
static STYLED: Once = Once::new();
const STYLE: &str = include_str!("style.css");
const ICON: &[u8] = include_bytes!("../../../../icons/128x128.png");

pub(super) struct Layout {
    pub(super) window: gtk::Dialog,
    /// The part above the choices, which may have to be scrolled.
    upper: gtk::ScrolledWindow,
    pub(super) choices: Choices,
    pub(super) outcome: gtk::Label,
    pub(super) note_toggle: gtk::ToggleButton,
    pub(super) note: gtk::Entry,
    pub(super) clock: gtk::Label,
    pub(super) more: gtk::Label,
    pub(super) deny: gtk::Button,
    pub(super) allow: gtk::Button,
}

impl Layout {
    pub(super) fn build(view: &ConsentView) -> Self {
        let window = window(&view.sentence());
        let choices = Choices::build(&view.choices);
        let outcome = rows::wrapped("", rows::WIDE);
        outcome.set_lines(3);
        outcome.set_ellipsize(pango::EllipsizeMode::End);
        outcome.style_context().add_class("ic-outcome");
        let note = note();

        let body = gtk::Box::new(Orientation::Vertical, 0);
        body.style_context().add_class("ic-body");
        if let Some(band) = view.band {
            body.pack_start(&rows::band(band), false, false, 0);
        }
        body.pack_start(&head(view), false, false, 0);
        body.pack_start(&rows::facts(&view.facts), false, false, 0);
        body.pack_start(&blocks(view), false, false, 0);

        let decision = gtk::Box::new(Orientation::Vertical, 0);
        decision.style_context().add_class("ic-decision");
        decision.pack_start(choices.widget(), false, false, 0);
        decision.pack_start(&outcome, false, false, 0);
        decision.pack_start(&note, false, false, 0);

        let note_toggle = gtk::ToggleButton::with_mnemonic("Deny with a _note");
        let deny = gtk::Button::with_mnemonic("_Deny");
        deny.style_context().add_class("ic-deny");
        let allow = gtk::Button::with_mnemonic("_Allow once");
        allow.style_context().add_class("ic-allow");
        allow.set_tooltip_text(Some("Can be pressed once you had time to read. Click it, or press Alt+A."));
        let (clock, more) = (gtk::Label::new(None), gtk::Label::new(None));
        let foot = foot(&clock, &more, &note_toggle, &deny, &allow);

        let area = window.content_area();
        area.set_spacing(0);
        let upper = scroller(&body);
        area.pack_start(&upper, true, true, 0);
        area.pack_start(&decision, false, false, 0);
        area.pack_start(&foot, false, false, 0);
        deny.set_can_default(true);
        window.set_default(Some(&deny));
        Self { window, upper, choices, outcome, note_toggle, note, clock, more, deny, allow }
    }
}

impl Layout {
    /// Returns `true` if the end of what stands above the choices is in view.
    pub(super) fn shows_the_end(&self) -> bool {
        let at = self.upper.vadjustment();
        // Before it is laid out it has no height.
        at.page_size() > 1.0 && at.value() + at.page_size() >= at.upper() - 1.0
    }

    /// From now on whoever goes through the controls by keyboard sees the one that has the focus. Not before it is shown:
    /// it begins at its top, and not at its first control.
    pub(super) fn follow_the_focus(&self) {
        if let Some(body) =
            self.upper.child().and_then(|viewport| viewport.downcast::<gtk::Viewport>().ok()?.child())
            && let Ok(body) = body.downcast::<gtk::Box>()
        {
            body.set_focus_vadjustment(&self.upper.vadjustment());
        }
    }

    /// Scrolls what stands above the choices by so many pages.
    pub(super) fn scroll(&self, pages: f64) {
        let at = self.upper.vadjustment();
        at.set_value(at.value() + pages * at.page_size() * 0.9);
    }
}

fn window(sentence: &str) -> gtk::Dialog {
    let window = gtk::Dialog::new();
    let title = format!("IronCurtain: {sentence}");
    window.set_title(&title);
    window.set_resizable(false);
    window.set_position(gtk::WindowPosition::CenterAlways);
    window.set_keep_above(true);
    window.stick();
    window.set_focus_on_map(false);
    window.set_urgency_hint(true);
    window.set_type_hint(gdk::WindowTypeHint::Dialog);
    window.add_events(gdk::EventMask::VISIBILITY_NOTIFY_MASK | gdk::EventMask::POINTER_MOTION_MASK);
    window.style_context().add_class("ic-consent");
    STYLED.call_once(style);
    let icon = picture(48);
    window.set_icon(icon.as_ref());
    rows::describe(&window, &title, "A question from an agent. Deny is the default.");
    window
}

fn head(view: &ConsentView) -> gtk::Box {
    let words = gtk::Box::new(Orientation::Vertical, 8);
    let headline = rows::spans(&view.headline, rows::HEADLINE);
    headline.style_context().add_class("ic-headline");
    words.pack_start(&headline, false, false, 0);
    words.pack_start(&rows::lines(&view.lines, "What it would do"), false, false, 0);
    if !view.with.is_empty() {
        words.pack_start(&rows::lines(&view.with, "What it says with it"), false, false, 0);
    }
    for sentence in &view.also {
        let label = rows::wrapped(sentence, rows::HEADLINE);
        label.style_context().add_class("ic-also");
        words.pack_start(&label, false, false, 0);
    }
    let head = gtk::Box::new(Orientation::Horizontal, 16);
    let image = gtk::Image::from_pixbuf(picture(48).as_ref());
    image.set_valign(Align::Start);
    rows::describe(&image, "IronCurtain", "");
    head.pack_start(&image, false, false, 0);
    head.pack_start(&words, true, true, 0);
    head.style_context().add_class("ic-head");
    head
}

fn blocks(view: &ConsentView) -> gtk::Box {
    let blocks = gtk::Box::new(Orientation::Vertical, 4);
    blocks.style_context().add_class("ic-blocks");
    if let Some(PreviewView { title, text, diff }) = &view.preview {
        blocks.pack_start(&rows::block(title, text, *diff, BLOCK_HEIGHT), false, false, 0);
    }
    blocks.pack_start(&rows::block("All details", &view.details, false, BLOCK_HEIGHT), false, false, 0);
    blocks
}

fn note() -> gtk::Entry {
    let note = gtk::Entry::new();
    note.set_placeholder_text(Some("Tell the agent why, or what to do instead"));
    note.set_max_length(500);
    note.set_activates_default(true);
    note.set_no_show_all(true);
    note.style_context().add_class("ic-note");
    rows::describe(&note, "Note for the agent", "The agent reads this when you press Deny.");
    note
}

fn foot(
    clock: &gtk::Label,
    more: &gtk::Label,
    note: &gtk::ToggleButton,
    deny: &gtk::Button,
    allow: &gtk::Button,
) -> gtk::Box {
    clock.set_xalign(0.0);
    clock.style_context().add_class("ic-clock");
    more.set_xalign(0.0);
    more.style_context().add_class("ic-more");
    let left = gtk::Box::new(Orientation::Vertical, 0);
    left.set_valign(Align::Center);
    left.pack_start(clock, false, false, 0);
    left.pack_start(more, false, false, 0);
    let foot = gtk::Box::new(Orientation::Horizontal, 8);
    foot.style_context().add_class("ic-foot");
    foot.pack_start(&left, true, true, 0);
    foot.pack_start(note, false, false, 0);
    foot.pack_start(deny, false, false, 0);
    foot.pack_start(allow, false, false, 0);
    foot
}

fn scroller(body: &gtk::Box) -> gtk::ScrolledWindow {
    let scroller = gtk::ScrolledWindow::builder()
        .hscrollbar_policy(gtk::PolicyType::Never)
        .vscrollbar_policy(gtk::PolicyType::Automatic)
        .overlay_scrolling(false)
        .propagate_natural_height(true)
        .max_content_height(screen_height() * SCREEN_SHARE / 100)
        .build();
    // A viewport gives its child the least height unless told otherwise, which would squeeze the list of paths.
    let viewport = gtk::Viewport::new(gtk::Adjustment::NONE, gtk::Adjustment::NONE);
    viewport.set_vscroll_policy(gtk::ScrollablePolicy::Natural);
    viewport.set_shadow_type(gtk::ShadowType::None);
    viewport.add(body);
    scroller.add(&viewport);
    scroller
}

/// Height of the smallest screen, since the dialog may open on any.
fn screen_height() -> i32 {
    let display = gdk::Display::default();
    let heights = display.iter().flat_map(|display| {
        (0..display.n_monitors())
            .filter_map(|n| display.monitor(n))
            .map(|monitor| monitor.workarea().height())
    });
    heights.filter(|height| *height > 0).min().unwrap_or(720)
}

fn picture(size: i32) -> Option<gtk::gdk_pixbuf::Pixbuf> {
    use gtk::gdk_pixbuf::{InterpType, PixbufLoader, prelude::*};
    let loader = PixbufLoader::new();
    loader.write(ICON).ok()?;
    loader.close().ok()?;
    loader.pixbuf()?.scale_simple(size, size, InterpType::Bilinear)
}

fn style() {
    let provider = gtk::CssProvider::new();
    match provider.load_from_data(STYLE.as_bytes()) {
        Ok(()) => {
            if let Some(screen) = gdk::Screen::default() {
                let priority = gtk::STYLE_PROVIDER_PRIORITY_APPLICATION;
                gtk::StyleContext::add_provider_for_screen(&screen, &provider, priority);
            }
        }
        Err(error) => tracing::warn!(%error, "the dialog's style could not be read"),
    }
}
