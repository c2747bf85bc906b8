//! The principal of a question, of an entry on record and of a grant: one client with one server, in one session.

use ironcurtain_audit::{Entry, Event};
use ironcurtain_grants::Client;
use ironcurtain_grants::GrantSubject;
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
    /// The name that the client gives itself, once it has.
    pub says_it_is: Arc<Mutex<Option<String>>>,
    /// The server's name.
    pub server: String,
    /// Its command line.
    pub server_command: String,
    /// True if the server runs in a sandbox.
    pub sandboxed: bool,
    /// True if it runs elsewhere.
    pub remote: bool,
    /// True if the server had answered no call when the session began: nothing of it is offered for always.
    pub is_new: bool,
}

impl Principal {
    /// The client, for people.
    #[must_use]
    pub fn client_view(&self) -> ClientView {
        let says_it_is = self.says_it_is.lock().unwrap_or_else(PoisonError::into_inner).clone();
        ClientView { says_it_is, ..self.client.view.clone() }
    }

    /// The subject of a grant that ends with the session.
    #[must_use]
    pub fn subject(&self) -> GrantSubject {
        GrantSubject {
            client: self.client.key.clone(),
            client_name: self.client.view.name.clone(),
            server: self.server.clone(),
            session: Some(self.session.clone()),
        }
    }

    /// True if a grant of this subject is for this principal.
    #[must_use]
    pub fn is_covered_by(&self, subject: &GrantSubject) -> bool {
        subject.covers(&self.client.key, &self.server, &self.session)
    }

    /// An entry about it.
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

/// A client as people are shown it.
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
