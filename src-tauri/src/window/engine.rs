//! The engine that draws the window, in processes of its own.
//!
//! - Nothing of it outlives the window: the process that fetches for it would stay until the app ends.
//! - A page whose process dies comes anew, and is closed where that happens again at once. Sessions do not notice.

use super::LABEL;
use gtk::glib;
use gtk::prelude::*;
use rustix::process::{Pid, Signal, kill_process};
use std::cell::Cell;
use std::fs;
use std::time::{Duration, Instant};
use tauri::{AppHandle, Manager, WebviewWindow};
use webkit2gtk::{HardwareAccelerationPolicy, SettingsExt, WebViewExt};

/// The time after which a window that was closed is not opened again by the same breath.
const GONE: Duration = Duration::from_millis(500);
/// The time within which a page that dies again is not to be helped.
const AGAIN: Duration = Duration::from_secs(10);
/// The beginning of the names of the engine's processes.
const ENGINE: &str = "WebKit";

/// Has the page drawn by the processor alone. It is text that changes twice a second at most: where there is no graphics card,
/// composing it as one would takes seven times the work (26 % of a core at 10 calls a second, and 4 % so). On Wayland the engine
/// draws nothing that way.
pub(super) fn draw_plainly(window: &WebviewWindow) -> tauri::Result<()> {
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
pub(super) fn revive(window: &WebviewWindow) -> tauri::Result<()> {
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

/// Ends what is left of it once the window is gone. Call it on the main thread.
pub(crate) fn closed(app: &AppHandle) {
    let app = app.clone();
    glib::timeout_add_local_once(GONE, move || {
        if app.get_webview_window(LABEL).is_none() {
            for left in processes() {
                // One that is gone already is what is wanted.
                let _ = kill_process(left, Signal::TERM);
            }
        }
    });
}

/// Our own children that are the engine's.
fn processes() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().filter_map(Result::ok);
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let children: Vec<i32> = children
        .flat_map(|all| all.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect();
    let is_engine = |pid: &i32| {
        fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.starts_with(ENGINE))
    };
    children.into_iter().filter(is_engine).filter_map(Pid::from_raw).collect()
}
