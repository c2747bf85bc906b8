//! Checks before a server starts that the grants, data and secrets stored under its name belong to its program.

use crate::changed_tools::DECISION_POLL_INTERVAL;
use crate::health::{Health, HealthComponent};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{Audit, Entry, Event};
use ironcurtain_config::Server;
use ironcurtain_config::home::Home;
use ironcurtain_grants::{Bindings, IdentityDecision};
use ironcurtain_packages::PackageIdentity;
use ironcurtain_server_identity::{
    Digests, FoundIdentity, IdentityError, IdentitySuspension, ServerIdentity, StoredServerState,
};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Identities of all servers, and the server names bound to them.
#[derive(Debug, Clone)]
pub struct Identities {
    bindings: Bindings,
    digests: Digests,
    audit: Audit,
    health: Health,
    /// `true` while a task is polling for the user's decision.
    is_polling: Arc<AtomicBool>,
}

/// Identity check for one server.
pub struct IdentityGate {
    /// Identities of all servers.
    pub(crate) all: Identities,
    /// Directory of IronCurtain's own programs.
    pub(crate) own_programs: PathBuf,
    /// Returns the grants, data and secrets that are stored under the server's name.
    pub(crate) stored_under_name: Box<dyn Fn() -> StoredServerState + Send + Sync>,
}

/// Result of comparing a server's identity with the identity that owns the server's name.
enum Admission {
    /// The server owns the name, or the name has no owner yet.
    Known,
    /// The user decided that the server becomes the owner. This decision has yet to be recorded.
    Decided(IdentityDecision),
    /// Another program owns the name, but nothing is stored under it, so the server becomes the owner.
    Rebound(String),
}

impl Identities {
    /// Opens the bindings and reports servers that an earlier daemon suspended.
    pub async fn open(home: &Home, audit: Audit, health: Health) -> Self {
        let bindings = Bindings::of(&home.database());
        let all = Self { bindings, digests: Digests::default(), audit, health, is_polling: Arc::default() };
        if all.refresh_health().await {
            all.monitor();
        }
        all
    }

    /// Starts a task that keeps suspended servers in the health status until the user has decided.
    fn monitor(&self) {
        if self.is_polling.swap(true, Ordering::SeqCst) {
            return;
        }
        let all = self.clone();
        tokio::spawn(async move {
            while all.refresh_health().await || all.must_continue().await {
                tokio::time::sleep(DECISION_POLL_INTERVAL).await;
            }
        });
    }

    /// Stops the task unless another server was suspended in the meantime. Returns `true` if the task must continue.
    async fn must_continue(&self) -> bool {
        self.is_polling.store(false, Ordering::SeqCst);
        self.refresh_health().await && !self.is_polling.swap(true, Ordering::SeqCst)
    }

    /// Returns the names of suspended servers. Reads the database only if a server is suspended.
    pub async fn suspended(&self) -> BTreeSet<String> {
        if !self.is_polling.load(Ordering::SeqCst) {
            return BTreeSet::new();
        }
        let bindings = self.bindings.clone();
        // If the bindings cannot be read, `update_health` reports the error.
        let all = tokio::task::spawn_blocking(move || bindings.all().unwrap_or_default()).await;
        let all = all.unwrap_or_default().into_iter();
        all.filter(|one| one.found.is_some()).map(|one| one.server).collect()
    }

    /// Updates the health status. Returns `true` if a server is suspended.
    pub async fn refresh_health(&self) -> bool {
        let all = self.clone();
        tokio::task::spawn_blocking(move || all.update_health()).await.unwrap_or(false)
    }

    /// Updates the health status. Returns `true` if a server is suspended. Blocks on database access.
    fn update_health(&self) -> bool {
        let trouble = match self.bindings.all() {
            Ok(all) => {
                let names: Vec<String> =
                    all.into_iter().filter(|one| one.found.is_some()).map(|one| one.server).collect();
                (!names.is_empty()).then(|| trouble(&names))
            }
            Err(problem) => Some(format!("failed to read the identities of servers: {problem}")),
        };
        let is_some = trouble.is_some();
        self.health.set(HealthComponent::Identities, trouble);
        is_some
    }

