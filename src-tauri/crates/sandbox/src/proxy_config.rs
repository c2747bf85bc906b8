//! Configuration that a command's proxy reads from standard input.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// Name of the proxy program, installed next to this one.
pub const PROXY_PROGRAM: &str = "ironcurtain-sandbox-proxy";

/// Hosts that the command is allowed to connect to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProxyConfig {
    /// Allowed domains, in the syntax of the settings.
    pub allowed: Vec<String>,
    /// Denied domains, which take precedence over allowed ones.
    pub denied: Vec<String>,
    /// Addresses that are denied for every host name.
    pub denied_addresses: Vec<AddressRange>,
    /// `true` to log every decision on standard error.
    pub debug: bool,
}

/// CIDR range or single address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AddressRange {
    first: IpAddr,
    bits: u8,
}

/// Invalid address range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid address range `{0}`; expected an address or a range such as `10.0.0.0/8`")]
pub struct RangeError(String);

impl AddressRange {
    /// Parses `10.0.0.0/8`, `fc00::/7` or a single address.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let read = || {
            let (address, bits) = match text.split_once('/') {
                Some((address, bits)) => (address, Some(bits)),
                None => (text, None),
            };
            let first: IpAddr = address.parse().ok()?;
            let most = if first.is_ipv4() { 32 } else { 128 };
            let plain = |bits: &str| bits.bytes().all(|digit| digit.is_ascii_digit());
            let bits = match bits {
                Some(bits) => bits.parse().ok().filter(|found| plain(bits) && *found <= most)?,
                None => most,
            };
            Some(Self { first, bits })
        };
        read().ok_or_else(|| RangeError(text.to_owned()))
    }

    /// Returns `true` if the range contains `address`. An IPv4-mapped IPv6 address counts as IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.first, address.to_canonical()) {
            (IpAddr::V4(first), IpAddr::V4(address)) => {
                let differs = u32::from(first) ^ u32::from(address);
                differs.checked_shr(u32::from(32 - self.bits)).unwrap_or_default() == 0
            }
            (IpAddr::V6(first), IpAddr::V6(address)) => {
                let differs = u128::from(first) ^ u128::from(address);
                differs.checked_shr(u32::from(128 - self.bits)).unwrap_or_default() == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

impl TryFrom<String> for AddressRange {
    type Error = RangeError;

    fn try_from(text: String) -> Result<Self, RangeError> {
        Self::parse(&text)
    }
}

impl From<AddressRange> for String {
    fn from(range: AddressRange) -> Self {
        format!("{}/{}", range.first, range.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contains_addresses_in_range() {
        for (range, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("192.168.1.10", "192.168.1.10", "192.168.1.11"),
            ("0.0.0.0/0", "8.8.8.8", "2001:db8::1"),
            ("fc00::/7", "fd00::1", "fe00::1"),
            ("10.0.0.0/8", "::ffff:10.1.1.1", "::10.1.1.1"),
        ] {
            let found = AddressRange::parse(range).unwrap();
            assert!(found.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!found.contains(outside.parse().unwrap()), "{range} {outside}");
        }
    }

    #[test]
    fn rejects_invalid_ranges() {
        for bad in
            ["", "10.0.0.0/33", "10.0.0.0/+8", "10.0.0/8", "[::1]", "::1/129", "example.com", "10.0.0.0/"]
        {
            assert_eq!(AddressRange::parse(bad), Err(RangeError(bad.to_owned())), "{bad}");
        }
    }
}
