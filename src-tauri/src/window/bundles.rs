//! Commands that add a bundle's server (`.mcpb`). They open the bundle, let the user pick its files and folders, and
//! show the planned server. [`write_server`](super::add_server::write_server) then writes the server.
//!
//! - The bundle is only unpacked and read. None of its code runs, and it is deleted unless its server is added.
//! - INVARIANT: the bundle, its files and its folders come from a system picker in this process. The page cannot name
//!   paths.

use super::AppState;
use super::add_server::PlannedServer;
use super::command_error::{CommandError, run_blocking};
use super::grants::trusted;
use super::open_bundle::{BundleView, OpenBundle, OpenBundleError, PathRequest, WantedBundle};

pub(super) async fn choose_bundle(state: &AppState) -> Result<Option<BundleView>, CommandError> {
    let home = trusted(state)?.home;
    let title = "Choose a bundle with a server";
    let Some(file) = state.pickers.pick_bundle(title, &state.home).await else { return Ok(None) };
    let (bundle, view) = run_blocking(move || OpenBundle::open(&home, &file)).await?;
    let opened = state.addition.with(move |draft| {
        draft.open(bundle);
        Ok::<_, OpenBundleError>(Some(view))
    });
    opened.await
}

pub(super) async fn pick_for_bundle(
    state: &AppState,
    setting: String,
) -> Result<Option<Vec<String>>, CommandError> {
    let key = setting.clone();
    let asked = state.addition.with(move |draft| {
        let bundle = draft.bundle()?;
        Ok::<_, OpenBundleError>((bundle.folder(), bundle.path_request(&key)?))
    });
    let (folder, PathRequest { title, kind, several }) = asked.await?;
    let paths = if several {
        state.pickers.pick_several(&title, kind, &state.home).await
    } else {
        state.pickers.pick(&title, kind, &state.home).await.into_iter().collect()
    };
    if paths.is_empty() {
        return Ok(None);
    }
    let picked = state.addition.with(move |draft| {
        let bundle = draft.bundle()?;
        // The user may have opened a different bundle in the meantime.
        if bundle.folder() == folder { bundle.pick(&setting, paths) } else { Err(OpenBundleError::Gone) }
    });
    picked.await.map(Some)
}

pub(super) async fn plan_bundle(
    state: &AppState,
    wanted: WantedBundle,
) -> Result<PlannedServer, CommandError> {
    let home = trusted(state)?.home;
    state.addition.with(move |draft| draft.plan_bundle(&home, wanted)).await
}

pub(super) async fn discard_bundle(state: &AppState) -> Result<(), CommandError> {
    let left = state.addition.with(|draft| {
        draft.leave();
        Ok::<_, OpenBundleError>(())
    });
    left.await
}

#[cfg(test)]
mod tests;
