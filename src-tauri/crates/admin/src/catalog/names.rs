//! Names of packages and addresses, as users and documentation write them. Pure.

use url::Url;

/// Returns `true` if the text is an `http` or `https` URL.
pub(super) fn is_remote_address(what: &str) -> bool {
    what.starts_with("https://") || what.starts_with("http://")
}

/// Returns `true` if the text is a package name without a scope. The name may include a version.
pub(super) fn is_package_name(what: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@' | '=');
    what.starts_with(|c: char| c.is_ascii_alphanumeric()) && what.chars().all(is_part)
}

/// Returns `true` if the text is `@scope/name`. The name may include a version.
pub(super) fn is_scoped(what: &str) -> bool {
    let parts = what.strip_prefix('@').and_then(|rest| rest.split_once('/'));
    parts.is_some_and(|(scope, name)| !scope.is_empty() && !name.is_empty() && !name.contains('/'))
}

/// Derives a server name from the host of an address. A user name before `@` is not part of the host.
pub(super) fn host_name(url: &str) -> String {
    let host = Url::parse(url).ok().and_then(|url| Some(url.host_str()?.to_owned())).unwrap_or_default();
    host.trim_matches(['[', ']']).replace(':', "-")
}

/// Returns a package name without its scope and version.
pub(super) fn short_name(package: &str) -> String {
    let name = package.rsplit('/').next().unwrap_or_default();
    let end = name.find(['@', '=', '[', '<', '>']).unwrap_or(name.len());
    name.get(..end).unwrap_or_default().to_owned()
}
