//! Builds the dialog's widgets, from top to bottom.
//!
//! - The choices, the effect of Allow and the buttons are always on the screen. The part above them scrolls if
//!   necessary.

mod scrolling;

use super::allow::Allow;
use super::batch_rows::Ticks;
use super::choices::Choices;
use super::denials::Denials;
use super::rows::Block;
use super::{icons, palette, rows};
use crate::consent::clock::format_waiting;
use crate::consent::hint;
use crate::consent::view::{ConsentView, TextBlock};
use gtk::prelude::*;
use gtk::{Align, Orientation, gdk};
use ironcurtain_visible as visible;
use std::cell::OnceCell;
use std::time::Duration;

/// Height of an expanded text block in pixels.
const BLOCK_HEIGHT: i32 = 180;
/// Width of the countdown in characters if text is large. Otherwise, it is as wide as its text.
const NARROW: i32 = 14;
/// Maximum length of the window title in characters.
const TITLE_CHARS: usize = 200;
/// Maximum height in pixels of the text about the effect before it scrolls.
const OUTCOME_HEIGHT: i32 = 96;

thread_local! {
    /// Style provider, installed only once because it applies to the whole screen.
    static STYLED: OnceCell<gtk::CssProvider> = const { OnceCell::new() };
}
const STYLE: &str = include_str!("style.css");
const ICON: &[u8] = include_bytes!("../../../../icons/128x128.png");

pub(super) struct Layout {
    pub(super) window: gtk::Dialog,
    /// Container of all required text, at the top of the scrolling part.
    required: gtk::Box,
    /// Text blocks in `required` that have their own scroll bars.
    blocks: Vec<Block>,
    /// Scrolling part above the choices.
    pub(super) upper: gtk::ScrolledWindow,
    pub(super) choices: Choices,
    /// Calls of a batch, with their tick boxes.
    pub(super) ticks: Ticks,
    pub(super) outcome: gtk::Label,
    /// Scrolling container of the text about the effect. The user must read this text as well.
    outcome_room: gtk::ScrolledWindow,
    pub(super) note_toggle: gtk::ToggleButton,
    pub(super) note: gtk::Entry,
    /// Note for the agent, with its caption.
    pub(super) note_row: gtk::Box,
    pub(super) denials: Denials,
    pub(super) clock: gtk::Label,
    more: gtk::Label,
    /// Button that shows the agent's pending questions together or one by one.
    pub(super) together: gtk::Button,
    /// Column with the countdown and, if several questions can be shown together, the `together` button.
    waiting: gtk::Box,
    pub(super) one_by_one: gtk::Button,
    pub(super) deny: gtk::Button,
    pub(super) allow: Allow,
    buttons: gtk::Box,
    /// Container of the controls for allowing and denying. It scrolls on small screens.
    lower: gtk::ScrolledWindow,
    choosing: gtk::Box,
}

impl Layout {
    pub(super) fn build(view: &ConsentView) -> Self {
        let window = window(&view.sentence());
        let choices = Choices::build(&view.choices);
        let outcome = rows::wrapped("", rows::WIDE);
        outcome.style_context().add_class("ic-outcome");
        let (note, note_row) = note();

        let body = gtk::Box::new(Orientation::Vertical, 0);
        body.style_context().add_class("ic-body");
        let ticks = Ticks::build(&view.calls);
        let (required, mut blocks) = required(view, &ticks);
        blocks.extend(ticks.blocks.iter().cloned());
        body.pack_start(&required, false, false, 0);
        body.pack_start(
            &rows::block("All details", &view.details, false, BLOCK_HEIGHT).expander,
            false,
            false,
            0,
        );

        let choosing = gtk::Box::new(Orientation::Vertical, 0);
        if view.calls.is_empty() {
            choosing.pack_start(choices.widget(), false, false, 0);
        }
        choosing.pack_start(&note_row, false, false, 0);
        let denials = Denials::build(&view.denial);
        choosing.pack_start(denials.widget(), false, false, 0);
        let lower = scroller(&choosing);
        choosing.set_focus_vadjustment(&lower.vadjustment());
        let outcome_room = outcome_room(&outcome);
        let decision = gtk::Box::new(Orientation::Vertical, 0);
        decision.style_context().add_class("ic-decision");
        decision.pack_start(&lower, false, false, 0);
        decision.pack_start(&outcome_room, false, false, 0);

        let note_toggle = gtk::ToggleButton::with_mnemonic("More ways to de_ny");
        let together = gtk::Button::new();
        together.set_use_underline(true);
        let one_by_one = gtk::Button::with_mnemonic("_One by one");
        let (beside, deny): (gtk::Widget, String) = match view.calls.len() {
            0 => (note_toggle.clone().upcast(), "_Deny".to_owned()),
            n => (one_by_one.clone().upcast(), format!("_Deny all {n}")),
        };
        let deny = gtk::Button::with_mnemonic(&deny);
        deny.style_context().add_class("ic-deny");
        let allow = Allow::build();
        let (clock, more) = (gtk::Label::new(None), gtk::Label::new(None));
        let waiting = waiting(&clock, &more, &together);
        let buttons = buttons(&waiting, &beside, &deny, &allow.button);
        allow.hint.set_line_wrap(true);
        allow.hint.set_max_width_chars(rows::fitting(rows::WIDE));
        // Reserves space for the longest hint, because a taller hint would move Allow and restart the rest period.
        allow.hint.set_text(hint::LONGEST_HINT);
        allow.hint.set_size_request(-1, allow.hint.preferred_height().1);
        allow.hint.set_text("");
        let foot = gtk::Box::new(Orientation::Vertical, 6);
        foot.style_context().add_class("ic-foot");
        foot.pack_start(&allow.hint, false, false, 0);
        foot.pack_start(&buttons, false, false, 0);

        let area = window.content_area();
        area.set_spacing(0);
        let upper = scroller(&body);
        if let Some(host) = &view.host {
            area.pack_start(&icons::host(host), false, false, 0);
        }
        for band in view.notice.as_deref().into_iter().chain(view.band) {
            let band = rows::band(band);
            area.pack_start(&band, false, false, 0);
        }
        area.pack_start(&upper, true, true, 0);
        area.pack_start(&decision, false, false, 0);
        area.pack_start(&foot, false, false, 0);
        deny.set_can_default(true);
        window.set_default(Some(&deny));
        Self {
            window,
            required,
            blocks,
            upper,
            choices,
            ticks,
            outcome,
            outcome_room,
            note_toggle,
            note,
            note_row,
            denials,
            clock,
            more,
            together,
            waiting,
            one_by_one,
            deny,
            allow,
            buttons,
            lower,
            choosing,
        }
    }
}

