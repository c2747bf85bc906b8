//! The settings window: made when asked for, gone when closed, and the commands that its page may call.
//!
//! - The page is drawn by the trusted process and shows what agents wrote as text alone; its commands are checked here all the
//!   same. No command answers a question.
//! - INVARIANT: a file or folder is granted only as a picker of the system gave it to this process; the page names none.

mod adding;
mod clients;
mod command_error;
#[cfg(target_os = "linux")]
mod engine;
mod grants;
mod pick;
mod practice;
mod preferences;
mod profiles;
mod record;
mod rules;
mod secrets;
mod server_change;
mod server_log;
mod servers;
mod servers_view;
mod sessions;
mod settings;
mod snapshot;
mod starting_folder;
mod stops;

#[cfg(target_os = "linux")]
pub(crate) use engine::closed;

use crate::backend::Backend;
use crate::consent::DialogConsent;
use adding::AdditionDraft;
pub(crate) use preferences::Preferences;

use clients::ClientDrafts;
use ironcurtain_daemon::StandingGrant;
use secrets::SecretMoveDraft;
use server_change::ServerChangeDrafts;
use servers::ServerDrafts;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tauri::{AppHandle, Emitter, Manager, WebviewUrl, WebviewWindowBuilder};

/// Label of the window; the capability in `tauri.conf.json` names it.
const LABEL: &str = "main";
/// Event that says: ask again.
const CHANGED: &str = "changed";

/// State that the page's commands work with.
pub(crate) struct AppState {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) desktop: DialogConsent,
    pub(crate) home: PathBuf,
    /// Grants that were taken back in the window, for giving them again; the newest last.
    taken_back: Mutex<Vec<StandingGrant>>,
    drafts: ServerDrafts,
    client_drafts: ClientDrafts,
    addition: AdditionDraft,
    server_changes: ServerChangeDrafts,
    secret_move: SecretMoveDraft,
}

impl AppState {
    pub(crate) fn new(backend: Arc<dyn Backend>, desktop: DialogConsent, home: PathBuf) -> Self {
        Self {
            backend,
            desktop,
            home,
            taken_back: Mutex::default(),
            drafts: ServerDrafts::default(),
            client_drafts: ClientDrafts::default(),
            addition: AdditionDraft::default(),
            server_changes: ServerChangeDrafts::default(),
            secret_move: SecretMoveDraft::default(),
        }
    }
}

/// Opens the window, or brings the open one to the front.
pub(crate) fn open(app: &AppHandle) {
    if let Some(window) = app.get_webview_window(LABEL) {
        // A window that cannot come to the front is still there.
        let _ = window.unminimize();
        let _ = window.set_focus();
        return;
    }
    let built = WebviewWindowBuilder::new(app, LABEL, WebviewUrl::App("index.html".into()))
        .title("IronCurtain")
        .inner_size(1000.0, 700.0)
        .min_inner_size(640.0, 480.0)
        .build();
    let set_up = |window: tauri::WebviewWindow| {
        #[cfg(target_os = "linux")]
        {
            engine::draw_plainly(&window)?;
            engine::revive(&window)?;
        }
        // The engine does not follow the size of the person's text by itself.
        window.set_zoom(text_scale())
    };
    if let Err(error) = built.and_then(set_up) {
        tracing::error!(%error, "the window could not be opened");
    }
}

/// The size of the person's text, as the desktop's settings have it.
#[cfg(target_os = "linux")]
fn text_scale() -> f64 {
    use gtk::prelude::ObjectExt;
    let dpi = gtk::Settings::default().map_or(0, |settings| settings.property::<i32>("gtk-xft-dpi"));
    // In 1024ths of a dot; where nothing is set it is -1.
    if dpi <= 0 { 1.0 } else { (f64::from(dpi) / 1024.0 / 96.0).clamp(1.0, 3.0) }
}

/// Elsewhere the engine is the system's.
#[cfg(not(target_os = "linux"))]
pub(crate) fn closed(_: &AppHandle) {}

#[cfg(not(target_os = "linux"))]
fn text_scale() -> f64 {
    1.0
}

/// Tells the page that something changed, if it is open.
pub(crate) fn notify_changed(app: &AppHandle) {
    if app.get_webview_window(LABEL).is_some()
        && let Err(error) = app.emit_to(LABEL, CHANGED, ())
    {
        tracing::warn!(%error, "the window could not be told of a change");
    }
}

/// The commands of a question's own window, for the app's builder.
#[cfg(not(target_os = "linux"))]
pub(crate) fn commands() -> impl Fn(tauri::ipc::Invoke) -> bool + Send + Sync + 'static {
    use crate::consent::web;
    let questions: Box<dyn Fn(tauri::ipc::Invoke) -> bool + Send + Sync> =
        Box::new(tauri::generate_handler![web::consent_page, web::consent_changing, web::consent_tell]);
    let others = commands_of_window();
    move |invoke| {
        if invoke.message.command().starts_with("consent_") { questions(invoke) } else { others(invoke) }
    }
}

#[cfg(target_os = "linux")]
pub(crate) use commands_of_window as commands;

/// The commands, for the app's builder.
pub(crate) fn commands_of_window() -> impl Fn(tauri::ipc::Invoke) -> bool + Send + Sync + 'static {
    tauri::generate_handler![
        snapshot::snapshot,
        sessions::end_session,
        sessions::restart_server,
        sessions::decide_left,
        sessions::show_question,
        stops::pause_session,
        stops::lock_down,
        stops::forget_question,
        stops::ask_again,
        grants::take_back,
        grants::give_again,
        grants::change_grant,
        grants::grant_beforehand,
        rules::rules,
        rules::explain,
        rules::try_rules,
        rules::save_rules,
        clients::found_clients,
        clients::plan_client,
        clients::write_client,
        servers::servers,
        servers::add_server,
        servers::install_server,
        servers::look_for_update,
        servers::take_update,
        servers::look_at_tools,
        servers::keep_tools,
        adding::plan_server,
        adding::write_server,
        server_change::plan_removal,
        server_change::remove_server,
        server_change::restore_server,
        server_change::forget_server,
        server_change::plan_opening,
        server_change::write_opening,
        server_change::close_opening,
        server_change::plan_limits,
        server_change::write_limits,
        profiles::profiles,
        profiles::change_profile,
        profiles::drop_profile,
        server_log::server_log,
        secrets::secrets,
        secrets::set_secret,
        secrets::remove_secret,
        secrets::plan_secret_move,
        secrets::write_secret_move,
        secrets::unlock_secrets,
        secrets::make_secrets_file,
        record::activity,
        record::export_activity,
        record::check_log,
        practice::practise,
        practice::refused_look,
        practice::welcomed,
        starting_folder::starting_folder,
        settings::settings,
        settings::change_settings,
    ]
}
