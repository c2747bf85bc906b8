//! Hosts and tools that are given beforehand, as far as a permission changes anything and a question would offer it.

use super::super::Daemon;
use super::GiveError;
use ironcurtain_consent::{Lifetime, may_last};
use ironcurtain_egress::{GrantedHost, HostDecision, HostPort, HostRules};
use ironcurtain_grants::Granted;
use ironcurtain_policy::{ArgumentRoles, Role, ToolAnnotation, ToolUse};
use ironcurtain_visible as visible;

/// The port that is meant where none is named.
const USUAL_PORT: u16 = 443;

impl Daemon {
    /// One port of one host, if a permission lets the server reach it.
    pub(super) fn host(&self, server: &str, text: &str) -> Result<Granted, GiveError> {
        let text = text.trim();
        // The proxy's own rules say best what is wrong with it.
        HostRules::new([text], [""; 0], false)?;
        let target = HostPort::parse(text, Some(USUAL_PORT))?;
        let settings = self.0.reloader.settings();
        let found = settings.servers.find(Some(server));
        let config = found.ok_or_else(|| GiveError::NoServer(visible::line(server)))?;
        let sandbox = config.sandbox.settings().filter(|_| config.remote.is_none());
        let sandbox = sandbox.ok_or_else(|| GiveError::NotHeld(visible::line(server)))?;
        let out_of_reach =
            || GiveError::OutOfReach { server: visible::line(server), host: target.to_string() };
        let network = sandbox.network.as_ref().filter(|network| !network.is_closed());
        let network = network.ok_or_else(out_of_reach)?;
        let rules = HostRules::new(&network.allowed_domains, &network.denied_domains, network.ask_unknown)?;
        let grant = GrantedHost { id: String::new(), target: target.clone() };
        let opens = matches!(rules.with_grants(vec![grant]).judge(&target), HostDecision::Allow { .. });
        if !opens || target.host.is_local() {
            return Err(out_of_reach());
        }
        Ok(Granted::Host(target))
    }

    /// A tool whatever its calls say, which is possible where they name nothing.
    pub(super) fn tool(&self, server: &str, tool: &str, lifetime: Lifetime) -> Result<Granted, GiveError> {
        let snapshot = self.0.services.snapshot();
        let shown = || visible::line(tool);
        let mut tools = snapshot.annotations.tools(server);
        let (_, annotation) =
            tools.find(|(name, _)| *name == tool).ok_or_else(|| GiveError::UnknownTool(shown()))?;
        if !names_nothing(annotation) {
            return Err(GiveError::NamesThings(shown()));
        }
        let what = ToolUse::new(tool.to_owned(), Vec::new());
        // For a single call nothing is given beforehand, which is told by the caller.
        if lifetime != Lifetime::Once && !may_last(&what, lifetime) {
            return Err(GiveError::ToolForAlways(shown()));
        }
        Ok(Granted::Tool(what))
    }

    /// The tools of a server that can be given.
    pub(super) fn givable_tools(&self, server: &str) -> Vec<String> {
        let snapshot = self.0.services.snapshot();
        let tools = snapshot.annotations.tools(server).filter(|(_, annotation)| names_nothing(annotation));
        tools.map(|(name, _)| name.to_owned()).collect()
    }
}

/// True for a tool that is told of nothing which is judged: no argument of it has a role.
fn names_nothing(tool: &ToolAnnotation) -> bool {
    let has_none = |roles: &ArgumentRoles| {
        let conditional = roles.when.iter().flat_map(|when| &when.roles);
        roles.default.iter().chain(conditional).all(|role| *role == Role::None)
    };
    tool.arguments.iter().all(|(_, roles)| has_none(roles))
}
