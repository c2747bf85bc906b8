//! Rows for the calls of a batch, each with a tick box that is initially ticked.
//!
//! - INVARIANT: rows never move, and no rows are added. A settled call keeps its row, which is unticked.

use super::denials::Changed;
use super::rows::{self, Block};
use crate::consent::view::{CallView, TextBlock, plain};
use gtk::prelude::*;
use gtk::{Align, Orientation};
use std::rc::Rc;

/// Maximum height in pixels of a call's text before it scrolls.
const BLOCK_HEIGHT: i32 = 120;

pub(super) struct Ticks {
    list: gtk::Box,
    calls: Vec<Tick>,
    /// Text blocks of the calls.
    pub(super) blocks: Vec<Block>,
    changed: Changed,
}

struct Tick {
    id: String,
    tick: gtk::CheckButton,
    tool: gtk::Label,
}

impl Ticks {
    pub(super) fn build(calls: &[CallView]) -> Self {
        let list = gtk::Box::new(Orientation::Vertical, 10);
        rows::describe(&list, "The calls", "");
        let changed = Changed::default();
        let mut blocks = Vec::new();
        let calls = calls.iter().map(|call| {
            let (row, tick) = row(call, &mut blocks);
            list.pack_start(&row, false, false, 0);
            let notify = Rc::clone(&changed);
            tick.tick.connect_toggled(move |_| {
                if let Some(changed) = notify.borrow().as_ref() {
                    changed();
                }
            });
            tick
        });
        let calls = calls.collect();
        Self { list, calls, blocks, changed }
    }

    pub(super) fn widget(&self) -> &gtk::Box {
        &self.list
    }

    pub(super) fn connect_changed(&self, changed: impl Fn() + 'static) {
        self.changed.replace(Some(Box::new(changed)));
    }

    /// Returns the question ids of the ticked calls.
    pub(super) fn ticked(&self) -> Vec<String> {
        self.calls.iter().filter(|call| call.tick.is_active()).map(|call| call.id.clone()).collect()
    }

    /// Returns the question ids of the calls that are not settled.
    pub(super) fn open(&self) -> Vec<String> {
        self.calls.iter().filter(|call| call.tick.is_sensitive()).map(|call| call.id.clone()).collect()
    }

    /// Marks this question's call as settled.
    pub(super) fn end(&self, id: &str) {
        if let Some(call) = self.calls.iter().find(|call| call.id == id) {
            call.tool.set_text("no answer needed anymore");
            call.tick.set_sensitive(false);
            call.tick.set_active(false);
        }
    }
}

fn row(call: &CallView, blocks: &mut Vec<Block>) -> (gtk::Box, Tick) {
    let words = gtk::Box::new(Orientation::Vertical, 2);
    let name = call.lines.first().map(|line| plain(&line.words)).unwrap_or_default();
    words.pack_start(&rows::lines(&call.lines, "What it would do"), false, false, 0);
    let tool = rows::wrapped(&call.tool, rows::HEADLINE);
    tool.style_context().add_class("ic-quiet");
    words.pack_start(&tool, false, false, 0);
    if !call.with.is_empty() {
        words.pack_start(&rows::lines(&call.with, "Arguments"), false, false, 0);
    }
    for TextBlock { title, text, diff } in call.preview.iter().chain(&call.rest) {
        let block = rows::block(title, text, *diff, BLOCK_HEIGHT);
        block.expander.set_expanded(true);
        words.pack_start(&block.expander, false, false, 0);
        blocks.push(block);
    }
    let tick = gtk::CheckButton::new();
    tick.set_active(true);
    tick.set_valign(Align::Start);
    rows::describe(&tick, &name, "Untick it to be asked about this call separately.");
    let row = gtk::Box::new(Orientation::Horizontal, 10);
    row.pack_start(&tick, false, false, 0);
    row.pack_start(&words, true, true, 0);
    row.style_context().add_class("ic-call");
    (row, Tick { id: call.id.clone(), tick, tool })
}
