//! The check before a server is started: what is under its name must belong to it.

use crate::health::{Concern, Health};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Audit, Entry, Event};
use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_grants::{Bindings, IdentityDecision};
use ironcurtain_packages::PackageIdentity;
use ironcurtain_server_identity::{
    Digests, FoundIdentity, IdentityError, IdentitySuspension, KeptUnderName, ServerIdentity,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time between two looks at whether the user has decided, while something is suspended.
const DECIDED: Duration = Duration::from_secs(2);

/// The identities of all servers.
#[derive(Debug, Clone)]
pub(crate) struct Identities {
    bindings: Bindings,
    digests: Digests,
    audit: Audit,
    health: Health,
    /// Set while a task waits for the user's decision.
    waits: Arc<AtomicBool>,
}

/// The check of one server.
pub(crate) struct IdentityGate {
    /// The identities of all.
    pub(crate) all: Identities,
    /// Our own programs.
    pub(crate) ours: PathBuf,
    /// Collects what is under the server's name now.
    pub(crate) kept: Box<dyn Fn() -> KeptUnderName + Send + Sync>,
}

/// The outcome of a check.
enum Admission {
    /// The same server as before, or a name that was not known.
    Known,
    /// The same, after a decision of the user that is not on record yet.
    Decided(IdentityDecision),
    /// Another program, and nothing is under the name.
    Other(String),
}

impl Identities {
    /// Notes at once what is suspended from before.
    pub(crate) async fn open(home: &Home, audit: Audit, health: Health) -> Self {
        let bindings = Bindings::of(&home.database());
        let all = Self { bindings, digests: Digests::default(), audit, health, waits: Arc::default() };
        if all.is_suspending().await {
            all.follow();
        }
        all
    }

    /// Keeps what is suspended among the troubles until the user has decided.
    fn follow(&self) {
        if self.waits.swap(true, Ordering::SeqCst) {
            return;
        }
        let all = self.clone();
        tokio::spawn(async move {
            while all.is_suspending().await || all.again().await {
                tokio::time::sleep(DECIDED).await;
            }
        });
    }

    /// Stops waiting, unless something was suspended at that moment.
    async fn again(&self) -> bool {
        self.waits.store(false, Ordering::SeqCst);
        self.is_suspending().await && !self.waits.swap(true, Ordering::SeqCst)
    }

    /// The servers of which something is suspended. Reads nothing while nothing is.
    pub(crate) async fn suspended(&self) -> BTreeSet<String> {
        if !self.waits.load(Ordering::SeqCst) {
            return BTreeSet::new();
        }
        let bindings = self.bindings.clone();
        // That they cannot be read is among the troubles.
        let all = tokio::task::spawn_blocking(move || bindings.all().unwrap_or_default()).await;
        let all = all.unwrap_or_default().into_iter();
        all.filter(|one| one.found.is_some()).map(|one| one.server).collect()
    }

    /// Notes what is suspended among the troubles; returns whether something is.
    pub(crate) async fn is_suspending(&self) -> bool {
        let look = self.clone();
        tokio::task::spawn_blocking(move || look.note()).await.unwrap_or(false)
    }

    /// Notes what is suspended among the troubles; returns whether something is.
    fn note(&self) -> bool {
        let trouble = match self.bindings.all() {
            Ok(all) => {
                let names: Vec<String> =
                    all.into_iter().filter(|one| one.found.is_some()).map(|one| one.server).collect();
                (!names.is_empty()).then(|| trouble(&names))
            }
            Err(problem) => {
                Some(format!("the owners of what is kept under servers' names cannot be read: {problem}"))
            }
        };
        let is_some = trouble.is_some();
        self.health.set(Concern::Identities, trouble);
        is_some
    }

    async fn record(&self, server: &str, summary: String) {
        let mut entry = Entry::new(Event::Server, summary);
        entry.server_name = Some(server.to_owned());
        if let Err(problem) = self.audit.record(entry).await {
            tracing::error!(%problem, "a server's change of identity is not on record");
        }
    }
}

impl IdentityGate {
    /// Identifies a server, and admits it if what is under its name is its own.
    ///
    /// # Errors
    /// [`IdentityError::Suspended`] for another program than before.
    pub(crate) async fn admit(
        &self,
        server: &Server,
        package: Option<&PackageIdentity>,
    ) -> Result<FoundIdentity, IdentityError> {
        let (all, ours, server) = (self.all.clone(), self.ours.clone(), server.clone());
        let (package, kept) = (package.cloned(), (self.kept)());
        let name = server.name.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let found = ServerIdentity::of(&server, package.as_ref(), &ours, &all.digests)?;
            let admission = admission(&all.bindings, &found.identity, &kept);
            if matches!(admission, Err(IdentityError::Suspended(_))) {
                all.note();
            }
            Ok::<_, IdentityError>((found, admission))
        });
        let (found, admission) = checked.await??;
        if matches!(admission, Err(IdentityError::Suspended(_))) {
            self.all.follow();
        }
        let admission = admission?;
        match admission {
            Admission::Known => {}
            Admission::Decided(decision) => {
                let words = match decision {
                    IdentityDecision::Keep => "you kept what was under its name for the new program",
                    IdentityDecision::StartAfresh => {
                        "you started afresh; what was under its name was put aside"
                    }
                };
                self.all.record(&name, format!("the server {name} is another program: {words}")).await;
                self.all.bindings.decision_recorded(&name)?;
            }
            Admission::Other(change) => {
                let words = format!(
                    "the server {name} is another program: {change}; nothing was kept under its name"
                );
                self.all.record(&name, words).await;
            }
        }
        Ok(found)
    }
}

/// Checks an identity against the owner of what is under the name.
fn admission(
    bindings: &Bindings,
    found: &ServerIdentity,
    kept: &KeptUnderName,
) -> Result<Admission, IdentityError> {
    let (name, stored) = (found.name.as_str(), found.stored());
    let binding = bindings.bound(name, &stored, now_ms())?;
    let Some(change) = found.change_from(binding.owner.as_deref()) else {
        let owner = binding.owner.unwrap_or_default();
        if owner != stored {
            // The same by another path, or seen for the first time.
            bindings.carry_over(name, &owner, &stored)?;
        }
        if binding.found.is_some() {
            bindings.found(name, None)?;
        }
        return Ok(binding.decided.map_or(Admission::Known, Admission::Decided));
    };
    if kept.is_empty() {
        bindings.bind_anew(name, &stored, now_ms())?;
        return Ok(Admission::Other(change));
    }
    bindings.found(name, Some(&stored))?;
    Err(IdentitySuspension { server: name.to_owned(), change, kept: kept.to_string() }.into())
}

/// The sentence among the troubles on servers that are another program now.
pub(crate) fn trouble(names: &[String]) -> String {
    let (list, is) = (names.join("`, `"), if names.len() == 1 { "server is" } else { "servers are" });
    format!(
        "The {is} not the program that you allowed before: `{list}`. What is kept under the name is suspended until you decide: \
         `ironcurtain servers identity NAME`, or in the window under Servers."
    )
}

#[cfg(test)]
mod tests;
