//! Access token for a remote server, typed by the user.

use crate::screen::Screen;
use crate::secrets::TypedSecret;
use ironcurtain_admin::catalog::Addition;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_secrets::SecretName;

/// Typed token, stored as a secret when the server is added.
pub(super) struct Token {
    name: SecretName,
    typed: TypedSecret,
}

impl Token {
    /// Prompts for the token, and adds a reference to its secret to the server's entry.
    pub(super) fn typed(home: &Home, adding: &mut Addition, screen: Screen) -> anyhow::Result<Self> {
        let name = SecretName::try_from(format!("{}-token", adding.name).as_str())?;
        let others = Servers::load(home)?;
        let taken =
            others.iter().find(|server| server.name != adding.name && server.secret_names().contains(&name));
        if let Some(other) = taken {
            anyhow::bail!(
                "the secret `{name}` already belongs to the server `{}`; give this server another name with `--name`",
                other.name
            );
        }
        adding.give("Authorization", &name);
        let typed = TypedSecret::ask(&format!("Token for `{}`", adding.name), false, screen)?;
        let typed = typed.ok_or_else(|| {
            anyhow::anyhow!("nothing was added: there is no keyring or encrypted file to store the token in")
        })?;
        Ok(Self { name, typed })
    }

    /// Stores the token as a secret.
    pub(super) fn keep(self) -> anyhow::Result<()> {
        self.typed.keep(&self.name)
    }
}
