//! Access token for a remote server, typed by the user.

use crate::screen::Screen;
use crate::secrets::NewSecret;
use ironcurtain_admin::catalog::Addition;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_secrets::SecretName;

/// Typed token, stored as a secret when the server is added.
pub(super) struct Token {
    name: SecretName,
    new_secret: NewSecret,
}

impl Token {
    /// Prompts for the token and adds a reference to its secret to the server's entry.
    pub(super) fn read(home: &Home, addition: &mut Addition, screen: Screen) -> anyhow::Result<Self> {
        let name = SecretName::try_from(format!("{}-token", addition.name).as_str())?;
        let others = Servers::load(home)?;
        let conflicting = others
            .iter()
            .find(|server| server.name != addition.name && server.secret_names().contains(&name));
        if let Some(other) = conflicting {
            anyhow::bail!(
                "the secret `{name}` already belongs to the server `{}`; give this server another name with `--name`",
                other.name
            );
        }
        addition.set_secret("Authorization", &name);
        let new_secret = NewSecret::read(&format!("Token for `{}`", addition.name), false, screen)?;
        let new_secret = new_secret.ok_or_else(|| {
            anyhow::anyhow!("nothing was added: there is no keyring or encrypted file to store the token in")
        })?;
        Ok(Self { name, new_secret })
    }

    /// Stores the token as a secret.
    pub(super) fn save(self) -> anyhow::Result<()> {
        self.new_secret.save(&self.name)
    }
}
