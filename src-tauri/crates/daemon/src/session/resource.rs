//! Which resources a client may name. A resource with a `file:` address is a file like any other, and file tools are
//! judged; there is no second way.
//!
//! - Readers of addresses disagree: some strip spaces and control characters before the scheme or take them out of it,
//!   some unwrap `<URL:...>` or the scheme inside another one. What any of them could take for a file is refused.

use super::params::ParamsError;
use super::refusal::denied;
use crate::consent::visible;
use crate::wire::Fields;
use rmcp::model::ErrorCode;
use serde_json::value::RawValue;

/// The number of characters of an address that are repeated.
const LONGEST_ADDRESS: usize = 200;

/// Why a resource may not be asked for.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResourceRefusal {
    /// It is not understood which one is meant.
    #[error(transparent)]
    Params(#[from] ParamsError),
    /// Some reader may pass over a character of the scheme, and find another one.
    #[error("the scheme of `{0}` has characters that no scheme has")]
    Scheme(String),
    /// It is a file.
    #[error("`{0}` is a file; read it with a tool of the server, which can be asked about")]
    File(String),
}

impl ResourceRefusal {
    /// The code and the text of the answer.
    pub(super) fn answer(&self) -> (ErrorCode, String) {
        match self {
            Self::Params(_) => (ErrorCode::INVALID_PARAMS, self.to_string()),
            Self::Scheme(_) | Self::File(_) => (ErrorCode::INVALID_REQUEST, denied(self)),
        }
    }
}

/// Checks that the resource that the parameters name may be asked for.
pub(super) fn checked(params: Option<&RawValue>) -> Result<(), ResourceRefusal> {
    let uri = uri(params)?;
    let shown = || visible::head(&visible::line(&uri), LONGEST_ADDRESS);
    if !has_plain_scheme(&uri) {
        return Err(ResourceRefusal::Scheme(shown()));
    }
    if names_a_file(&uri) {
        return Err(ResourceRefusal::File(shown()));
    }
    Ok(())
}

fn uri(params: Option<&RawValue>) -> Result<String, ParamsError> {
    let params = params.ok_or(ParamsError::NoUri)?;
    let params: Fields = serde_json::from_str(params.get()).map_err(ParamsError::unreadable("params"))?;
    params.without_twins(&["uri"])?;
    let uri = params.get("uri").ok_or(ParamsError::NoUri)?;
    serde_json::from_str(uri.get()).map_err(|_| ParamsError::NoUri)
}

/// True if all before the first colon is visible ASCII, of which a reader passes over nothing.
fn has_plain_scheme(uri: &str) -> bool {
    let scheme = uri.split_once(':').map_or(uri, |(scheme, _)| scheme);
    scheme.chars().all(|c| c.is_ascii_graphic())
}

/// True if the scheme, or one that it wraps, is `file`.
fn names_a_file(uri: &str) -> bool {
    let before_path = uri.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let Some((schemes, _)) = before_path.rsplit_once(':') else { return false };
    schemes.split([':', '+', '<']).any(|scheme| scheme.trim().eq_ignore_ascii_case("file"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked_uri(uri: &str) -> Result<(), String> {
        let params = RawValue::from_string(json!({ "uri": uri }).to_string()).unwrap();
        checked(Some(&params)).map_err(|refusal| refusal.answer().1)
    }

    #[test]
    fn no_spelling_of_a_file_passes() {
        for uri in [
            "file:///etc/passwd",
            "FILE:/etc/passwd",
            "file:etc",
            "file:\\\\host\\share",
            "url:file:///etc/passwd",
            "<URL:file:///etc/passwd>",
            "jar:file:/a.jar!/b",
            "git+file:///a",
        ] {
            let problem = checked_uri(uri).unwrap_err();
            let expected = format!(
                "DENIED: `{uri}` is a file; read it with a tool of the server, which can be asked about"
            );
            assert_eq!(problem, expected);
        }
        for uri in [
            " file:///etc/passwd",
            "\u{1}file:///etc/passwd",
            "\u{0}file:/x",
            "fi\tle:///etc/passwd",
            "fi\nle:/etc/passwd",
            "fi\r\nle:/etc/passwd",
            "file\t:///etc/passwd",
            "\u{feff}file:///etc/passwd",
            "\u{a0}file:/x",
            "\u{200b}file:/x",
            "\u{7f}file:/x",
            "no scheme",
        ] {
            let problem = checked_uri(uri).unwrap_err();
            assert!(problem.starts_with("DENIED: the scheme of `"), "{uri:?}: {problem}");
            assert!(problem.ends_with("` has characters that no scheme has"), "{uri:?}: {problem}");
        }
    }

    #[test]
    fn other_addresses_pass() {
        for uri in ["https://example.org/file:x", "memo://file/1", "my_notes://a b", "demo:profile:1", "note"]
        {
            assert_eq!(checked_uri(uri), Ok(()), "{uri}");
        }
    }

    #[test]
    fn a_second_address_in_another_case_is_refused() {
        let params = r#"{"uri":"memo://x","URI":"file:///etc/passwd"}"#;
        let params = RawValue::from_string(params.to_owned()).unwrap();
        let (code, problem) = checked(Some(&params)).unwrap_err().answer();
        assert_eq!((code, problem.as_str()), (ErrorCode::INVALID_PARAMS, "`params` has `URI` beside `uri`"));
        assert!(checked(None).is_err());
    }
}
