//! The tray icon: what it shows as a plain value, and the code that shows it.
//!
//! - Works without a tray: [`Tray::show`] says so, and the caller opens the window instead.

mod menu;
#[cfg(target_os = "linux")]
mod panel;
#[cfg(not(target_os = "linux"))]
mod panel {
    pub(super) fn shows_icons() -> bool {
        true
    }
}

pub(crate) use menu::{MenuAction, TrayState};

use ironcurtain_protocol::Protection;
use menu::{MenuEntry, TrayMenu};
use std::sync::Mutex;
use tauri::image::Image;
use tauri::menu::{Menu, MenuBuilder, MenuItemBuilder, SubmenuBuilder};
use tauri::tray::{TrayIcon, TrayIconBuilder};
use tauri::{AppHandle, Wry};

const ID: &str = "ironcurtain";
const PROTECTING: &[u8] = include_bytes!("../../icons/tray/protecting-44.png");
const ASKING: &[u8] = include_bytes!("../../icons/tray/asking-44.png");
const LOCKDOWN: &[u8] = include_bytes!("../../icons/tray/lockdown-44.png");
const DEGRADED: &[u8] = include_bytes!("../../icons/tray/degraded-44.png");

/// The icon in the panel, if there is a panel that has one.
pub(crate) struct Tray {
    icon: Option<TrayIcon>,
    shown: Mutex<TrayMenu>,
}

impl Tray {
    /// Puts the icon into the panel. Call it on the main thread.
    pub(crate) fn build(app: &AppHandle, state: &TrayState) -> Self {
        let menu = TrayMenu::new(state);
        let icon = match icon(app, &menu) {
            Ok(icon) => Some(icon),
            Err(reason) => {
                tracing::warn!(%reason, "there is no tray icon");
                None
            }
        };
        Self { icon, shown: Mutex::new(menu) }
    }

    /// Returns `true` if there is an icon and, as far as can be told, a panel that shows it.
    pub(crate) fn is_shown(&self) -> bool {
        self.icon.is_some() && panel::shows_icons()
    }

    /// Brings icon, tooltip and menu up to date. Call it on the main thread.
    pub(crate) fn update(&self, app: &AppHandle, state: &TrayState) {
        let menu = TrayMenu::new(state);
        let Some(icon) = &self.icon else { return };
        let Ok(mut shown) = self.shown.lock() else { return };
        if *shown == menu {
            return;
        }
        if let Err(error) = apply(app, icon, &shown, &menu) {
            tracing::warn!(%error, "the tray icon could not be brought up to date");
            return;
        }
        *shown = menu;
    }
}

/// Why there is no tray icon.
#[derive(Debug, thiserror::Error)]
enum TrayError {
    /// The toolkit does not make it.
    #[error(transparent)]
    Toolkit(#[from] tauri::Error),
    /// The tray library panics without it.
    #[error("the system's indicator library is missing")]
    NoLibrary,
}

fn icon(app: &AppHandle, menu: &TrayMenu) -> Result<TrayIcon, TrayError> {
    let build = || -> tauri::Result<TrayIcon> {
        TrayIconBuilder::with_id(ID)
            .icon(picture(menu.protection)?)
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
    if old.protection != new.protection {
        icon.set_icon(Some(picture(new.protection)?))?;
    }
    icon.set_tooltip(Some(&new.tooltip))?;
    icon.set_title(Some(&new.badge))?;
    icon.set_menu(Some(native(app, new)?))
}

fn picture(protection: Protection) -> tauri::Result<Image<'static>> {
    Image::from_bytes(match protection {
        Protection::Protecting => PROTECTING,
        Protection::Asking => ASKING,
        Protection::Lockdown => LOCKDOWN,
        Protection::Degraded => DEGRADED,
    })
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