impl Layout {
    /// Sets the number of further pending questions and the number of questions that could be shown together.
    pub(super) fn set_more(&self, more: usize, together: usize) {
        self.more.set_visible(together == 0);
        // A hidden widget is removed, because screen readers would still read it.
        match (together > 0, self.together.parent()) {
            (true, None) => {
                self.waiting.pack_start(&self.together, false, false, 0);
                self.together.show();
            }
            (false, Some(_)) => self.waiting.remove(&self.together),
            (true, Some(_)) | (false, None) => {}
        }
        self.more.set_text(&if more == 0 { String::new() } else { format!("{more} more waiting") });
        let all = more + 1;
        let words = if together == all {
            format!("_See all {all} together")
        } else {
            format!("_See {together} of {all} together")
        };
        self.together.set_label(&words);
    }

    /// Places Allow at the left or right end of its row.
    pub(super) fn mirror(&self, mirrored: bool) {
        let direction = if mirrored { gtk::TextDirection::Rtl } else { gtk::TextDirection::Ltr };
        self.buttons.set_direction(direction);
        self.allow.hint.set_xalign(if mirrored { 0.0 } else { 1.0 });
    }
}

fn window(sentence: &str) -> gtk::Dialog {
    let window = gtk::Dialog::new();
    let title = format!("IronCurtain: {}", visible::head_and_tail(sentence, TITLE_CHARS));
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
    style();
    let icon = picture(48);
    window.set_icon(icon.as_ref());
    rows::describe(&window, &title, "A question from an agent. Deny is the default.");
    window
}

/// Builds all required content. Returns its container and its scrolling text blocks.
fn required(view: &ConsentView, ticks: &Ticks) -> (gtk::Box, Vec<Block>) {
    let list = gtk::Box::new(Orientation::Vertical, 0);
    list.pack_start(&head(view, ticks), false, false, 0);
    list.pack_start(&rows::facts(&view.facts, &icons::server(view.server)), false, false, 0);
    if !view.with.is_empty() {
        let with = rows::lines(&view.with, "Arguments");
        with.style_context().add_class("ic-with");
        list.pack_start(&with, false, false, 0);
    }
    let mut blocks = Vec::new();
    for TextBlock { title, text, diff } in view.preview.iter().chain(&view.rest) {
        let block = rows::block(title, text, *diff, BLOCK_HEIGHT);
        block.expander.set_expanded(true);
        list.pack_start(&block.expander, false, false, 4);
        blocks.push(block);
    }
    (list, blocks)
}

