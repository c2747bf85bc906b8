//! One client with one server in one session: the principal of a question, an audit record and a grant.

use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::{Client, GrantSubject};
use ironcurtain_protocol::ClientView;
use ironcurtain_visible as visible;
use std::sync::{Arc, Mutex, PoisonError};

/// One client with one server, in one session.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The session's id.
    pub session: String,
    /// The client.
    pub client: Client,
    /// Name that the client claims, once it has sent one.
    pub says_it_is: Arc<Mutex<Option<String>>>,
    /// The server's name.
    pub server: String,
    /// The server's command line.
    pub server_command: String,
    /// True if the server runs in a sandbox.
    pub sandboxed: bool,
    /// True if the server is remote.
    pub remote: bool,
    /// True if the server had never answered a call when the session began. A new server gets no permanent grants.
    pub is_new: bool,
}

impl Principal {
    /// Returns the client in the form shown to the user.
    #[must_use]
    pub fn client_view(&self) -> ClientView {
        let says_it_is = self.says_it_is.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ClientView { says_it_is, ..self.client.view.clone() }
    }

    /// Returns the subject for a grant of this session only.
    #[must_use]
    pub fn subject(&self) -> GrantSubject {
        GrantSubject {
            client: self.client.key.clone(),
            client_name: self.client.view.name.clone(),
            server: self.server.clone(),
            session: Some(self.session.clone()),
        }
    }

    /// Returns whether a grant with this subject applies to this principal.
    #[must_use]
    pub fn is_covered_by(&self, subject: &GrantSubject) -> bool {
        subject.covers(&self.client.key, &self.server, &self.session)
    }

    /// Creates an audit entry about this principal.
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

/// Escapes a client's texts for display.
pub fn shown_client(client: &ClientView) -> ClientView {
    let line = |text: &Option<String>| text.as_deref().map(visible::line);
    let path = |text: &Option<String>| text.as_deref().map(visible::path);
    let mut shown = client.clone();
    shown.name = visible::head(&visible::line(&client.name), 80);
    shown.exe = path(&client.exe);
    shown.cwd = path(&client.cwd);
    shown.says_it_is = line(&client.says_it_is).map(|t| visible::head(&t, 80));
    shown.label = line(&client.label).map(|t| visible::head(&t, 80));
    for process in &mut shown.chain {
        process.name = visible::line(&process.name);
        process.exe = path(&process.exe);
    }
    shown
}
