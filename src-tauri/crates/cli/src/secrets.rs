//! `secrets`: stores servers' secrets in the desktop's keyring, or in an encrypted file if the user chose to create
//! one. The trusted process locks and unlocks the file for servers.
//!
//! - Secrets and passphrases are read without echo from the terminal, or from standard input. Arguments would be
//!   visible to all of the user's programs.
//! - Secrets and passphrases are never printed.

mod login;
mod prompt;

pub use login::LoginStorage;

use crate::connection::Connection;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use anyhow::bail;
use clap::Subcommand;
use ironcurtain_admin::plain_secrets::{self, PlainSecret, SecretMigration};
use ironcurtain_config::home::Home;
use ironcurtain_config::{RemoteServer, Server};
use ironcurtain_protocol::{Passphrase, Reply, Request, SecretsFileView};
use ironcurtain_secrets::{
    Logins, Secret, SecretBackend, SecretError, SecretFileError, SecretName, SecretStore, with_unlock_timeout,
};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prompt for the passphrase of the encrypted file.
const PASSPHRASE_PROMPT: &str = "Passphrase of your secrets";

#[derive(Debug, Subcommand)]
pub enum SecretsAction {
    /// Store a secret, typed on the terminal without echo or read from standard input.
    Set {
        /// Name of the secret; server entries refer to it as `keyring:NAME`.
        name: String,
        /// Create the encrypted file without asking if there is no keyring. The second line of standard input is the
        /// passphrase.
        #[arg(long)]
        make_file: bool,
    },
    /// List the names of the stored secrets.
    List,
    /// Move unprotected secrets from `mcp-servers.json` to the keyring.
    Move {
        /// Only the secrets of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Move without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Unlock the encrypted file for servers until IronCurtain stops.
    Unlock {
        /// Read the passphrase from standard input.
        #[arg(long)]
        stdin: bool,
    },
    /// Lock the encrypted file again. Running servers keep the secrets they were started with.
    Lock,
    /// Delete a secret.
    Remove {
        /// Name of the secret.
        name: String,
    },
}

/// Runs the subcommand.
pub fn perform(action: &SecretsAction, screen: Screen) -> anyhow::Result<ExitCode> {
    match action {
        SecretsAction::Set { name, make_file } => return set(name, *make_file, screen),
        SecretsAction::List => {
            let location = location_name(&store()?)?;
            let names = names()?;
            let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
            let out: TextLines = match names.as_slice() {
                [] => [format!("No secrets of IronCurtain in {location}.")].into_iter().collect(),
                names => names.iter().copied().collect(),
            };
            screen.show(&out, &json!({ "secrets": names }))?;
        }
        SecretsAction::Move { server, yes } => return migrate(server.as_deref(), *yes, screen),
        SecretsAction::Unlock { stdin } => {
            if store()?.file_is_locked()?.is_none() {
                bail!("nothing to unlock: there is no encrypted file of secrets");
            }
            let mut connection = Connection::open()?;
            let typed = if *stdin { prompt::piped() } else { prompt::line(PASSPHRASE_PROMPT) };
            let passphrase = Passphrase::new(typed?.reveal().to_owned());
            connection.ask(Request::UnlockSecrets { passphrase })?;
            let text = "Unlocked until IronCurtain stops. Servers that were waiting for this start when their client reconnects.";
            screen.show(&[text].into_iter().collect(), &json!({ "locked": false }))?;
        }
        SecretsAction::Lock => {
            Connection::open()?.ask(Request::LockSecrets)?;
            let text = "Locked. Running servers keep the secrets they were started with.";
            screen.show(&[text].into_iter().collect(), &json!({ "locked": true }))?;
        }
        SecretsAction::Remove { name } => {
            let name = SecretName::try_from(name.as_str())?;
            let text = format!("Removed `{name}` from {}.", location_name(&store()?)?);
            match unlocked_daemon()? {
                Some(mut connection) => {
                    connection.ask(Request::RemoveSecret { name: name.to_string() })?;
                }
                None => {
                    let (store, removed) = (unlocked_store()?, name.clone());
                    with_timeout(move || store.remove(&removed))?;
                }
            }
            screen.show(&[text.as_str()].into_iter().collect(), &json!({ "removed": name.as_str() }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn set(name: &str, make_file: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let name = SecretName::try_from(name)?;
    let Some(typed) = NewSecret::read(&format!("Secret `{name}`"), make_file, screen)? else {
        screen.note("Nothing was stored.")?;
        return Ok(ExitCode::FAILURE);
    };
    let text = format!(
        "Stored `{name}` in {}. Write `keyring:{name}` in the entry of a server that needs it.",
        location_name(&typed.store)?
    );
    typed.save(&name)?;
    screen.show(&[text.as_str()].into_iter().collect(), &json!({ "set": name.as_str() }))?;
    Ok(ExitCode::SUCCESS)
}

/// Secret that the user typed, and the open store for it.
pub struct NewSecret {
    store: SecretStore,
    secret: Secret,
    /// Connection to the trusted process if it has unlocked the encrypted file, or `None` if this process accesses the
    /// store directly.
    daemon: Option<Connection>,
}

impl NewSecret {
    /// Opens or creates the store, then prompts for a secret. Returns `None` if the user declines to create a store.
    pub fn read(prompt: &str, make_file: bool, screen: Screen) -> anyhow::Result<Option<Self>> {
        let store = store()?;
        let store_handle = store.clone();
        let mut daemon = None;
        let secret = match with_timeout(move || store_handle.backend())? {
            SecretBackend::Keyring if make_file => {
                bail!("`--make-file` cannot be used here: secrets are stored in the keyring")
            }
            SecretBackend::Keyring => prompt::secret(prompt)?,
            SecretBackend::File { .. } => {
                let secret = prompt::line(prompt)?;
                daemon = unlocked_daemon()?;
                if daemon.is_none() {
                    unlock(&store)?;
                }
                secret
            }
            SecretBackend::Unavailable(why) => {
                if !make_file && !screen.has_terminal() {
                    return Err(why.into());
                }
                if !make_file && !confirm_file(&store, screen)? {
                    return Ok(None);
                }
                let secret = prompt::line(prompt)?;
                create_file(&store, screen)?;
                secret
            }
        };
        Ok(Some(Self { store, secret, daemon }))
    }

    /// Prompts for a secret that is stored together with another secret.
    pub fn line(prompt: &str) -> anyhow::Result<Secret> {
        prompt::line(prompt)
    }

    /// Stores the secret under this name.
    pub fn save(self, name: &SecretName) -> anyhow::Result<()> {
        if let Some(mut connection) = self.daemon {
            let secret = Passphrase::new(self.secret.reveal().to_owned());
            connection.ask(Request::StoreSecret { name: name.to_string(), secret })?;
            return Ok(());
        }
        let name = name.clone();
        with_timeout(move || self.store.set(&name, &self.secret))
    }
}

/// Asks for permission to create the encrypted file.
fn confirm_file(store: &SecretStore, screen: Screen) -> anyhow::Result<bool> {
    screen.confirmed(&format!(
        "There is no keyring here. Store secrets in an encrypted file, `{}`? You will type its passphrase after each start of \
         IronCurtain.",
        store.path().display()
    ))
}

/// Creates the encrypted file. On a terminal, prompts twice for the passphrase, which cannot be recovered.
fn create_file(store: &SecretStore, screen: Screen) -> anyhow::Result<()> {
    let passphrase = prompt::line("New passphrase for your secrets, at least four words")?;
    if screen.has_terminal() && prompt::line("Repeat the passphrase")? != passphrase {
        bail!("nothing was stored: the two passphrases differ");
    }
    Home::from_env()?.prepare()?;
    let store = store.clone();
    with_timeout(move || store.create_file(passphrase))
}

/// Returns a connection to the trusted process if it has unlocked the encrypted file. Over this connection, secrets can
/// be listed, stored and removed without the passphrase.
fn unlocked_daemon() -> anyhow::Result<Option<Connection>> {
    if store()?.file_is_locked()?.is_none() {
        return Ok(None);
    }
    let Some(mut connection) = Connection::open_if_running()? else { return Ok(None) };
    let Reply::Status(status) = connection.ask(Request::Status)? else { return Ok(None) };
    Ok(status.secrets_file.is_some_and(|file| !file.locked).then_some(connection))
}

/// Returns the names of all stored secrets.
fn names() -> anyhow::Result<Vec<SecretName>> {
    if let Some(mut connection) = unlocked_daemon()? {
        let Reply::SecretNames(names) = connection.ask(Request::SecretNames)? else { return Ok(Vec::new()) };
        return Ok(names.iter().map(|name| SecretName::try_from(name.as_str())).collect::<Result<_, _>>()?);
    }
    let store = unlocked_store()?;
    with_timeout(move || store.list())
}

/// Returns the open secret store. Prompts for the passphrase if the store is a locked file.
pub fn unlocked_store() -> anyhow::Result<SecretStore> {
    let store = store()?;
    if store.file_is_locked()? == Some(true) {
        unlock(&store)?;
    }
    Ok(store)
}

/// Returns the secret store for a server that this command starts. Unlocks the store only if the server needs a secret.
pub fn store_for(server: Option<&Server>) -> anyhow::Result<SecretStore> {
    let store = store()?;
    let logins = Logins::of(&store);
    let needs = server.is_some_and(|server| {
        let uses_login = server.remote.as_ref().is_some_and(RemoteServer::uses_login);
        !server.secret_names().is_empty() || uses_login && logins.record(&server.name).is_some()
    });
    if needs { unlocked_store() } else { Ok(store) }
}

/// Returns an error if a secret in the server's entry is not stored. Called before anything is downloaded for the
/// server.
pub fn require_secrets(server: &Server) -> anyhow::Result<()> {
    let needed = server.secret_names();
    if !needed.is_empty() && unlocked_daemon()?.is_some() {
        let stored = names()?;
        return match needed.iter().find(|name| !stored.contains(name)) {
            Some(name) => {
                bail!("`{}` needs a secret first; run: ironcurtain secrets set {name}", server.name)
            }
            None => Ok(()),
        };
    }
    let store = store_for(Some(server))?;
    for name in needed {
        let (store, wanted) = (store.clone(), name.clone());
        match with_timeout(move || Ok(store.get(&wanted)))? {
            Ok(_) => {}
            Err(SecretError::Missing(_) | SecretError::File(SecretFileError::Missing(_))) => {
                bail!("`{}` needs a secret first; run: ironcurtain secrets set {name}", server.name)
            }
            Err(SecretError::NoKeyring(_)) => bail!(
                "`{}` needs a secret first; run: ironcurtain secrets set {name}   (There is no keyring here; you will be offered \
                 an encrypted file.)",
                server.name
            ),
            Err(problem) => return Err(problem.into()),
        }
    }
    Ok(())
}

/// Returns the secrets in a server's entry that are not stored. Never prompts for a passphrase, so secrets in a locked
/// file count as stored.
pub fn missing(server: &Server) -> Vec<SecretName> {
    let Ok(store) = store() else { return Vec::new() };
    let is_missing = |name: &SecretName| {
        let (store, wanted) = (store.clone(), name.clone());
        !matches!(
            with_timeout(move || Ok(store.get(&wanted))),
            Ok(Ok(_) | Err(SecretError::File(SecretFileError::Locked(_))))
        )
    };
    server.secret_names().into_iter().filter(is_missing).collect()
}

fn unlock(store: &SecretStore) -> anyhow::Result<()> {
    let passphrase = prompt::line(PASSPHRASE_PROMPT)?;
    let store = store.clone();
    with_timeout(move || store.unlock(passphrase))
}

/// Returns the secret store without unlocking it.
pub fn store() -> anyhow::Result<SecretStore> {
    Ok(SecretStore::of(&Home::from_env()?.state))
}

fn location_name(store: &SecretStore) -> anyhow::Result<String> {
    Ok(match store.file_is_locked()? {
        None => "the keyring".to_owned(),
        Some(_) => format!("the encrypted file `{}`", store.path().display()),
    })
}

/// Returns a description of the encrypted file's state.
pub fn describe_file(file: &SecretsFileView) -> String {
    let state = if file.locked { "LOCKED: unlock with `ironcurtain secrets unlock`" } else { "unlocked" };
    format!("in the encrypted file {}, {state}", file.path)
}

fn migrate(server: Option<&str>, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = SecretMigration::plan(&Home::from_env()?, server)?;
    if change.secrets.is_empty() {
        let text = format!("Found no unprotected secrets in `{}`.", change.file.display());
        screen.show(&[text.as_str()].into_iter().collect(), &json!({ "secrets": [] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = TextLines::default();
    lines(&change.secrets).for_each(|line| out.line(line));
    screen.show(&out, &json!({ "secrets": as_json(&change.secrets), "file": change.file }))?;
    if !yes && screen.is_json() {
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !screen.confirmed("Move them?")? {
        screen.note("Nothing was moved.")?;
        return Ok(ExitCode::FAILURE);
    }
    save_all(&change.secrets)?;
    change.write()?;
    screen.note(&format!("Moved; `{}` now refers to them by name.", change.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Stores unprotected secrets in the keyring.
pub fn save_all(secrets: &[PlainSecret]) -> anyhow::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let (store, secrets) = (unlocked_store()?, secrets.to_vec());
    with_timeout(move || plain_secrets::store_secrets(&store, &secrets))
}

/// Returns a line for each secret, with its current location and future name.
pub fn lines(secrets: &[PlainSecret]) -> impl Iterator<Item = String> {
    secrets.iter().map(|plain| {
        format!(
            "Move to the keyring: `{}` of {}, as `keyring:{}`.",
            plain.field_path, plain.server, plain.name
        )
    })
}

/// Returns each secret's location and name as JSON.
pub fn as_json(secrets: &[PlainSecret]) -> Vec<Value> {
    let entry = |plain: &PlainSecret| json!({ "server": plain.server, "place": plain.field_path, "name": plain.name.as_str() });
    secrets.iter().map(entry).collect()
}

fn with_timeout<T: Send + 'static>(
    operation: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(with_unlock_timeout(operation))?)
}
