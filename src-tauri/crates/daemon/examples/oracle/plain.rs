//! Answers requests about individual paths, hosts, schemas and folders.

use crate::data_set::DataSet;
use crate::text;
use anyhow::Context;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Category, Decision, Destination, HostPattern, Role, check_schema, is_ip_address};
use serde_json::{Value, json};
use url::Url;

pub fn roots(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let sandbox = data.sandbox(request)?;
    let policy = data.policy(request)?;
    // Collects the session folder, then the folder of each rule that allows or escalates, without duplicates.
    let mut found: Vec<(&CanonicalPath, &str)> = sandbox.iter().map(|path| (path, "sandbox")).collect();
    for rule in policy.rules().iter().filter(|rule| rule.then != Decision::Deny) {
        let folder = rule.within().filter(|path| !found.iter().any(|(known, _)| known == path));
        found.extend(folder.map(|path| (path, &**rule.name())));
    }
    let roots: Vec<Value> = found.iter().map(|(path, name)| json!({ "path": path, "name": name })).collect();
    let mcp_roots: Vec<Value> = found.iter().map(|(path, name)| mcp_root(path, name)).collect();
    Ok(json!({ "roots": roots, "mcpRoots": mcp_roots }))
}

pub fn to_mcp_roots(request: &Value) -> anyhow::Result<Value> {
    let roots = request.get("roots").and_then(Value::as_array).context("`roots` is missing")?;
    let one = |root: &Value| {
        anyhow::Ok(mcp_root(&CanonicalPath::assume_canonical(text(root, "path")?)?, text(root, "name")?))
    };
    Ok(json!({ "mcpRoots": roots.iter().map(one).collect::<Result<Vec<_>, _>>()? }))
}

fn mcp_root(path: &CanonicalPath, name: &str) -> Value {
    json!({ "uri": path.file_uri(), "name": name })
}

/// Returns the servers that a policy needs. Omits `proxy`, which is a component of the other implementation.
pub fn required_servers(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let policy = data.policy(request)?;
    let servers: Vec<&str> = policy.servers().into_iter().filter(|server| *server != "proxy").collect();
    Ok(json!({ "servers": servers }))
}

pub fn real_path(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    Ok(json!({ "value": data.resolve(text(request, "input")?)? }))
}

/// Returns the folder that contains a path. A path with a trailing slash is a folder itself.
pub fn directory(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let raw = text(request, "input")?;
    let found = data.resolve(raw)?;
    let folder = if raw.ends_with('/') { None } else { found.parent() };
    Ok(json!({ "value": folder.unwrap_or(found) }))
}

pub fn is_within(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let (path, folder) = (data.resolve(text(request, "input")?)?, data.resolve(text(request, "directory")?)?);
    Ok(json!({ "value": folder.contains(&path) }))
}

pub fn expand_tilde(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let raw = text(request, "input")?;
    let expanded = data.resolver(&data.working_dir).expand_home(raw);
    Ok(json!({ "value": expanded.unwrap_or_else(|| raw.to_owned()) }))
}

pub fn is_ip(request: &Value) -> anyhow::Result<Value> {
    Ok(json!({ "value": is_ip_address(text(request, "input")?) }))
}

pub fn canonicalize(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let (role, raw) = (role(request)?, text(request, "input")?);
    let value = match role.category() {
        Category::Path => data.resolve(raw)?.to_string(),
        Category::Url => without_slash(Destination::parse(role, raw).text().to_owned()),
        Category::Identifier => raw.to_lowercase(),
        Category::Opaque => raw.to_owned(),
    };
    Ok(json!({ "value": value }))
}

/// Removes a trailing slash from a URL, as the other implementation does.
///
/// Returns text that is not a URL unchanged. IronCurtain itself removes the slash only from a URL without a path,
/// because a server may interpret the slash in a path.
pub fn without_slash(mut address: String) -> String {
    let is_address = address.contains("://") && Url::parse(&address).is_ok();
    if is_address && address.ends_with('/') {
        address.pop();
    }
    address
}

/// Returns the domain of a URL. The other implementation treats a value that it cannot parse as a host name.
pub fn domain_of(data: &DataSet, request: &Value) -> anyhow::Result<Value> {
    let role = role(request)?;
    if role.category() != Category::Url {
        return canonicalize(data, request);
    }
    let destination = Destination::parse(role, text(request, "input")?);
    Ok(json!({ "value": destination.domain().unwrap_or(destination.text()) }))
}

pub fn domain_matches(request: &Value) -> anyhow::Result<Value> {
    let domain = text(request, "domain")?;
    let patterns = request.get("allowed").and_then(Value::as_array).context("`allowed` is missing")?;
    let covers = |pattern: &str| HostPattern::parse(pattern).covers(domain);
    Ok(json!({ "value": patterns.iter().filter_map(Value::as_str).any(covers) }))
}

pub fn validate(request: &Value) -> anyhow::Result<Value> {
    let schema = request.get("inputSchema").context("`inputSchema` is missing")?;
    let arguments = request.get("args").and_then(Value::as_object).context("`args` is missing")?;
    let problem = check_schema(schema, arguments).err();
    Ok(json!({ "valid": problem.is_none(), "message": problem.map(|problem| problem.to_string()) }))
}

fn role(request: &Value) -> anyhow::Result<Role> {
    let name = text(request, "role")?;
    Role::parse(name).with_context(|| format!("unknown role `{name}`"))
}
