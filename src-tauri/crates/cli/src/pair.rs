//! `pair`: runs on the remote machine. Confirms the pairing with a desktop, and lists and removes paired desktops.
//!
//! - Listing and removing also work while the trusted process is not running.

use crate::arguments::PairArguments;
use crate::connection::Connection;
use crate::reply_text;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use anyhow::bail;
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{Reply, Request};
use ironcurtain_remote::{PairedKeys, PeerKey, ROOT_DESKTOPS, permitted_desktops};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

/// Confirms a pairing, or lists or removes desktops.
pub fn perform(options: PairArguments, screen: Screen) -> anyhow::Result<ExitCode> {
    let PairArguments { code, list, remove } = options;
    if list {
        return self::list(screen);
    }
    if let Some(name) = remove {
        return self::remove(&name, screen);
    }
    let reply = Connection::open()?.ask(Request::Pair { code: code.concat() })?;
    screen.show(&reply_text::text(&reply), &serde_json::to_value(&reply)?)?;
    Ok(ExitCode::SUCCESS)
}

/// Desktops that are paired with this machine or permitted to pair, keyed by name.
struct Desktops {
    paired: BTreeMap<String, PeerKey>,
    permitted: BTreeMap<String, PeerKey>,
    /// Key of the attached desktop.
    attached: Option<String>,
}

impl Desktops {
    fn is_attached(&self, key: PeerKey) -> bool {
        self.attached.as_ref().is_some_and(|attached| *attached == key.to_string())
    }

    fn text(&self) -> TextLines {
        let mut out = TextLines::default();
        if self.paired.is_empty() {
            out.line("No desktop is paired with this machine.");
        }
        for (name, key) in &self.paired {
            let state = if self.is_attached(*key) { "attached" } else { "not attached" };
            out.line(format_args!("{name}  {state}"));
            out.line(format_args!("  key        {key}"));
        }
        if !self.permitted.is_empty() {
            out.line(format_args!("Root permits these desktops to pair ({ROOT_DESKTOPS}):"));
        }
        for (name, key) in &self.permitted {
            out.line(name);
            out.line(format_args!("  key        {key}"));
        }
        out
    }

    fn as_json(&self) -> Value {
        let paired = self.paired.iter().map(
            |(name, key)| json!({ "name": name, "key": key.to_string(), "attached": self.is_attached(*key) }),
        );
        let permitted =
            self.permitted.iter().map(|(name, key)| json!({ "name": name, "key": key.to_string() }));
        json!({ "desktops": paired.collect::<Vec<_>>(), "permittedByRoot": permitted.collect::<Vec<_>>() })
    }
}

fn list(screen: Screen) -> anyhow::Result<ExitCode> {
    let paired = PairedKeys::new(Home::from_env()?.desktops()).read()?;
    let permitted = permitted_desktops(Path::new(ROOT_DESKTOPS))?;
    let desktops = Desktops { paired, permitted, attached: attached()? };
    screen.show(&desktops.text(), &desktops.as_json())?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the key of the attached desktop, or `None` if no desktop is attached or the trusted process is not running.
fn attached() -> anyhow::Result<Option<String>> {
    let Some(mut connection) = Connection::open_if_running()? else { return Ok(None) };
    let Reply::Status(status) = connection.ask(Request::Status)? else {
        bail!("unexpected reply from IronCurtain")
    };
    Ok(status.attached_desktop)
}

fn remove(name: &str, screen: Screen) -> anyhow::Result<ExitCode> {
    let is_removed = PairedKeys::new(Home::from_env()?.desktops()).remove(name)?;
    let is_permitted = permitted_desktops(Path::new(ROOT_DESKTOPS))?.contains_key(name);
    match (is_removed, is_permitted) {
        (true, _) => {
            let text = format!("Removed: {name}. If it is attached, it is detached within 10 seconds.");
            screen.show(&[text].into_iter().collect(), &json!({ "removed": name }))?;
            Ok(ExitCode::SUCCESS)
        }
        (false, true) => bail!(
            "`{name}` is in `{ROOT_DESKTOPS}`, which only root can change: as root, remove its line from that file"
        ),
        (false, false) => {
            bail!(
                "no desktop `{name}` is paired with this machine; run `ironcurtain pair --list` to list them"
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(letter: &str) -> PeerKey {
        PeerKey::try_from(letter.repeat(43)).unwrap()
    }

    #[test]
    fn desktops_are_listed_with_their_keys_and_states() {
        let (first, second, third) = (key("A"), key("Q"), key("g"));
        let desktops = Desktops {
            paired: [("laptop".to_owned(), first), ("old".to_owned(), second)].into(),
            permitted: [("new".to_owned(), third)].into(),
            attached: Some(first.to_string()),
        };
        let expected = format!(
            "laptop  attached\n  key        {first}\nold  not attached\n  key        {second}\nRoot permits these \
             desktops to pair (/etc/ironcurtain/desktops.json):\nnew\n  key        {third}\n"
        );
        assert_eq!(desktops.text().as_str(), expected);
        let none = Desktops { paired: BTreeMap::new(), permitted: BTreeMap::new(), attached: None };
        assert_eq!(none.text().as_str(), "No desktop is paired with this machine.\n");
    }
}
