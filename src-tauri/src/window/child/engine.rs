//! The engine that draws the page, in processes of its own, which end with this one.
//!
//! - A page whose process dies comes anew; where that happens again at once, its window is closed.

use gtk::prelude::*;
use std::cell::Cell;
use std::time::{Duration, Instant};
use tauri::WebviewWindow;
use webkit2gtk::{HardwareAccelerationPolicy, SettingsExt, WebViewExt};

/// The time within which a page that dies again is not to be helped.
const AGAIN: Duration = Duration::from_secs(10);

/// Makes the engine of a window ready for the page.
pub(super) fn prepare(window: &WebviewWindow) -> tauri::Result<()> {
    draw_plainly(window)?;
    revive(window)?;
    // The engine does not follow the size of the person's text by itself.
    window.set_zoom(text_scale())
}

/// Has the page drawn by the processor alone. It is text that changes twice a second at most: where there is no graphics card,
/// composing it as one would takes seven times the work (26 % of a core at 10 calls a second, and 4 % so). On Wayland the engine
/// draws nothing that way.
fn draw_plainly(window: &WebviewWindow) -> tauri::Result<()> {
    window.with_webview(|view| {
        let view = view.inner();
        if view.display().backend().is_x11()
            && let Some(settings) = WebViewExt::settings(&view)
        {
            settings.set_hardware_acceleration_policy(HardwareAccelerationPolicy::Never);
        }
    })
}

/// Has the page of a window come anew when its process has died.
fn revive(window: &WebviewWindow) -> tauri::Result<()> {
    let dead = window.clone();
    window.with_webview(move |view| {
        let last: Cell<Option<Instant>> = Cell::new(None);
        view.inner().connect_local("web-process-terminated", false, move |_| {
            let again = last.replace(Some(Instant::now())).is_some_and(|last| last.elapsed() < AGAIN);
            let done = if again { dead.destroy() } else { dead.reload() };
            tracing::warn!(again, ?done, "the process that draws the window died");
            None
        });
    })
}

/// The size of the person's text, as the desktop's settings have it.
fn text_scale() -> f64 {
    let dpi = gtk::Settings::default().map_or(0, |settings| settings.property::<i32>("gtk-xft-dpi"));
    // In 1024ths of a dot; where nothing is set it is -1.
    if dpi <= 0 { 1.0 } else { (f64::from(dpi) / 1024.0 / 96.0).clamp(1.0, 3.0) }
}
