//! Answers requests about how servers are contained, in the other implementation's format.

use crate::data_set::DataSet;
use crate::text;
use anyhow::Context;
use ironcurtain_config::NetworkSettings;
use ironcurtain_config::Sandbox;
use ironcurtain_config::SandboxPolicy;
use ironcurtain_containment::{
    Exemption, Launch, Profile, Resolved, ServerFiles, SrtSettings, absolute, annotate,
};
use ironcurtain_sandbox::Availability;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::path::Path;
use std::process::Command;

/// Folders that the other implementation hides by default. IronCurtain's own list is longer and applies to every
/// server.
const DENIED_BY_DEFAULT: [&str; 3] = ["~/.ssh", "~/.gnupg", "~/.aws"];

pub fn resolve(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let server = request.get("serverConfig").context("`serverConfig` is missing")?;
    Ok(json!({ "value": resolved(data, request, server, text(request, "sessionSandboxDir")?)? }))
}

pub fn audit(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let dir = request.get("allowedDirectory").and_then(Value::as_str).unwrap_or("/tmp");
    let one =
        |(name, server): (&String, &Value)| anyhow::Ok((name.clone(), resolved(data, request, server, dir)?));
    let all = servers(request)?.iter().map(one).collect::<Result<Map<_, _>, _>>()?;
    Ok(json!({ "value": all }))
}

pub fn domains(request: &Value) -> anyhow::Result<Value> {
    let mut all = Map::new();
    for (name, server) in servers(request)? {
        let sandbox = sandbox(server)?;
        let network = sandbox.settings().and_then(|settings| settings.network.as_ref());
        if let Some(network) = network.filter(|network| !network.allowed_domains.is_empty()) {
            all.insert(name.clone(), json!(network.allowed_domains));
        }
    }
    Ok(json!({ "value": all }))
}

pub fn write(request: &Value) -> anyhow::Result<Value> {
    let files = files(request)?;
    let agent = request.pointer("/env/SSH_AUTH_SOCK").and_then(Value::as_str).filter(|path| !path.is_empty());
    let profile = profile(request.get("config").context("`config` is missing")?)?;
    let denied = profile.deny_read.clone().unwrap_or_default();
    SrtSettings::new(&profile, denied, &files.cwd, agent.map(Path::new)).write(&files)?;
    let written: Value = serde_json::from_slice(&std::fs::read(&files.settings)?)?;
    Ok(json!({
        "result": { "settingsPath": files.settings, "cwdPath": files.cwd },
        "settings": written,
        "cwdIsDir": files.cwd.is_dir(),
    }))
}

pub fn rewrite(request: &Value) -> anyhow::Result<Value> {
    let mut settings: SrtSettings = field(request, "settings")?;
    let additions = request.get("additions").context("`additions` is missing")?;
    settings.extend(&list_or_empty(additions, "allowRead")?, &list_or_empty(additions, "allowWrite")?);
    Ok(json!({ "settings": settings }))
}

/// Returns the command line that starts a server in its sandbox.
///
/// The other implementation starts servers in a different directory and rewrites relative paths. IronCurtain leaves
/// arguments unchanged.
pub fn wrap(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let (command, args): (String, Vec<String>) = (field(request, "command")?, field(request, "args")?);
    if request.pointer("/config/sandboxed") != Some(&Value::Bool(true)) {
        return Ok(json!({ "command": command, "args": args }));
    }
    let looks_relative =
        |arg: &str| !arg.starts_with(['/', '-']) && !arg.contains('@') && arg.contains(['/', '.']);
    let working_dir = data.working_dir.as_path();
    let from_here = |arg: String| if looks_relative(&arg) { absolute(&arg, working_dir) } else { arg };
    let program = Launch { command, args: args.into_iter().map(from_here).collect() };
    let files = files(request)?;
    let launch = ironcurtain_containment::launch("srt", &program, &files)?;
    let line = launch.args.last().context("the command string is missing")?;
    let output = Command::new("sh").args(["-c", &format!("printf '%s\\0' {line}")]).output()?;
    let mut argv: Vec<&str> = std::str::from_utf8(&output.stdout)?.split('\0').collect();
    argv.pop();
    Ok(
        json!({ "command": launch.command, "settingsPath": files.settings, "argv": argv, "args": launch.args }),
    )
}

pub fn blocked(request: &Value) -> anyhow::Result<Value> {
    let (message, sandboxed) = (text(request, "message")?, field(request, "sandboxed")?);
    Ok(json!({ "value": annotate(message, sandboxed).unwrap_or_else(|| message.to_owned()) }))
}

fn resolved(data: &DataSet, request: &Value, server: &Value, session: &str) -> anyhow::Result<Value> {
    let machine = Availability {
        usable: field(request, "platformAvailable")?,
        missing: vec!["the sandbox".to_owned()],
        fix_command: None,
        warnings: vec![],
    };
    let policy: SandboxPolicy = field(request, "sandboxPolicy")?;
    let home = data.home.as_path();
    let found =
        ironcurtain_containment::resolve(&sandbox(server)?, Path::new(session), &machine, policy, home)?;
    Ok(match found {
        Resolved::Unsandboxed(Exemption::OptOut) => json!({ "sandboxed": false, "reason": "opt-out" }),
        Resolved::Unsandboxed(Exemption::PlatformUnavailable) => {
            json!({ "sandboxed": false, "reason": "platform-unavailable" })
        }
        Resolved::Sandboxed(profile) => json!({
            "sandboxed": true,
            "config": {
                "allowWrite": profile.allow_write,
                "allowRead": profile.allow_read,
                "denyRead": profile.deny_read.map_or_else(|| json!(DENIED_BY_DEFAULT), |paths| json!(paths)),
                "denyWrite": profile.deny_write,
                "network": profile.network.map_or(Value::Bool(false), |network| {
                    json!({ "allowedDomains": network.allowed_domains, "deniedDomains": network.denied_domains })
                }),
            },
        }),
    })
}

fn sandbox(server: &Value) -> anyhow::Result<Sandbox> {
    Ok(server.get("sandbox").map(Sandbox::deserialize).transpose()?.unwrap_or_default())
}

/// Parses sandbox settings that are in the other implementation's format.
fn profile(config: &Value) -> anyhow::Result<Profile> {
    let network = config.get("network").filter(|network| network.is_object());
    Ok(Profile {
        allow_write: list_or_empty(config, "allowWrite")?,
        allow_read: list_or_empty(config, "allowRead")?,
        deny_read: Some(list_or_empty(config, "denyRead")?),
        deny_write: list_or_empty(config, "denyWrite")?,
        network: network.map(NetworkSettings::deserialize).transpose()?,
        ..Profile::default()
    })
}

fn files(request: &Value) -> anyhow::Result<ServerFiles> {
    Ok(ServerFiles::of(text(request, "serverName")?, Path::new(text(request, "settingsDir")?))?)
}

fn servers(request: &Value) -> anyhow::Result<&Map<String, Value>> {
    request.get("servers").and_then(Value::as_object).context("`servers` is missing")
}

fn field<T: DeserializeOwned>(request: &Value, name: &str) -> anyhow::Result<T> {
    let value = request.get(name).with_context(|| format!("`{name}` is missing"))?;
    Ok(T::deserialize(value)?)
}

fn list_or_empty(of: &Value, name: &str) -> anyhow::Result<Vec<String>> {
    Ok(of.get(name).map(Vec::deserialize).transpose()?.unwrap_or_default())
}
