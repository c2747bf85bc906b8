//! The system's pickers of files and folders: they stand before the window, and go with it.
//!
//! - They are of the trusted process, so that what they give is what the person picked. The window's process tells the number of
//!   its window, and nothing else; a wrong one has them stand before another window.
//! - INVARIANT: once the window is gone, nothing more is picked for it.

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

/// The kind of thing that is picked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Picked {
    File,
    Folder,
}

/// The thing that a picker is opened for.
enum Purpose {
    One(Picked),
    Several(Picked),
    Bundle,
    /// A place for a new file of that name.
    PlaceFor(String),
}

/// A picker that is to be opened.
struct Picker {
    title: String,
    start: PathBuf,
    purpose: Purpose,
    /// The number of the window that it stands before.
    before: Option<u64>,
}

/// The pickers of one window.
#[derive(Default)]
pub(super) struct Pickers(watch::Sender<Owner>);

/// The window that they are of.
#[derive(Default)]
struct Owner {
    number: Option<u64>,
    is_gone: bool,
}

impl Pickers {
    /// The window is on the screen, under this number.
    pub(super) fn stand_before(&self, number: Option<u64>) {
        self.0.send_modify(|owner| owner.number = number);
    }

    /// The window is gone.
    pub(super) fn close(&self) {
        self.0.send_modify(|owner| owner.is_gone = true);
    }

    /// A file or folder that the person picks; nothing where they close the picker.
    pub(super) async fn pick(&self, title: &str, kind: Picked, start: &Path) -> Option<PathBuf> {
        self.open(title, start, Purpose::One(kind)).await.pop()
    }

    /// Several of them; none where they close the picker.
    pub(super) async fn pick_several(&self, title: &str, kind: Picked, start: &Path) -> Vec<PathBuf> {
        self.open(title, start, Purpose::Several(kind)).await
    }

    /// A bundle that the person picks; nothing where they close the picker.
    pub(super) async fn pick_bundle(&self, title: &str, start: &Path) -> Option<PathBuf> {
        self.open(title, start, Purpose::Bundle).await.pop()
    }

    /// A place for a new file; nothing where they close the picker.
    pub(super) async fn place_for(&self, title: &str, start: &Path, name: &str) -> Option<PathBuf> {
        self.open(title, start, Purpose::PlaceFor(name.to_owned())).await.pop()
    }

    async fn open(&self, title: &str, start: &Path, purpose: Purpose) -> Vec<PathBuf> {
        let mut owner = self.0.subscribe();
        let before = owner.borrow().number;
        let picker = Picker { title: title.to_owned(), start: start.to_path_buf(), purpose, before };
        let gone = async { drop(owner.wait_for(|owner| owner.is_gone).await) };
        tokio::select! {
            biased;
            () = gone => Vec::new(),
            picked = open(picker) => picked,
        }
    }
}
