//! Qualified URIs, `ironcurtain://SERVER/URI`, for resources that several servers list.
//!
//! - INVARIANT: a server cannot claim a qualified URI. If a server lists a URI with our scheme, that URI is qualified
//!   again.

/// Scheme of qualified URIs.
const SCHEME: &str = "ironcurtain://";

/// Returns the qualified URI of a server's resource.
pub(crate) fn qualify(server: &str, uri: &str) -> String {
    format!("{SCHEME}{}/{uri}", encode(server))
}

/// Returns `true` if a URI uses our scheme.
pub(crate) fn is_reserved(uri: &str) -> bool {
    uri.get(..SCHEME.len()).is_some_and(|begins| begins.eq_ignore_ascii_case(SCHEME))
}

/// Splits a qualified URI into its server, which must be one of `servers`, and the server's own URI.
pub fn parse<'a, 'b>(uri: &'a str, servers: &'b [String]) -> Option<(&'b str, &'a str)> {
    let (server, server_uri) = uri.strip_prefix(SCHEME)?.split_once('/')?;
    let server = servers.iter().find(|known| encode(known) == server)?;
    Some((server, server_uri))
}

/// Percent-encodes a server name for use in a URI.
fn encode(server: &str) -> String {
    let mut text = String::new();
    for byte in server.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_address_maps_back_to_its_server() {
        let servers = ["a".to_owned(), "a/b".to_owned()];
        for (server, uri) in [("a", "memo://1"), ("a/b", "memo://1"), ("a", "ironcurtain://a/x")] {
            let one = qualify(server, uri);
            assert_eq!(parse(&one, &servers), Some((server, uri)), "{one}");
            assert!(is_reserved(&one));
        }
        assert_eq!(parse("ironcurtain://other/memo://1", &servers), None);
        assert!(is_reserved("IronCurtain://a/x") && !is_reserved("memo://ironcurtain://"));
    }
}
