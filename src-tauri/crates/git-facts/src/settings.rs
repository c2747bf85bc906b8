//! Settings from git's configuration, in the order in which git reads them.

use super::UnknownAddress;

/// Names and values of settings. Section and key are in lower case. The subsection is as written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct GitSettings(pub(super) Vec<(String, Option<String>)>);

impl GitSettings {
    /// Parses the output of `git config --list -z`.
    pub(super) fn parse(output: &[u8]) -> Result<Self, UnknownAddress> {
        let text = str::from_utf8(output).map_err(|_| UnknownAddress::Unparsable)?;
        let setting = |entry: &str| match entry.split_once('\n') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (entry.to_owned(), None),
        };
        Ok(Self(text.split_terminator('\0').map(setting).collect()))
    }

    /// Iterates over the values of a setting, in order. The last value takes precedence.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).filter_map(|(_, value)| value.as_deref())
    }

    /// Returns the last value of a setting, which takes precedence.
    pub(super) fn last<'a>(&'a self, name: &'a str) -> Option<&'a str> {
        self.all(name).last()
    }

    /// Returns `true` if a boolean setting is on. Fails for the less common spellings that git also accepts.
    pub(super) fn is_on(&self, name: &str) -> Result<bool, UnknownAddress> {
        let Some((_, value)) = self.0.iter().rfind(|(known, _)| known == name) else { return Ok(false) };
        let Some(value) = value else { return Ok(true) };
        match value.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => Ok(true),
            "false" | "no" | "off" | "0" | "" => Ok(false),
            _ => Err(UnknownAddress::Unparsable),
        }
    }

    /// Iterates over the subsections of a section that set a key, with the key's value.
    pub(super) fn subsections<'a>(
        &'a self,
        section: &'a str,
        name: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(known, value)| {
            Some((known.strip_prefix(section)?.strip_suffix(name)?, value.as_deref()?))
        })
    }
}
