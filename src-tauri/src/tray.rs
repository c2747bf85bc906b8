//! Tray icon. [`menu`] describes it as a plain value, and this module shows it.
//!
//! - The app also works without a tray. [`Tray::is_shown`] then returns `false`, and the caller opens the window.

mod menu;
#[cfg(target_os = "linux")]
mod panel;
mod picture;
#[cfg(not(target_os = "linux"))]
mod panel {
    pub(super) fn name_icon() {}

    pub(super) fn shows_icons() -> bool {
        true
    }
}

pub(crate) use menu::{MenuAction, TrayState};

use menu::{MenuEntry, TrayMenu};
use picture::picture;
use std::sync::Mutex;
use tauri::menu::{Menu, MenuBuilder, MenuItemBuilder, SubmenuBuilder};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Wry};

const ID: &str = "ironcurtain";

/// Tray icon, if the panel supports one.
pub(crate) struct Tray {
    icon: Option<TrayIcon>,
    shown: Mutex<TrayMenu>,
}

impl Tray {
    /// Creates the icon. Must be called on the main thread.
    pub(crate) fn build(app: &AppHandle, state: &TrayState) -> Self {
        let menu = TrayMenu::new(state);
        panel::name_icon();
        let icon = match icon(app, &menu) {
            Ok(icon) => Some(icon),
            Err(reason) => {
                tracing::warn!(%reason, "no tray icon");
                None
            }
        };
        Self { icon, shown: Mutex::new(menu) }
    }

    /// Returns `true` if the icon exists and a panel appears to show it.
    pub(crate) fn is_shown(&self) -> bool {
        self.icon.is_some() && panel::shows_icons()
    }

    /// Updates the icon, the tooltip and the menu. Must be called on the main thread.
    pub(crate) fn update(&self, app: &AppHandle, state: &TrayState) {
        let menu = TrayMenu::new(state);
        let Some(icon) = &self.icon else { return };
        let Ok(mut shown) = self.shown.lock() else { return };
        if *shown == menu {
            return;
        }
        if let Err(error) = apply(app, icon, &shown, &menu) {
            tracing::warn!(%error, "failed to update the tray icon");
            return;
        }
        *shown = menu;
    }
}

/// Reason there is no tray icon.
#[derive(Debug, thiserror::Error)]
enum TrayError {
    /// The toolkit reported an error.
    #[error(transparent)]
    Toolkit(#[from] tauri::Error),
    /// The indicator library is not installed. Without it, the tray library would panic.
    #[error("the system's indicator library is not installed")]
    NoLibrary,
}

fn icon(app: &AppHandle, menu: &TrayMenu) -> Result<TrayIcon, TrayError> {
    let build = || -> tauri::Result<TrayIcon> {
        TrayIconBuilder::with_id(ID)
            .icon(picture(app, menu.picture)?)
            .icon_as_template(picture::IS_TINTED)
            .tooltip(&menu.tooltip)
            .title(&menu.badge)
            .menu(&native(app, menu)?)
            .show_menu_on_left_click(true)
            .build(app)
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(build)) {
        Ok(built) => Ok(built?),
        Err(_) => Err(TrayError::NoLibrary),
    }
}

fn apply(app: &AppHandle, icon: &TrayIcon, old: &TrayMenu, new: &TrayMenu) -> tauri::Result<()> {
    if old.picture != new.picture {
        icon.set_icon(Some(picture(app, new.picture)?))?;
    }
    icon.set_tooltip(Some(&new.tooltip))?;
    icon.set_title(Some(&new.badge))?;
    icon.set_menu(Some(native(app, new)?))
}

fn native(app: &AppHandle, menu: &TrayMenu) -> tauri::Result<Menu<Wry>> {
    let mut builder = MenuBuilder::new(app);
    for entry in &menu.entries {
        builder = match entry {
            MenuEntry::Line(text) => builder.item(&MenuItemBuilder::new(text).enabled(false).build(app)?),
            MenuEntry::Separator => builder.separator(),
            MenuEntry::Press { text, action } => {
                builder.item(&MenuItemBuilder::with_id(action.id(), text).build(app)?)
            }
            MenuEntry::Sub { text, presses } => {
                let mut sub = SubmenuBuilder::new(app, text);
                for (text, action) in presses {
                    sub = sub.item(&MenuItemBuilder::with_id(action.id(), text).build(app)?);
                }
                builder.item(&sub.build()?)
            }
        };
    }
    builder.build()
}
