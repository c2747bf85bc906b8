//! Embeds `ui/`, the icons and the capability of `tauri.conf.json`.

fn main() {
    tauri_build::build();
}
