//! The engine that draws the window: nothing of it outlives the window. The process that fetches for it would stay until the
//! app ends.

use super::LABEL;
use gtk::glib;
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::time::Duration;
use tauri::{AppHandle, Manager};

/// The time after which a window that was closed is not opened again by the same breath.
const GONE: Duration = Duration::from_millis(500);
/// The beginning of the names of the engine's processes.
const ENGINE: &str = "WebKit";

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
