//! What is wrong right now, in sentences for people. Empty when nothing is.

use std::collections::BTreeMap;
use tokio::sync::watch;

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Concern {
    /// No sandbox can be made, so no sandboxed server starts.
    Sandbox,
    /// The audit log cannot be written, so every call is denied.
    Audit,
}

/// A handle to the list.
#[derive(Debug, Clone, Default)]
pub struct Troubles(watch::Sender<BTreeMap<Concern, String>>);

impl Troubles {
    /// Notes what is wrong, or that nothing is any more.
    pub fn set(&self, concern: Concern, trouble: Option<String>) {
        self.0.send_if_modified(|all| match trouble {
            Some(text) => all.insert(concern, text.clone()).as_ref() != Some(&text),
            None => all.remove(&concern).is_some(),
        });
    }

    /// All of it.
    #[must_use]
    pub fn all(&self) -> Vec<String> {
        self.0.borrow().values().cloned().collect()
    }

    /// For waiting until it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<BTreeMap<Concern, String>> {
        self.0.subscribe()
    }
}

/// Tries whether this machine can sandbox, and notes what is missing and how to get it.
pub async fn try_sandbox(troubles: Troubles, supervisor: std::path::PathBuf, allow_root: bool) {
    let tried =
        tokio::task::spawn_blocking(move || ironcurtain_sandbox::check(&supervisor, allow_root)).await;
    let trouble = match tried {
        Ok(found) if found.usable => None,
        Ok(found) => {
            let missing = found.missing.join("; ");
            let fix = found.fix_command.map(|command| format!(" Run: {command}")).unwrap_or_default();
            Some(format!("Servers cannot be sandboxed on this machine, so none is started: {missing}.{fix}"))
        }
        Err(problem) => {
            Some(format!("Whether servers can be sandboxed is not known, so none is trusted: {problem}"))
        }
    };
    troubles.set(Concern::Sandbox, trouble);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_machine_that_cannot_sandbox_is_in_trouble() {
        let troubles = Troubles::default();
        try_sandbox(troubles.clone(), "/nonexistent/ironcurtain-sandbox".into(), true).await;
        let all = troubles.all();
        assert!(all.len() == 1 && all[0].starts_with("Servers cannot be sandboxed"), "{all:?}");
        troubles.set(Concern::Sandbox, None);
        assert!(troubles.all().is_empty());
    }
}
