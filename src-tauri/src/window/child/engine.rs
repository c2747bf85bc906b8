//! The web engine. It shows the page in separate processes, which exit together with this process.
//! - INVARIANT: the engine is configured before it loads the page, because a policy change during loading makes the
//!   page ignore the mouse wheel (WebKitGTK 2.50 on X11). The window therefore opens empty, and [`prepare`] loads the
//!   page.
//! - A page whose process crashed is reloaded. A second crash within [`CRASH_LOOP_WINDOW`] closes the window.

use gtk::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};
use tauri::{Url, WebviewUrl, WebviewWindow};
use webkit2gtk::{HardwareAccelerationPolicy, SettingsExt, WebViewExt};

/// Time after a crash during which a second crash closes the window instead of reloading the page.
const CRASH_LOOP_WINDOW: Duration = Duration::from_secs(10);

/// Returns the address of an empty page.
pub(super) fn empty() -> tauri::Result<WebviewUrl> {
    Ok(WebviewUrl::CustomProtocol(address("about:blank")?))
}

/// Configures an empty window's engine and loads the page.
pub(super) fn prepare(window: &WebviewWindow) -> tauri::Result<()> {
    let page = address("tauri://localhost")?;
    disable_compositing(window)?;
    reload_after_crash(window, page.clone())?;
    // The engine ignores the desktop's text size.
    window.set_zoom(text_scale())?;
    window.navigate(page)
}

fn address(text: &str) -> tauri::Result<Url> {
    Url::parse(text).map_err(tauri::Error::InvalidUrl)
}

/// Disables compositing on X11. The page is text that changes at most twice a second, and without a graphics card,
/// compositing uses seven times as much CPU time (26 % of a core instead of 4 % at 10 calls per second). On Wayland,
/// the engine requires compositing.
fn disable_compositing(window: &WebviewWindow) -> tauri::Result<()> {
    window.with_webview(|view| {
        let view = view.inner();
        if view.display().backend().is_x11()
            && let Some(settings) = WebViewExt::settings(&view)
        {
            settings.set_hardware_acceleration_policy(HardwareAccelerationPolicy::Never);
        }
    })
}

/// Reloads the page after its process has crashed.
fn reload_after_crash(window: &WebviewWindow, page: Url) -> tauri::Result<()> {
    let dead = window.clone();
    window.with_webview(move |view| {
        let last: Cell<Option<Instant>> = Cell::new(None);
        view.inner().connect_local("web-process-terminated", false, move |_| {
            let again =
                last.replace(Some(Instant::now())).is_some_and(|last| last.elapsed() < CRASH_LOOP_WINDOW);
            let done = if again { dead.destroy() } else { dead.navigate(page.clone()) };
            tracing::warn!(again, ?done, "the web engine's process crashed");
            None
        });
    })
}

/// Returns the text scale from the desktop's settings.
fn text_scale() -> f64 {
    let dpi = gtk::Settings::default().map_or(0, |settings| settings.property::<i32>("gtk-xft-dpi"));
    // The setting is in 1/1024 dots per inch, or -1 if unset.
    if dpi <= 0 { 1.0 } else { (f64::from(dpi) / 1024.0 / 96.0).clamp(1.0, 3.0) }
}
