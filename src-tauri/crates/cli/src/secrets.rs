//! Secrets of servers, in the desktop's keyring. Needs no trusted process.
//!
//! - A secret comes from the terminal, where it is not shown, or from standard input; never from an argument, which every program
//!   can read. It is never printed.

use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::Context;
use clap::Subcommand;
use ironcurtain_admin::plain_secrets::{self, PlainSecret, SecretMove};
use ironcurtain_daemon::Home;
use ironcurtain_daemon::secrets::{Keyring, Secret, SecretError, SecretName, Shelf, in_time};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::process::ExitCode;

/// The most that is read, in bytes: more than the longest secret.
const MOST: u64 = 64 * 1024 + 2;

/// The actions on secrets.
#[derive(Debug, Subcommand)]
pub enum SecretsAction {
    /// Keep a secret: typed at the terminal, where it is not shown, or read from standard input.
    Set {
        /// Its name, which entries of servers write as `keyring:NAME`.
        name: String,
    },
    /// List the names of the secrets that are kept.
    List,
    /// Move secrets that stand in `mcp-servers.json` as they are to the keyring.
    Move {
        /// Only those of this server.
        #[arg(long, value_name = "NAME")]
        server: Option<String>,
        /// Move without asking.
        #[arg(long)]
        yes: bool,
    },
    /// Forget a secret.
    Remove {
        /// Its name.
        name: String,
    },
}

/// Does it.
pub fn perform(action: &SecretsAction, screen: Screen) -> anyhow::Result<ExitCode> {
    match action {
        SecretsAction::Set { name } => {
            let name = SecretName::try_from(name.as_str())?;
            let secret = read(&name)?;
            let kept = name.clone();
            ask(move || Keyring::open(Shelf::Secrets)?.set(&kept, &secret))?;
            let text = format!("The keyring has `{name}`. Write `keyring:{name}` where a server needs it.");
            screen.show(&[text.as_str()].into_iter().collect(), &json!({ "set": name.as_str() }))?;
        }
        SecretsAction::List => {
            let names = ask(|| Keyring::open(Shelf::Secrets)?.list())?;
            let names: Vec<&str> = names.iter().map(SecretName::as_str).collect();
            let sheet: Sheet = match names.as_slice() {
                [] => ["The keyring has no secret of IronCurtain's."].into_iter().collect(),
                names => names.iter().copied().collect(),
            };
            screen.show(&sheet, &json!({ "secrets": names }))?;
        }
        SecretsAction::Move { server, yes } => return moved(server.as_deref(), *yes, screen),
        SecretsAction::Remove { name } => {
            let name = SecretName::try_from(name.as_str())?;
            let gone = name.clone();
            ask(move || Keyring::open(Shelf::Secrets)?.remove(&gone))?;
            let text = format!("The keyring has no `{name}` any more.");
            screen.show(&[text.as_str()].into_iter().collect(), &json!({ "removed": name.as_str() }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn moved(server: Option<&str>, yes: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let change = SecretMove::plan(&Home::from_env()?, server)?;
    if change.secrets.is_empty() {
        let text = format!("`{}` has no plain secret that IronCurtain knows for one.", change.file.display());
        screen.show(&[text.as_str()].into_iter().collect(), &json!({ "secrets": [] }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut sheet = Sheet::default();
    lines(&change.secrets).for_each(|line| sheet.line(line));
    screen.show(&sheet, &json!({ "secrets": as_json(&change.secrets), "file": change.file }))?;
    if !yes && screen.is_for_programs() {
        return Ok(ExitCode::SUCCESS);
    }
    if !yes && !screen.confirmed("Move them to the keyring?")? {
        screen.note("Nothing was moved.")?;
        return Ok(ExitCode::FAILURE);
    }
    keep(&change.secrets)?;
    change.write()?;
    screen.note(&format!("The keyring has them; `{}` names them.", change.file.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Puts plain secrets into the keyring.
pub fn keep(secrets: &[PlainSecret]) -> anyhow::Result<()> {
    if secrets.is_empty() {
        return Ok(());
    }
    let secrets = secrets.to_vec();
    ask(move || plain_secrets::keep(&secrets))
}

/// A line for each, which says where it is and where it goes.
pub fn lines(secrets: &[PlainSecret]) -> impl Iterator<Item = String> {
    secrets.iter().map(|plain| {
        format!("To the keyring: `{}` of {}, as `keyring:{}`.", plain.place, plain.server, plain.name)
    })
}

/// The same for programs.
pub fn as_json(secrets: &[PlainSecret]) -> Vec<Value> {
    let one = |plain: &PlainSecret| json!({ "server": plain.server, "place": plain.place, "name": plain.name.as_str() });
    secrets.iter().map(one).collect()
}

fn ask<T: Send + 'static>(
    what: impl FnOnce() -> Result<T, SecretError> + Send + 'static,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(in_time(what))?)
}

fn read(name: &SecretName) -> anyhow::Result<Secret> {
    let text = if io::stdin().is_terminal() {
        typed(name).context("the secret cannot be read from this terminal")?
    } else {
        let mut text = String::new();
        io::stdin().lock().take(MOST + 1).read_to_string(&mut text).context("standard input is no text")?;
        text
    };
    Ok(Secret::typed(&text)?)
}

/// A line that is not shown while it is typed.
fn typed(name: &SecretName) -> io::Result<String> {
    let mut tty = File::options().read(true).write(true).open("/dev/tty")?;
    write!(tty, "The secret `{name}` (it is not shown): ")?;
    let quiet = Quiet::begin(&tty)?;
    let mut line = String::new();
    let read = BufReader::new(&tty).take(MOST + 1).read_line(&mut line);
    drop(quiet);
    writeln!(tty)?;
    read.map(|_| line)
}

/// A terminal that does not show what is typed. Dropped, it does again; no key ends the program meanwhile.
struct Quiet<'a> {
    tty: &'a File,
    before: Termios,
}

impl<'a> Quiet<'a> {
    fn begin(tty: &'a File) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
        tcsetattr(tty, OptionalActions::Flush, &quiet)?;
        Ok(Self { tty, before })
    }
}

impl Drop for Quiet<'_> {
    fn drop(&mut self) {
        // A terminal that is gone shows nothing.
        let _ = tcsetattr(self.tty, OptionalActions::Flush, &self.before);
    }
}
