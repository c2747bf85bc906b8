//! GTK picker. It opens on the main thread and closes when its caller is dropped.

use super::{Picked, Picker, Purpose};
use crate::window_stack;
use gtk::prelude::*;
use gtk::{FileChooserAction, FileChooserDialog, ResponseType, glib};
use ironcurtain_admin::catalog::BUNDLE_EXTENSIONS;
use std::path::PathBuf;
use tokio::sync::oneshot;

/// Returns the picked paths, or an empty list if the user cancels.
pub(super) async fn open(picker: Picker) -> Vec<PathBuf> {
    let (reply, told) = oneshot::channel();
    glib::MainContext::default().invoke(move || {
        glib::MainContext::default().spawn_local(show(picker, reply));
    });
    told.await.unwrap_or_default()
}

async fn show(picker: Picker, mut reply: oneshot::Sender<Vec<PathBuf>>) {
    let dialog = build(&picker);
    if let Some(parent_window) = picker.parent_window {
        window_stack::set_transient_for(&dialog, parent_window);
    }
    window_stack::raise(&dialog);
    let response = tokio::select! {
        biased;
        () = reply.closed() => ResponseType::Cancel,
        response = dialog.run_future() => response,
    };
    let picked = if response == ResponseType::Accept { dialog.filenames() } else { Vec::new() };
    dialog.hide();
    // The default handler of the delete event destroys the window.
    dialog.close();
    // Ignores the error: the caller was dropped.
    let _ = reply.send(picked);
}

fn build(picker: &Picker) -> FileChooserDialog {
    let (action, accept) = match picker.purpose {
        Purpose::One(Picked::Folder) | Purpose::Several(Picked::Folder) => {
            (FileChooserAction::SelectFolder, "_Select")
        }
        Purpose::One(Picked::File) | Purpose::Several(Picked::File) | Purpose::Bundle => {
            (FileChooserAction::Open, "_Select")
        }
        Purpose::NewFile(_) => (FileChooserAction::Save, "_Save"),
    };
    let buttons = [("_Cancel", ResponseType::Cancel), (accept, ResponseType::Accept)];
    let dialog = FileChooserDialog::with_buttons(Some(&picker.title), gtk::Window::NONE, action, &buttons);
    dialog.set_default_response(ResponseType::Accept);
    dialog.set_do_overwrite_confirmation(true);
    dialog.set_current_folder(&picker.start);
    match &picker.purpose {
        Purpose::NewFile(name) => dialog.set_current_name(name),
        Purpose::Bundle => dialog.add_filter(bundles()),
        Purpose::Several(_) => dialog.set_select_multiple(true),
        Purpose::One(_) => {}
    }
    dialog
}

fn bundles() -> gtk::FileFilter {
    let filter = gtk::FileFilter::new();
    filter.set_name(Some("Bundles"));
    BUNDLE_EXTENSIONS.iter().for_each(|end| filter.add_pattern(&format!("*.{end}")));
    filter
}
