//! The user's choices for a login: the client to log in as, and the scopes.

use super::callback::RedirectAddress;

/// Client and scopes for a login.
#[derive(Clone, Default)]
pub struct ClientChoice {
    /// Id of a client that the user registered, or `None` to register a client automatically.
    pub client_id: Option<String>,
    /// Secret of that client.
    pub client_secret: Option<String>,
    /// Authorization server for which a stored client id was registered.
    pub issuer: Option<String>,
    /// Redirect address that the user registered for that client, or `None` for a random port.
    pub redirect: Option<RedirectAddress>,
    /// Scopes to request instead of the scopes that the server names.
    pub scopes: Option<Vec<String>>,
}
