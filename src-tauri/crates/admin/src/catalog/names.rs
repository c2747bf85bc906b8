//! Names of packages and addresses, as users and documentation write them. Pure.

use url::Url;

/// Returns whether a text is an address of the web.
pub(super) fn is_remote_address(what: &str) -> bool {
    what.starts_with("https://") || what.starts_with("http://")
}

/// Returns whether a text is a package name without a scope, with or without a version.
pub(super) fn is_package_name(what: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '=');
    what.starts_with(|c: char| c.is_ascii_alphanumeric()) && what.chars().all(is_part)
}

/// Returns whether a name is `@scope/name`, with or without a version.
pub(super) fn is_scoped(what: &str) -> bool {
    let parts = what.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(scope, name)| !scope.is_empty() && !name.is_empty() && !name.contains('/'))
}

/// Returns the host of an address as a server name. User information before an `@` is not part of the host.
pub(super) fn host_name(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default();
    host.trim_matches(['[', ']']).replace(':', "-")
}

/// Returns a package name without scope and version.
pub(super) fn short_name(package: &str) -> String {
    let name = package.rsplit('/').next().unwrap_or_default();
    let end = name.find(['@', '=', '[', '<', '>']).unwrap_or(name.len());
    name.get(..end).unwrap_or_default().to_owned()
}
