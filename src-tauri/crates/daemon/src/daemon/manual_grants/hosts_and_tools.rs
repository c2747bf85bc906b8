//! Creates grants for hosts and tools. Refuses grants that would have no effect or that a question could not offer.

use super::super::Daemon;
use super::GrantRequestError;
use ironcurtain_consent::{Lifetime, may_last};
use ironcurtain_egress::{GrantedHost, HostDecision, HostPort, HostRules};
use ironcurtain_grants::Granted;
use ironcurtain_policy::{ArgumentRoles, Role, ToolAnnotation, ToolScope, ToolUse};
use ironcurtain_visible as visible;

/// Default port for a host that the user typed without one.
const DEFAULT_PORT: u16 = 443;

impl Daemon {
    /// Parses a host and port and checks that a grant would make the host reachable for the server.
    pub(super) fn host(&self, server: &str, text: &str) -> Result<Granted, GrantRequestError> {
        let text = text.trim();
        // Checks the proxy's own rules first, because their error messages are the most helpful.
        HostRules::new([text], [""; 0], false)?;
        let target = HostPort::parse(text, Some(DEFAULT_PORT))?;
        let settings = self.0.reloader.settings();
        let found = settings.servers.find(Some(server));
        let config = found.ok_or_else(|| GrantRequestError::UnknownServer(visible::line(server)))?;
        let sandbox = config.sandbox.settings().filter(|_| config.remote.is_none());
        let sandbox = sandbox.ok_or_else(|| GrantRequestError::NotSandboxed(visible::line(server)))?;
        let blocked =
            || GrantRequestError::HostBlocked { server: visible::line(server), host: target.to_string() };
        let network = sandbox.network.as_ref().filter(|network| !network.is_closed());
        let network = network.ok_or_else(blocked)?;
        let rules = HostRules::new(&network.allowed_domains, &network.denied_domains, network.ask_unknown)?;
        let grant = GrantedHost { id: String::new(), target: target.clone() };
        let is_allowed = matches!(rules.with_grants(vec![grant]).judge(&target), HostDecision::Allow { .. });
        if !is_allowed || target.host.is_local() {
            return Err(blocked());
        }
        Ok(Granted::Host(target))
    }

    /// Returns the target of a grant for the whole tool. Fails if any argument of the tool is judged.
    pub(super) fn tool(
        &self,
        server: &str,
        tool: &str,
        lifetime: Lifetime,
    ) -> Result<Granted, GrantRequestError> {
        let snapshot = self.0.services.snapshot();
        let shown = || visible::line(tool);
        let mut tools = snapshot.annotations.tools(server);
        let (_, annotation) =
            tools.find(|(name, _)| *name == tool).ok_or_else(|| GrantRequestError::UnknownTool(shown()))?;
        if !has_no_roles(annotation) {
            return Err(GrantRequestError::DependsOnArguments(shown()));
        }
        let what = ToolUse::new(tool.to_owned(), Vec::new());
        // The caller refuses `Lifetime::Once`.
        if lifetime != Lifetime::Once && !may_last(&what, lifetime) {
            return Err(GrantRequestError::PermanentTool(shown()));
        }
        Ok(Granted::Tool(ToolScope::Use(what)))
    }

    /// Returns the names of the server's tools that can be granted as a whole.
    pub(super) fn grantable_tools(&self, server: &str) -> Vec<String> {
        let snapshot = self.0.services.snapshot();
        let tools = snapshot.annotations.tools(server).filter(|(_, annotation)| has_no_roles(annotation));
        tools.map(|(name, _)| name.to_owned()).collect()
    }
}

/// Returns `true` if no argument of the tool is judged.
fn has_no_roles(tool: &ToolAnnotation) -> bool {
    let has_none = |roles: &ArgumentRoles| {
        let conditional = roles.when.iter().flat_map(|when| &when.roles);
        roles.default.iter().chain(conditional).all(|role| *role == Role::None)
    };
    tool.arguments.iter().all(|(_, roles)| has_none(roles))
}
