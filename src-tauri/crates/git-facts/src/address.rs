//! Prepares remote addresses for the policy, for display and for the audit log.
//!
//! - A displayed address contains no password. The policy's parser finds the same target in it as in the original.
//! - An address that git and the parser may interpret differently is reported as unknown.

use super::UnknownAddress;
use ironcurtain_policy::{Destination, Role};

/// Returns an address for display, without a password or token. Fails if the address is ambiguous.
pub(super) fn for_display(address: &str) -> Result<String, UnknownAddress> {
    let trimmed = address.trim() == address;
    if !trimmed || address.contains(|c: char| c.is_control() || c == '\\') {
        return Err(UnknownAddress::Ambiguous);
    }
    let bare_address = without_login(address);
    let (parsed, parsed_bare) = (parse(address), parse(&bare_address));
    let same =
        (parsed.domain(), parsed.host_and_port()) == (parsed_bare.domain(), parsed_bare.host_and_port());
    // Without a host, another part of the address may contain a password.
    let may_hide_password = parsed_bare.domain().is_none() && has_password(&bare_address);
    if same && !may_hide_password { Ok(bare_address) } else { Err(UnknownAddress::Ambiguous) }
}

/// Returns the address to send to the server instead of the one that the agent wrote.
pub(super) fn to_send(written: &str) -> String {
    parse(written).text().to_owned()
}

fn parse(address: &str) -> Destination {
    Destination::parse(Role::GitRemoteUrl, address)
}

fn without_login(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let Some((login, host)) = authority.rsplit_once('@') else { return address.to_owned() };
    match login.split_once(':') {
        // Code hosts accept a token in place of the user name.
        _ if scheme.starts_with("http") => format!("{scheme}://{host}{path}"),
        Some((name, _)) => format!("{scheme}://{name}@{host}{path}"),
        None => address.to_owned(),
    }
}

fn has_password(address: &str) -> bool {
    let login = address.split_once("://").and_then(|(_, rest)| rest.rsplit_once('@'));
    login.is_some_and(|(login, _)| login.contains(':'))
}
