//! The system's pickers of files and folders.

use ironcurtain_admin::catalog::BUNDLE_ENDINGS;
use std::path::{Path, PathBuf};

/// The kind of thing that is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Picked {
    File,
    Folder,
}

/// A file or folder that the person picks; nothing where they close the picker.
pub(super) async fn pick(title: &str, kind: Picked, start: &Path) -> Option<PathBuf> {
    let dialog = rfd::AsyncFileDialog::new().set_title(title).set_directory(start);
    let picked = match kind {
        Picked::File => dialog.pick_file().await,
        Picked::Folder => dialog.pick_folder().await,
    };
    picked.map(|picked| picked.path().to_path_buf())
}

/// Several of them; none where they close the picker.
pub(super) async fn pick_several(title: &str, kind: Picked, start: &Path) -> Vec<PathBuf> {
    let dialog = rfd::AsyncFileDialog::new().set_title(title).set_directory(start);
    let picked = match kind {
        Picked::File => dialog.pick_files().await,
        Picked::Folder => dialog.pick_folders().await,
    };
    picked.unwrap_or_default().iter().map(|picked| picked.path().to_path_buf()).collect()
}

/// A bundle that the person picks; nothing where they close the picker.
pub(super) async fn pick_bundle(title: &str, start: &Path) -> Option<PathBuf> {
    let dialog = rfd::AsyncFileDialog::new().set_title(title).set_directory(start);
    let picked = dialog.add_filter("Bundles", &BUNDLE_ENDINGS).pick_file().await;
    picked.map(|picked| picked.path().to_path_buf())
}

/// A place for a new file; nothing where they close the picker.
pub(super) async fn place_for(title: &str, start: &Path, name: &str) -> Option<PathBuf> {
    let dialog = rfd::AsyncFileDialog::new().set_title(title).set_directory(start).set_file_name(name);
    dialog.save_file().await.map(|picked| picked.path().to_path_buf())
}