    async fn record(&self, server: &str, summary: String) {
        let mut entry = Entry::new(Event::Server, summary);
        entry.server_name = Some(server.to_owned());
        if let Err(problem) = self.audit.record(entry).await {
            tracing::error!(%problem, "failed to record that a server's identity changed");
        }
    }
}

impl IdentityGate {
    /// Identifies a server and admits it if everything stored under its name belongs to it.
    ///
    /// # Errors
    /// Returns [`IdentityError::Suspended`] if another program owns the name.
    pub async fn admit(
        &self,
        server: &Server,
        package: Option<&PackageIdentity>,
    ) -> Result<FoundIdentity, IdentityError> {
        let (all, own_programs, server) = (self.all.clone(), self.own_programs.clone(), server.clone());
        let (package, stored_under_name) = (package.cloned(), (self.stored_under_name)());
        let name = server.name.clone();
        let checked = tokio::task::spawn_blocking(move || {
            let found = ServerIdentity::of(&server, package.as_ref(), &own_programs, &all.digests)?;
            let admission = admission(&all.bindings, &found.identity, &stored_under_name);
            if matches!(admission, Err(IdentityError::Suspended(_))) {
                all.update_health();
            }
            Ok::<_, IdentityError>((found, admission))
        });
        let (found, admission) = checked.await??;
        if matches!(admission, Err(IdentityError::Suspended(_))) {
            self.all.monitor();
        }
        let admission = admission?;
        match admission {
            Admission::Known => {}
            Admission::Decided(decision) => {
                let words = match decision {
                    IdentityDecision::Keep => {
                        "you kept the permissions and data under its name for the new program"
                    }
                    IdentityDecision::StartFresh => {
                        "you started fresh; the permissions and data under its name were set aside"
                    }
                };
                self.all.record(&name, format!("the server {name} is a different program: {words}")).await;
                self.all.bindings.clear_decision(&name)?;
            }
            Admission::Rebound(change) => {
                let words = format!(
                    "the server {name} is a different program: {change}; nothing was stored under its name"
                );
                self.all.record(&name, words).await;
            }
        }
        Ok(found)
    }
}

/// Compares a server's identity with the owner of its name.
fn admission(
    bindings: &Bindings,
    found: &ServerIdentity,
    stored_under_name: &StoredServerState,
) -> Result<Admission, IdentityError> {
    let (name, stored) = (found.name.as_str(), found.to_json());
    let binding = bindings.get_or_bind(name, &stored, now_ms())?;
    let Some(change) = found.change_from(binding.owner.as_deref()) else {
        let owner = binding.owner.unwrap_or_default();
        if owner != stored {
            // The owner's program has moved or was not identified before.
            bindings.replace_owner(name, &owner, &stored)?;
        }
        if binding.found.is_some() {
            bindings.set_found(name, None)?;
        }
        return Ok(binding.decided.map_or(Admission::Known, Admission::Decided));
    };
    if stored_under_name.is_empty() {
        bindings.rebind(name, &stored, now_ms())?;
        return Ok(Admission::Rebound(change));
    }
    bindings.set_found(name, Some(&stored))?;
    Err(IdentitySuspension { server: name.to_owned(), change, kept: stored_under_name.to_string() }.into())
}

/// Builds the message about servers whose program changed.
pub fn trouble(names: &[String]) -> String {
    let (list, is) = (names.join("`, `"), if names.len() == 1 { "server is" } else { "servers are" });
    format!(
        "The {is} not the program that you allowed before: `{list}`. Grants, data and secrets are suspended until you decide: \
         `ironcurtain servers identity NAME`, or in the window under Servers."
    )
}

#[cfg(test)]
mod tests;
