//! A screen of the Wayland compositor sway, and queries of its window tree.

use super::{Screen, is_titled, until};
use std::process::Stdio;

impl Screen {
    /// Starts a Wayland display that sway renders into memory.
    pub(crate) fn sway() -> Self {
        let mut screen = Self::empty();
        screen.start_bus();
        let config = screen.home().join("sway");
        let settings = "output HEADLESS-1 resolution 1280x800\nxwayland disable\ndefault_border normal\n";
        std::fs::write(&config, settings).expect("sway's settings");
        // Sway refuses to run as root, so root runs it in a user namespace.
        let root = screen.read("id", &["-u"]) == "0";
        let mut sway = screen.command(if root { "unshare" } else { "sway" });
        sway.args(if root { &["--user", "sway"][..] } else { &[] });
        sway.args(["-c", config.to_str().expect("a UTF-8 path")])
            .env("WLR_BACKENDS", "headless")
            .env("WLR_LIBINPUT_NO_DEVICES", "1")
            .env("WLR_RENDERER", "pixman")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = sway.spawn().unwrap_or_else(|error| panic!("sway is needed: {error}"));
        screen.children.push(child);
        let runtime = screen.home().join("run");
        screen.wayland = Some(until("sway", || {
            let names = std::fs::read_dir(&runtime)
                .ok()?
                .filter_map(|entry| entry.ok()?.file_name().into_string().ok());
            let names: Vec<String> = names.collect();
            names.iter().any(|name| name.starts_with("sway-ipc.")).then_some(())?;
            names.into_iter().find(|name| name.starts_with("wayland-") && !name.contains(".lock"))
        }));
        screen
    }

    /// Sends a command to sway.
    pub(crate) fn swaymsg(&self, words: &[&str]) -> String {
        let runtime = std::fs::read_dir(self.home().join("run")).expect("the runtime directory");
        let socket = runtime.filter_map(Result::ok).map(|entry| entry.path()).find(|path| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("sway-ipc."))
        });
        let socket = socket.expect("sway's socket");
        let mut all = vec!["-s", socket.to_str().expect("a UTF-8 path")];
        all.extend(words);
        self.read("swaymsg", &all)
    }

    /// Waits until sway gives the keyboard focus to the window with this title.
    pub(crate) fn wait_for_sway_focus(&self, title: &str) {
        until("the focus", || {
            let tree: serde_json::Value =
                serde_json::from_str(&self.swaymsg(&["-r", "-t", "get_tree"])).ok()?;
            (node_titled(&tree, title)?["focused"] == true).then_some(())
        });
    }

    /// Returns the position of the window with this title, without its frame.
    pub(crate) fn sway_position(&self, title: &str) -> (i32, i32) {
        until("the window in sway's tree", || {
            let tree: serde_json::Value =
                serde_json::from_str(&self.swaymsg(&["-r", "-t", "get_tree"])).ok()?;
            let window = node_titled(&tree, title)?;
            let at = |side: &str| {
                i32::try_from(window["rect"][side].as_i64()? + window["window_rect"][side].as_i64()?).ok()
            };
            Some((at("x")?, at("y")?))
        })
    }
}

/// Returns the node with this title in sway's tree.
fn node_titled<'a>(node: &'a serde_json::Value, title: &str) -> Option<&'a serde_json::Value> {
    if node["pid"].is_u64() && node["name"].as_str().is_some_and(|name| is_titled(name, title)) {
        return Some(node);
    }
    let below = ["nodes", "floating_nodes"].into_iter().filter_map(|kind| node[kind].as_array()).flatten();
    below.into_iter().find_map(|child| node_titled(child, title))
}
