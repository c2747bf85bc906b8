//! Parses a registry's `WWW-Authenticate` header.

use url::Url;

/// Credentials that a registry requires.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// A user name and a password.
    Basic,
    /// A token from a token service.
    Bearer(TokenRequest),
}

/// Request for a token, with the registry's parameters.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct TokenRequest {
    realm: String,
    /// `service` and `scope`, in this order.
    query: Vec<(&'static str, String)>,
}

impl Challenge {
    /// Returns the first supported challenge in these headers.
    pub(super) fn find<'a>(mut headers: impl Iterator<Item = &'a str>) -> Option<Self> {
        headers.find_map(Self::parse)
    }

    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once(' ').unwrap_or((text, ""));
        match scheme.to_ascii_lowercase().as_str() {
            "basic" => Some(Self::Basic),
            "bearer" => Some(Self::Bearer(TokenRequest::parse(rest))),
            _ => None,
        }
    }
}

impl TokenRequest {
    fn parse(mut text: &str) -> Self {
        let mut request = Self::default();
        while let Some((name, rest)) = text.split_once('=') {
            let (value, rest) = value(rest);
            match name.trim_matches([' ', '\t', ',']).to_ascii_lowercase().as_str() {
                "realm" => request.realm = value,
                "service" => request.query.push(("service", value)),
                "scope" => request.query.push(("scope", value)),
                _ => {}
            }
            text = rest;
        }
        request
    }

    /// Returns the URL of the request, or `None` if the registry named no valid token service.
    pub(super) fn url(&self) -> Option<Url> {
        let mut url = Url::parse(&self.realm).ok()?;
        url.query_pairs_mut().extend_pairs(&self.query);
        Some(url)
    }
}

/// Splits off a parameter's value, which may be quoted.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let (value, rest) = text.split_once(',').unwrap_or((text, ""));
        return (value.trim().to_owned(), rest);
    };
    let (mut value, mut chars) = (String::new(), quoted.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => break,
            '\\' => value.extend(chars.next()),
            _ => value.push(c),
        }
    }
    (value, chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(header: &str) -> String {
        match Challenge::find([header].into_iter()) {
            Some(Challenge::Bearer(request)) => request.url().map(String::from).unwrap_or_default(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn challenges_name_the_token_service() {
        let found =
            Challenge::find(["Negotiate", "basic realm=\"x\"", "Bearer realm=\"https://a\""].into_iter());
        assert_eq!(found, Some(Challenge::Basic));
        assert_eq!(Challenge::find(["Digest realm=\"Bearer \""].into_iter()), None);
        for (header, expected) in [
            (
                r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a/b:pull,push""#,
                "https://auth.example/token?service=r.example&scope=repository%3Aa%2Fb%3Apull%2Cpush",
            ),
            (
                r#"bearer Service=r.example, error="a \"realm=x\", b", realm="https://auth.example/t?a=1""#,
                "https://auth.example/t?a=1&service=r.example",
            ),
            ("Bearer realm=\"https://auth.example/t", "https://auth.example/t?"),
            ("Bearer realm=https://auth.example/t , scope=a", "https://auth.example/t?scope=a"),
            (r#"Bearer scope="&realm=https://x""#, ""),
            ("Bearer realm", ""),
            ("Bearer", ""),
        ] {
            assert_eq!(url(header), expected, "{header}");
        }
    }
}
