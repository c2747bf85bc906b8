//! Finds the registries that the user has configured for npm and pip. Contains no registry hosts itself.
//!
//! - Runs npm and pip without a sandbox and with the user's configuration, because they are the user's own programs.
//! - A configured registry is explicitly allowed, so it may be in a private network or on this computer.

use super::build_error::BuildError;
use ironcurtain_egress::address::{self, AddressScope};
use ironcurtain_egress::{HostRules, Resolve, SystemResolver};
use ironcurtain_packages::Registry;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::net::IpAddr;
use std::time::Duration;
use tokio::process::Command;
use url::Url;

/// Maximum time for npm or pip to print its configuration.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Environment variables that name trusted certificate files.
const CERTIFICATE_VARIABLES: [&str; 4] =
    ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"];

/// Registry configuration of a package manager.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegistryConfig {
    /// Hosts that the package manager is allowed to reach.
    pub(super) rules: HostRules,
    /// Configuration for the sandbox: lines of an `npmrc`, or environment variables.
    pub(super) settings: BTreeMap<String, String>,
}

/// Reads npm's configuration. `npm` is the command line that starts npm.
pub(super) async fn npm(npm: &[&OsStr]) -> Result<RegistryConfig, BuildError> {
    let output = run_for_output(npm, &["config", "list", "--json"]).await?;
    let all: Map<String, Value> =
        serde_json::from_str(&output).map_err(|e| parse_error(Registry::Npm, &e))?;
    let (urls, settings) = npm_settings(&all);
    Ok(RegistryConfig { rules: rules(&urls).await?, settings })
}

/// Reads pip's configuration. `python` is the command line that starts the Python that runs pip.
pub(super) async fn pip(python: &[&OsStr]) -> Result<RegistryConfig, BuildError> {
    let output = run_for_output(python, &["-c", PIP])
        .await
        .map_err(|e| BuildError::Configuration(format!("{e}; is `python3-pip` installed?")))?;
    let config: Pip = serde_json::from_str(&output).map_err(|e| parse_error(Registry::Pypi, &e))?;
    let (urls, settings) = config.settings();
    Ok(RegistryConfig { rules: rules(&urls).await?, settings })
}

/// Python script that makes pip evaluate its defaults, configuration files and variables. Prints the result and the
/// hosts that serve files for pip's default index.
const PIP: &str = "
import json
from pip._internal.commands import create_command
from pip._internal.models.index import PyPI
options, _ = create_command('install').parse_args([])
names = ('index_url', 'extra_index_urls', 'find_links', 'no_index', 'cert', 'trusted_hosts')
config = {name: getattr(options, name) for name in names}
config['file_hosts'] = [PyPI.file_storage_domain] if config['index_url'] == PyPI.simple_url else []
print(json.dumps(config))
";

/// Pip settings that apply to the installation.
#[derive(Deserialize)]
struct Pip {
    index_url: Option<String>,
    extra_index_urls: Vec<String>,
    find_links: Vec<String>,
    no_index: bool,
    cert: Option<String>,
    trusted_hosts: Vec<String>,
    file_hosts: Vec<String>,
}

impl Pip {
    fn settings(self) -> (Vec<String>, BTreeMap<String, String>) {
        let mut settings = BTreeMap::new();
        let mut set = |name: &str, value: String| {
            if !value.is_empty() {
                settings.insert(name.to_owned(), value);
            }
        };
        set("PIP_INDEX_URL", self.index_url.clone().unwrap_or_default());
        set("PIP_EXTRA_INDEX_URL", self.extra_index_urls.join(" "));
        set("PIP_FIND_LINKS", self.find_links.join(" "));
        set("PIP_NO_INDEX", if self.no_index { "1".to_owned() } else { String::new() });
        set("PIP_CERT", self.cert.unwrap_or_default());
        set("PIP_TRUSTED_HOST", self.trusted_hosts.join(" "));
        let indexes = self.index_url.into_iter().chain(self.extra_index_urls);
        let mut urls: Vec<String> = indexes.filter(|_| !self.no_index).chain(self.find_links).collect();
        let files = self.file_hosts.iter().filter(|_| !self.no_index);
        urls.extend(files.map(|host| format!("https://{host}")));
        (urls, settings)
    }
}

/// Returns the URLs of the registries and the configuration for the sandbox.
fn npm_settings(all: &Map<String, Value>) -> (Vec<String>, BTreeMap<String, String>) {
    let mut urls = Vec::new();
    let mut settings = BTreeMap::new();
    for (name, value) in all {
        let is_registry = name == "registry" || name.starts_with('@') && name.ends_with(":registry");
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Bool(word) => word.to_string(),
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => continue,
        };
        if is_registry {
            urls.push(value.clone());
        }
        if is_registry || name == "cafile" || name == "strict-ssl" {
            settings.insert(name.clone(), value);
        }
    }
    (urls, settings)
}

/// Returns rules that allow the hosts of these URLs, including their non-public addresses.
async fn rules(urls: &[String]) -> Result<HostRules, BuildError> {
    let mut allowed = Vec::new();
    for text in urls {
        // Pip also accepts folders instead of URLs.
        let Some((host, port)) = host(text) else { continue };
        allowed.push(format!("{host}:{port}"));
        for address in
            SystemResolver::default().resolve(host.trim_matches(['[', ']'])).await.unwrap_or_default()
        {
            allowed.extend(explicit_rule(address).map(|address| format!("{address}:{port}")));
        }
    }
    Ok(HostRules::new(&allowed, &[] as &[&str], false)?)
}

