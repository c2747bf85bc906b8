//! The settings window: made when asked for, gone when closed, and the commands that its page may call.
//!
//! - It is a process of its own ([`child`]), so that this one draws no page, and gives its memory back as it closes.
//! - The page shows what agents wrote as text alone; its commands are run and checked in the trusted process ([`serving`]) all
//!   the same. No command answers a question.
//! - INVARIANT: a file or folder is granted, or named for a grant, only as a picker of the system gave it to the trusted process;
//!   the page names none.

mod adding;
mod bundles;
mod child;
mod clients;
mod command_error;
mod commands;
mod grants;
mod identity;
mod open_bundle;
mod pick;
mod practice;
mod preferences;
mod process;
mod profiles;
mod record;
mod rules;
mod secrets;
mod server_change;
mod server_log;
mod servers;
mod servers_view;
mod serving;
mod sessions;
mod settings;
mod snapshot;
mod starting_folder;
mod stops;
mod wire;

pub(crate) use child::context;
pub use child::{WindowError, run as run_window};
pub(crate) use preferences::Preferences;
pub(crate) use process::ARGUMENT;
pub use process::WindowProcess;
pub(crate) use serving::Window;

use crate::backend::Backend;
use crate::consent::DialogConsent;
use adding::AdditionDraft;
use clients::ClientDrafts;
use ironcurtain_grants::StandingGrant;
use pick::Pickers;
use secrets::SecretMoveDraft;
use server_change::ServerChangeDrafts;
use servers::ServerDrafts;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// State that the commands of one window work with, from when it opens until it is closed.
struct AppState {
    backend: Arc<dyn Backend>,
    desktop: DialogConsent,
    home: PathBuf,
    pickers: Pickers,
    /// Grants that were taken back in the window, for giving them again; the newest last.
    taken_back: Mutex<Vec<StandingGrant>>,
    drafts: ServerDrafts,
    client_drafts: ClientDrafts,
    addition: AdditionDraft,
    server_changes: ServerChangeDrafts,
    secret_move: SecretMoveDraft,
}

impl AppState {
    fn new(backend: Arc<dyn Backend>, desktop: DialogConsent, home: PathBuf) -> Self {
        Self {
            backend,
            desktop,
            home,
            pickers: Pickers::default(),
            taken_back: Mutex::default(),
            drafts: ServerDrafts::default(),
            client_drafts: ClientDrafts::default(),
            addition: AdditionDraft::default(),
            server_changes: ServerChangeDrafts::default(),
            secret_move: SecretMoveDraft::default(),
        }
    }
}
