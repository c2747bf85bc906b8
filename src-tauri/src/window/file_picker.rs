//! System pickers for files and folders. They stay above the window and close with it.
//!
//! - The pickers run in the trusted process, so the result is certain to be the user's choice. The window's process
//!   only reports the id of its window. A wrong id merely places the picker above a different window.
//! - INVARIANT: nothing can be picked for a closed window.

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
use elsewhere::open;
#[cfg(target_os = "linux")]
use linux::open;

use std::path::{Path, PathBuf};
use tokio::sync::watch;

/// Kind of object to pick.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Picked {
    File,
    Folder,
}

/// Purpose of a picker.
enum Purpose {
    One(Picked),
    Several(Picked),
    Bundle,
    /// Choose the path of a new file with the suggested name.
    NewFile(String),
}

/// Picker to open.
struct Picker {
    title: String,
    start: PathBuf,
    purpose: Purpose,
    /// X11 id of the window that the picker stays above.
    parent_window: Option<u64>,
}

/// Pickers of a window.
#[derive(Default)]
pub(super) struct Pickers(watch::Sender<Owner>);

/// Window that the pickers belong to.
#[derive(Default)]
struct Owner {
    x11_id: Option<u64>,
    is_closed: bool,
}

impl Pickers {
    /// Records that the window is on the screen, with its X11 id.
    pub(super) fn set_parent(&self, x11_id: Option<u64>) {
        self.0.send_modify(|owner| owner.x11_id = x11_id);
    }

    /// Records that the window was closed, and closes its pickers.
    pub(super) fn close(&self) {
        self.0.send_modify(|owner| owner.is_closed = true);
    }

    /// Lets the user pick a file or folder. Returns `None` if the user cancels.
    pub(super) async fn pick(&self, title: &str, kind: Picked, start: &Path) -> Option<PathBuf> {
        self.open(title, start, Purpose::One(kind)).await.pop()
    }

    /// Lets the user pick several files or folders. Returns an empty list if the user cancels.
    pub(super) async fn pick_several(&self, title: &str, kind: Picked, start: &Path) -> Vec<PathBuf> {
        self.open(title, start, Purpose::Several(kind)).await
    }

    /// Lets the user pick a bundle. Returns `None` if the user cancels.
    pub(super) async fn pick_bundle(&self, title: &str, start: &Path) -> Option<PathBuf> {
        self.open(title, start, Purpose::Bundle).await.pop()
    }

    /// Lets the user choose the path of a new file. Returns `None` if the user cancels.
    pub(super) async fn pick_new_file(&self, title: &str, start: &Path, name: &str) -> Option<PathBuf> {
        self.open(title, start, Purpose::NewFile(name.to_owned())).await.pop()
    }

    async fn open(&self, title: &str, start: &Path, purpose: Purpose) -> Vec<PathBuf> {
        let mut owner = self.0.subscribe();
        let parent_window = owner.borrow().x11_id;
        let picker = Picker { title: title.to_owned(), start: start.to_path_buf(), purpose, parent_window };
        let closed = async { drop(owner.wait_for(|owner| owner.is_closed).await) };
        tokio::select! {
            biased;
            () = closed => Vec::new(),
            picked = open(picker) => picked,
        }
    }
}