fn head(view: &ConsentView, ticks: &Ticks) -> gtk::Box {
    let words = gtk::Box::new(Orientation::Vertical, 8);
    let headline = rows::spans(&view.headline, rows::HEADLINE);
    headline.style_context().add_class("ic-headline");
    words.pack_start(&headline, false, false, 0);
    if !view.calls.is_empty() {
        words.pack_start(ticks.widget(), false, false, 0);
    } else if !view.lines.is_empty() {
        words.pack_start(&rows::lines(&view.lines, "What it would do"), false, false, 0);
    }
    for sentence in &view.also {
        let label = rows::wrapped(sentence, rows::HEADLINE);
        label.style_context().add_class("ic-also");
        words.pack_start(&label, false, false, 0);
    }
    let head = gtk::Box::new(Orientation::Horizontal, 16);
    head.pack_start(&icons::agent(&view.client), false, false, 0);
    head.pack_start(&words, true, true, 0);
    head.style_context().add_class("ic-head");
    head
}

/// Builds the scrolling container of the text about the effect, so that the text is not cut off.
fn outcome_room(outcome: &gtk::Label) -> gtk::ScrolledWindow {
    let room = gtk::ScrolledWindow::builder()
        .hscrollbar_policy(gtk::PolicyType::Never)
        .overlay_scrolling(false)
        .propagate_natural_height(true)
        .max_content_height(OUTCOME_HEIGHT)
        .build();
    let viewport = gtk::Viewport::new(gtk::Adjustment::NONE, gtk::Adjustment::NONE);
    viewport.set_vscroll_policy(gtk::ScrollablePolicy::Natural);
    viewport.set_shadow_type(gtk::ShadowType::None);
    viewport.add(outcome);
    room.add(&viewport);
    room
}

fn note() -> (gtk::Entry, gtk::Box) {
    let note = gtk::Entry::new();
    note.set_max_length(500);
    note.set_activates_default(true);
    rows::describe(&note, "Note for the agent", "The agent reads this when you press Deny.");
    let words = gtk::Label::new(Some("Tell the agent why, or what to do instead:"));
    words.set_xalign(0.0);
    words.set_mnemonic_widget(Some(&note));
    let row = gtk::Box::new(Orientation::Vertical, 4);
    row.style_context().add_class("ic-note");
    row.pack_start(&words, false, false, 0);
    row.pack_start(&note, false, false, 0);
    row.show_all();
    row.set_no_show_all(true);
    row.hide();
    (note, row)
}

/// Builds the countdown and the number of further pending questions.
fn waiting(clock: &gtk::Label, more: &gtk::Label, together: &gtk::Button) -> gtk::Box {
    clock.set_xalign(0.0);
    // Gives the label its final height before the window is fitted to the screen.
    clock.set_text(&format_waiting(Duration::ZERO));
    if rows::fitting(rows::WIDE) < rows::WIDE {
        clock.set_line_wrap(true);
        clock.set_max_width_chars(NARROW);
    }
    clock.style_context().add_class("ic-clock");
    more.set_xalign(0.0);
    more.style_context().add_class("ic-more");
    together.set_halign(Align::Start);
    together.style_context().add_class("ic-together");
    let waiting = gtk::Box::new(Orientation::Vertical, 0);
    waiting.set_valign(Align::Center);
    waiting.pack_start(clock, false, false, 0);
    waiting.pack_start(more, false, false, 0);
    waiting
}

fn buttons(left: &gtk::Box, beside: &gtk::Widget, deny: &gtk::Button, allow: &gtk::Button) -> gtk::Box {
    let foot = gtk::Box::new(Orientation::Horizontal, 8);
    foot.pack_start(left, true, true, 0);
    for button in [beside, deny.upcast_ref(), allow.upcast_ref()] {
        button.set_valign(Align::Center);
    }
    foot.pack_start(beside, false, false, 0);
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
        .build();
    // By default, a viewport gives its child only the minimum height. This would compress the list of paths.
    let viewport = gtk::Viewport::new(gtk::Adjustment::NONE, gtk::Adjustment::NONE);
    viewport.set_vscroll_policy(gtk::ScrollablePolicy::Natural);
    viewport.set_shadow_type(gtk::ShadowType::None);
    viewport.add(body);
    scroller.add(&viewport);
    scroller
}

fn picture(size: i32) -> Option<gtk::gdk_pixbuf::Pixbuf> {
    use gtk::gdk_pixbuf::{InterpType, PixbufLoader, prelude::*};
    let loader = PixbufLoader::new();
    loader.write(ICON).ok()?;
    loader.close().ok()?;
    loader.pixbuf()?.scale_simple(size, size, InterpType::Bilinear)
}

/// Applies the style with the current theme's colours.
fn style() {
    STYLED.with(|styled| {
        let provider = styled.get_or_init(|| {
            let provider = gtk::CssProvider::new();
            if let Some(screen) = gdk::Screen::default() {
                let priority = gtk::STYLE_PROVIDER_PRIORITY_APPLICATION;
                gtk::StyleContext::add_provider_for_screen(&screen, &provider, priority);
            }
            provider
        });
        let style = palette::of(rows::is_dark()).definitions() + STYLE;
        if let Err(error) = provider.load_from_data(style.as_bytes()) {
            tracing::warn!(%error, "failed to parse the dialog's style");
        }
    });
}