fn host(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    let port = url.port_or_known_default()?;
    matches!(url.scheme(), "http" | "https").then_some((url.host_str()?.to_owned(), port))
}

/// Returns a rule for an address that must be allowed explicitly. Returns `None` for public addresses and for cloud
/// metadata services, which would reveal the machine's credentials.
fn explicit_rule(address: IpAddr) -> Option<String> {
    let scope = address::scope(address)
        .or_else(|| address::is_local_address(address).then_some(AddressScope::Own))?;
    match scope {
        AddressScope::Unspecified | AddressScope::Metadata | AddressScope::Multicast => None,
        AddressScope::Loopback
        | AddressScope::LinkLocal
        | AddressScope::Private
        | AddressScope::Shared
        | AddressScope::Reserved
        | AddressScope::Own => Some(match address {
            IpAddr::V4(v4) => v4.to_string(),
            IpAddr::V6(v6) => format!("[{v6}]"),
        }),
    }
}

/// Returns the user's environment variables that name trusted certificates.
pub(super) fn certificate_variables() -> impl Iterator<Item = (String, String)> {
    CERTIFICATE_VARIABLES.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)))
}

/// Runs one of the user's programs outside any project and returns its output.
async fn run_for_output(program: &[&OsStr], args: &[&str]) -> Result<String, BuildError> {
    let error = BuildError::Configuration;
    let no_program = || error("no program to ask".to_owned());
    let (name, fixed_args) = program.split_first().ok_or_else(no_program)?;
    let shown = name.to_string_lossy();
    let mut command = Command::new(name);
    command
        .args(fixed_args)
        .args(args)
        .current_dir("/")
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true);
    let output = tokio::time::timeout(TIMEOUT, command.output());
    let output = output
        .await
        .map_err(|_| {
            error(format!("`{shown}` did not print its configuration within {} s", TIMEOUT.as_secs()))
        })?
        .map_err(|e| error(format!("failed to start `{shown}`: {e}")))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        let why = why.trim().lines().last().unwrap_or("no output");
        return Err(error(format!("`{shown}` failed to print its configuration: {why}")));
    }
    String::from_utf8(output.stdout).map_err(|e| error(e.to_string()))
}

fn parse_error(registry: Registry, problem: &serde_json::Error) -> BuildError {
    let tool = match registry {
        Registry::Npm => "npm",
        Registry::Pypi => "pip",
    };
    BuildError::Configuration(format!("failed to parse the configuration of {tool}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_egress::{HostDecision, HostPort};
    use serde_json::json;

    #[test]
    fn registries_and_certificates_are_passed_on_but_secrets_are_not() {
        let Value::Object(all) = json!({
            "registry": "https://npm.example/", "@a:registry": "http://127.0.0.1:4873/", "cafile": "/ca.pem",
            "strict-ssl": true, "//npm.example/:_authToken": "secret", "cache": "/c", "ca": null,
        }) else {
            panic!()
        };
        let (urls, settings) = npm_settings(&all);
        assert_eq!(urls, ["https://npm.example/", "http://127.0.0.1:4873/"]);
        let lines: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let expected = [
            "@a:registry=http://127.0.0.1:4873/",
            "cafile=/ca.pem",
            "registry=https://npm.example/",
            "strict-ssl=true",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn unused_index_is_not_allowed() {
        let config = |no_index| Pip {
            index_url: Some("https://pypi.example/simple".into()),
            extra_index_urls: vec!["https://more.example/simple".into()],
            find_links: vec!["/opt/wheels".into(), "https://links.example/x".into()],
            no_index,
            cert: None,
            trusted_hosts: vec!["more.example".into()],
            file_hosts: vec!["files.example".into()],
        };
        let (urls, settings) = config(false).settings();
        let links = ["/opt/wheels", "https://links.example/x"];
        let indexes = ["https://pypi.example/simple", "https://more.example/simple"];
        assert_eq!(urls, [&indexes[..], &links, &["https://files.example"]].concat());
        assert_eq!(settings["PIP_FIND_LINKS"], links.join(" "));
        assert_eq!((settings.get("PIP_NO_INDEX"), settings.get("PIP_CERT")), (None, None));
        let (urls, settings) = config(true).settings();
        assert_eq!(urls, links);
        assert_eq!(settings["PIP_NO_INDEX"], "1");
    }

    #[tokio::test]
    async fn only_configured_registries_are_allowed() {
        let urls = ["http://localhost:4873/npm/", "https://u:p@a.invalid/x", "/opt"].map(str::to_owned);
        let rules = rules(&urls).await.unwrap();
        let allows = |target: &str| {
            matches!(rules.judge(&HostPort::parse(target, None).unwrap()), HostDecision::Allow { .. })
        };
        assert!(allows("localhost:4873") && allows("127.0.0.1:4873") && allows("a.invalid:443"));
        assert!(!allows("localhost:80") && !allows("a.invalid:80") && !allows("b.invalid:443"));
        let refused = super::rules(&["http://short/".into()]).await.unwrap_err().to_string();
        assert!(refused.contains("`short:80` has no dot"), "{refused}");
        assert_eq!(explicit_rule("169.254.169.254".parse().unwrap()), None);
        assert_eq!(explicit_rule("fd00::1".parse().unwrap()).as_deref(), Some("[fd00::1]"));
    }
}
