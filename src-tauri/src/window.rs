//! The settings window, created on demand and destroyed when closed, and the commands available to its page.
//!
//! - The window has its own process ([`child`]), so this process draws no page, and closing the window frees its
//!   memory.
//! - The page shows text from agents as plain text. The trusted process checks and runs the page's commands
//!   ([`serving`]). No command can answer a question.
//! - INVARIANT: only paths that the user picked in a system picker of the trusted process can be granted. The page
//!   cannot name paths.

mod add_server;
mod bundles;
mod changed_tools;
mod child;
mod clients;
mod command_error;
mod commands;
mod file_picker;
mod found_update;
mod grants;
mod identity;
mod login;
mod managed;
mod open_bundle;
mod practice;
mod preferences;
mod process;
mod profiles;
mod proposed_tools;
mod record;
mod record_export;
mod restrictions;
mod rules;
mod secrets;
mod server_change;
mod server_log;
mod server_reach;
mod servers;
mod servers_view;
mod serving;
mod sessions;
mod settings;
mod snapshot;
mod starting_folder;
mod wire;

pub(crate) use child::context;
pub use child::{WindowError, run as run_window};
pub(crate) use clients::{BypassingServers, bypassing_servers};
pub(crate) use preferences::Preferences;
pub(crate) use process::ARGUMENT;
pub use process::WindowProcess;
pub(crate) use serving::Window;

use crate::backend::Backend;
use crate::consent::DialogConsent;
use add_server::AdditionDraft;
use clients::ClientDrafts;
use file_picker::Pickers;
use ironcurtain_grants::StandingGrant;
use login::WindowLogins;
use secrets::SecretMoveDraft;
use server_change::ServerChangeDrafts;
use servers::ServerDrafts;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// State shared by the commands of one window while it is open.
struct AppState {
    backend: Arc<dyn Backend>,
    desktop: DialogConsent,
    home: PathBuf,
    pickers: Pickers,
    /// Grants that were revoked in this window and can be restored, newest last.
    revoked: Mutex<Vec<StandingGrant>>,
    drafts: ServerDrafts,
    client_drafts: ClientDrafts,
    addition: AdditionDraft,
    server_changes: ServerChangeDrafts,
    logins: WindowLogins,
    secret_move: SecretMoveDraft,
}

impl AppState {
    fn new(backend: Arc<dyn Backend>, desktop: DialogConsent, home: PathBuf) -> Self {
        Self {
            backend,
            desktop,
            home,
            pickers: Pickers::default(),
            revoked: Mutex::default(),
            drafts: ServerDrafts::default(),
            client_drafts: ClientDrafts::default(),
            addition: AdditionDraft::default(),
            server_changes: ServerChangeDrafts::default(),
            logins: WindowLogins::default(),
            secret_move: SecretMoveDraft::default(),
        }
    }
}
