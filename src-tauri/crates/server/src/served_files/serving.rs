//! Tasks that serve a sandbox's files.

use super::ServedFiles;
use super::link;
use ironcurtain_sandbox::file_access::ToView;
use std::io;
use std::sync::Arc;
use tokio::net::UnixStream;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinHandle};

/// Running tasks. Dropping this value stops them and withdraws pending questions.
#[derive(Debug)]
pub struct ServingFiles {
    linked: JoinHandle<io::Result<()>>,
    following: [AbortHandle; 2],
    is_over: bool,
}

impl ServingFiles {
    /// Serves the view at the other end of the connection.
    pub fn start(
        files: &Arc<ServedFiles>,
        view: UnixStream,
        for_view: mpsc::UnboundedReceiver<ToView>,
    ) -> Self {
        let following = [
            tokio::spawn(files.clone().follow_readable_folders()).abort_handle(),
            tokio::spawn(files.clone().follow_changes()).abort_handle(),
        ];
        Self { linked: tokio::spawn(link::serve(files.clone(), view, for_view)), following, is_over: false }
    }

    /// Completes when the view closes its connection. The sandbox exits after that.
    pub async fn disconnected(&mut self) {
        if !self.is_over {
            // Ignore the result: the connection is closed, with or without an error.
            let _ = (&mut self.linked).await;
            self.is_over = true;
        }
    }
}

impl Drop for ServingFiles {
    fn drop(&mut self) {
        self.linked.abort();
        self.following.iter().for_each(AbortHandle::abort);
    }
}
