//! A token for a server at an address, typed by the user.

use crate::screen::Screen;
use crate::secrets::TypedSecret;
use ironcurtain_admin::catalog::Addition;
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_secrets::SecretName;

/// A token that is kept once its server is added.
pub(super) struct Token {
    name: SecretName,
    typed: TypedSecret,
}

impl Token {
    /// Asks for the token, and has the server's entry name it.
    pub(super) fn typed(home: &Home, adding: &mut Addition, screen: Screen) -> anyhow::Result<Self> {
        let name = SecretName::try_from(format!("{}-token", adding.name).as_str())?;
        let others = Servers::load(home)?;
        let taken =
            others.iter().find(|server| server.name != adding.name && server.secret_names().contains(&name));
        if let Some(other) = taken {
            anyhow::bail!(
                "the server `{}` has the secret `{name}`; give this one another name with `--name`",
                other.name
            );
        }
        adding.give("Authorization", &name);
        let typed = TypedSecret::ask(&format!("The token for `{}`", adding.name), false, screen)?;
        let typed =
            typed.ok_or_else(|| anyhow::anyhow!("nothing was added: there is no place to keep the token"))?;
        Ok(Self { name, typed })
    }

    /// Keeps it.
    pub(super) fn keep(self) -> anyhow::Result<()> {
        self.typed.keep(&self.name)
    }
}
