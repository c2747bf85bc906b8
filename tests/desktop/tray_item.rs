//! Reads and presses the tray item over D-Bus, as a panel does.

use crate::bus::{Bus, Object, is_missing_reply, wait_for};
use gtk::glib::Variant;
use serde_json::{Value, json};
use std::collections::HashMap;

pub(crate) const WATCHER: &str = "org.kde.StatusNotifierWatcher";
const ITEM: &str = "org.kde.StatusNotifierItem";
const MENU: &str = "com.canonical.dbusmenu";

/// A line of the menu.
struct Line {
    number: i32,
    depth: u32,
    label: String,
    is_enabled: bool,
}

/// Returns the item's title, icon file, label and menu, or `None` while there is no item.
pub(crate) fn read(bus: &Bus) -> Option<Value> {
    wait_for(async {
        let item = item(bus).await?;
        let (_, lines) = menu(bus, &item).await?;
        let menu: Vec<Value> =
            lines.iter().map(|line| json!([line.depth, line.label, line.is_enabled])).collect();
        let mut shown = json!({ "menu": menu });
        for (name, property) in [("title", "Title"), ("icon", "IconName"), ("label", "XAyatanaLabel")] {
            shown[name] = bus.property(&item, ITEM, property).await?.str()?.into();
        }
        Some(shown)
    })
}

/// Activates the menu item with this label. Returns `false` if there is none.
pub(crate) fn press(bus: &Bus, label: &str) -> bool {
    let pressed = wait_for(async {
        let item = item(bus).await?;
        let (menu, lines) = menu(bus, &item).await?;
        let number = lines.iter().find(|line| line.label == label)?.number;
        let event = Some((number, "clicked", Variant::from_variant(&0_i32.into()), 0_u32).into());
        Some(bus.call(&menu, MENU, "Event", event).await)
    });
    // Quit may exit the app before it replies.
    pressed.is_some_and(|reply| reply.is_ok() || reply.is_err_and(|error| is_missing_reply(&error)))
}

async fn item(bus: &Bus) -> Option<Object> {
    let watcher = Object::new(WATCHER, "/StatusNotifierWatcher");
    let items = bus.property(&watcher, WATCHER, "RegisteredStatusNotifierItems").await?;
    let items: Vec<String> = items.get()?;
    let (program, path) = items.first()?.split_once('/')?;
    Some(Object::new(program, &format!("/{path}")))
}

/// Returns the item's menu and all lines of it.
async fn menu(bus: &Bus, item: &Object) -> Option<(Object, Vec<Line>)> {
    let menu = bus.property(item, ITEM, "Menu").await?;
    let menu = Object::new(&item.program, menu.str()?);
    bus.call(&menu, MENU, "AboutToShow", Some((0_i32,).into())).await.ok()?;
    let all = Some((0_i32, -1_i32, Vec::<String>::new()).into());
    let layout = bus.call(&menu, MENU, "GetLayout", all).await.ok()?;
    let mut lines = Vec::new();
    collect(&layout.try_child_value(1)?, 0, &mut lines)?;
    Some((menu, lines))
}

/// Adds a node's line and the lines below it. The menu itself has no line.
fn collect(node: &Variant, depth: u32, lines: &mut Vec<Line>) -> Option<()> {
    let number = node.try_child_get(0).ok()??;
    let properties: HashMap<String, Variant> = node.try_child_get(1).ok()??;
    if depth > 0 {
        let label = properties.get("label").and_then(Variant::str).unwrap_or("---");
        // A single `_` marks the line's access key.
        let label = label.replace("__", "\0").replace('_', "").replace('\0', "_");
        let is_enabled = properties.get("enabled").and_then(Variant::get).unwrap_or(true);
        lines.push(Line { number, depth, label, is_enabled });
    }
    node.try_child_value(2)?.iter().try_for_each(|child| collect(&child.as_variant()?, depth + 1, lines))
}
