//! Principal of a question, audit entry or grant: one client with one server in one session.

use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::{Client, GrantSubject};
use ironcurtain_protocol::ClientView;
use ironcurtain_visible as visible;
use std::sync::{Arc, Mutex, PoisonError};

/// Client, server and session on whose behalf a call is made.
#[derive(Debug, Clone)]
pub struct Principal {
    /// Session id.
    pub session: String,
    /// The client.
    pub client: Client,
    /// Name from the client's `clientInfo`, unverified. `None` until the client sends it.
    pub claimed_name: Arc<Mutex<Option<String>>>,
    /// Name of the server.
    pub server: String,
    /// Command line of the server.
    pub server_command: String,
    /// `true` if the server runs in a sandbox.
    pub sandboxed: bool,
    /// `true` if the server is remote.
    pub remote: bool,
    /// `true` if the server had never answered a call before this session. A new server cannot get permanent grants.
    pub is_new: bool,
}

impl Principal {
    /// Returns the client with its text escaped for display.
    #[must_use]
    pub fn client_view(&self) -> ClientView {
        let claimed_name = self.claimed_name.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ClientView { claimed_name, ..self.client.view.clone() }
    }

    /// Returns the subject of a grant that ends with this session.
    #[must_use]
    pub fn subject(&self) -> GrantSubject {
        GrantSubject {
            client: self.client.key.clone(),
            client_name: self.client.view.name.clone(),
            server: self.server.clone(),
            session: Some(self.session.clone()),
        }
    }

    /// Returns `true` if a grant with this subject applies to the principal.
    #[must_use]
    pub fn is_covered_by(&self, subject: &GrantSubject) -> bool {
        subject.covers(&self.client.key, &self.server, &self.session)
    }

    /// Creates an audit entry with the principal's fields.
    #[must_use]
    pub fn entry(&self, event: Event, summary: impl Into<String>) -> Entry {
        let mut entry = Entry::new(event, summary);
        entry.session = Some(self.session.clone());
        entry.client = Some(self.client.view.name.clone());
        entry.server_name = Some(self.server.clone());
        entry.sandboxed = Some(self.sandboxed);
        entry
    }
}

/// Escapes the text of a client for display.
pub fn shown_client(client: &ClientView) -> ClientView {
    let line = |text: &Option<String>| text.as_deref().map(visible::line);
    let path = |text: &Option<String>| text.as_deref().map(visible::path);
    let mut shown = client.clone();
    shown.name = visible::head(&visible::line(&client.name), 80);
    shown.exe = path(&client.exe);
    shown.cwd = path(&client.cwd);
    shown.claimed_name = line(&client.claimed_name).map(|t| visible::head(&t, 80));
    shown.label = line(&client.label).map(|t| visible::head(&t, 80));
    for process in &mut shown.chain {
        process.name = visible::line(&process.name);
        process.exe = path(&process.exe);
    }
    shown
}
