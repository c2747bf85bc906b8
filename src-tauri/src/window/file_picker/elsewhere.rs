//! Picker on platforms other than Linux, using the `rfd` crate.

use super::{Picked, Picker, Purpose};
use ironcurtain_admin::catalog::BUNDLE_EXTENSIONS;
use rfd::{AsyncFileDialog, FileHandle};
use std::path::PathBuf;

/// Returns the picked paths, or an empty list if the user cancels.
pub(super) async fn open(Picker { title, start, purpose, parent_window }: Picker) -> Vec<PathBuf> {
    // On these platforms, windows have no X11 id.
    let _ = parent_window;
    let dialog = AsyncFileDialog::new().set_title(title).set_directory(start);
    let one = |picked: Option<FileHandle>| picked.map(|one| vec![one]);
    let picked = match purpose {
        Purpose::One(Picked::File) => one(dialog.pick_file().await),
        Purpose::One(Picked::Folder) => one(dialog.pick_folder().await),
        Purpose::Several(Picked::File) => dialog.pick_files().await,
        Purpose::Several(Picked::Folder) => dialog.pick_folders().await,
        Purpose::Bundle => one(dialog.add_filter("Bundles", &BUNDLE_EXTENSIONS).pick_file().await),
        Purpose::NewFile(name) => one(dialog.set_file_name(name).save_file().await),
    };
    picked.unwrap_or_default().iter().map(|picked| picked.path().to_path_buf()).collect()
}
