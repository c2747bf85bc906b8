//! Settings of `srt` that are rejected, with the reasons.

use std::path::Path;

use super::{CredentialMode, SrtSettingsFile};

const OWN_PROXY: &str =
    "the only way out of this sandbox is its own proxy, which enforces `network.allowedDomains`";
const NO_TLS: &str = "TLS is never decrypted; encrypted data passes unchanged to the host it names";
const NO_MASKING: &str =
    "masking credentials is not supported; use the mode `deny` to hide them from the command";
const NO_WEAKER_SANDBOX: &str =
    "weaker sandboxes are not supported; without full isolation the command does not start";
const NO_NESTED_NAMESPACES: &str = "a command with its own namespaces can remove the protection of files";
const NO_JAVA_AGENT: &str = "Java programs are not instrumented; set the proxy in `JAVA_TOOL_OPTIONS`, and pass that with `--pass-env`";
const FIXED_MESSAGES: &str =
    "refusal messages cannot be customized; they name the matching entry of `network.deniedDomains`";

impl SrtSettingsFile {
    /// Returns the first setting that is not supported, with the reason.
    ///
    /// Other keys are implemented or have no effect on Linux; see `docs/reference/sandbox-command.md`.
    pub(super) fn unsupported_setting(&self, bwrap: Option<&Path>) -> Option<(String, String)> {
        let (network, credentials) = (&self.network, &self.credentials);
        let unsupported = [
            (self.filesystem.disabled, "filesystem.disabled", NO_WEAKER_SANDBOX),
            (self.enable_weaker_nested_sandbox, "enableWeakerNestedSandbox", NO_WEAKER_SANDBOX),
            (self.allow_nested_user_namespaces, "allowNestedUserNamespaces", NO_NESTED_NAMESPACES),
            (self.java_agent_jar_path.is_some(), "javaAgentJarPath", NO_JAVA_AGENT),
            (network.http_proxy_port.is_some(), "network.httpProxyPort", OWN_PROXY),
            (network.socks_proxy_port.is_some(), "network.socksProxyPort", OWN_PROXY),
            (network.mitm_proxy.is_some(), "network.mitmProxy", OWN_PROXY),
            (network.parent_proxy.is_some(), "network.parentProxy", OWN_PROXY),
            (network.tls_terminate.is_some(), "network.tlsTerminate", NO_TLS),
            (network.filter_request.is_some(), "network.filterRequest", NO_TLS),
            (network.refuse_opaque_tunnels, "network.refuseOpaqueTunnels", NO_TLS),
            (network.require_host_match, "network.requireHostMatch", NO_TLS),
            (!network.strip_response_headers.is_empty(), "network.stripResponseHeaders", NO_TLS),
            (!network.denied_domain_reasons.is_empty(), "network.deniedDomainReasons", FIXED_MESSAGES),
            (credentials.allow_plaintext_inject, "credentials.allowPlaintextInject", NO_MASKING),
            (!credentials.aws_pairs.is_empty(), "credentials.awsPairs", NO_MASKING),
            (credentials.sigv4.is_some(), "credentials.sigv4", NO_MASKING),
        ];
        let unsupported = unsupported.into_iter().find(|(is_set, ..)| *is_set);
        let named = |(key, why): (String, &str)| (key, why.to_owned());
        unsupported
            .map(|(_, key, why)| (key.to_owned(), why))
            .or_else(|| unsupported_mask("files", credentials.files.iter().map(|file| file.mode)))
            .or_else(|| {
                unsupported_mask("envVars", credentials.env_vars.iter().map(|variable| variable.mode))
            })
            .or_else(|| self.depth_out_of_range())
            .map(named)
            .or_else(|| self.different_bwrap(bwrap))
    }

    fn depth_out_of_range(&self) -> Option<(String, &'static str)> {
        let depth = self.mandatory_deny_search_depth.filter(|depth| !(1..=10).contains(depth));
        depth.map(|_| ("mandatoryDenySearchDepth".to_owned(), "must be a number from 1 to 10"))
    }

    /// Rejects the path of a bubblewrap other than the installed one.
    fn different_bwrap(&self, used: Option<&Path>) -> Option<(String, String)> {
        let configured = self.bwrap_path.as_ref()?;
        let real = |path: &Path| path.canonicalize().ok();
        if used.and_then(real).is_some_and(|used| Some(used) == real(configured.as_ref())) {
            return None;
        }
        let installed =
            used.map_or("but none is installed".to_owned(), |used| format!("which is `{}`", used.display()));
        let why = format!("only the installed bubblewrap can be used, {installed}");
        Some(("bwrapPath".to_owned(), why))
    }
}

fn unsupported_mask(
    list: &str,
    mut modes: impl Iterator<Item = CredentialMode>,
) -> Option<(String, &'static str)> {
    let at = modes.position(|mode| mode == CredentialMode::Mask)?;
    Some((format!("credentials.{list}[{at}].mode"), NO_MASKING))
}
