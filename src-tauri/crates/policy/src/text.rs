//! Text that is copied without copying its letters: the names and reasons of rules go into every verdict.

use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A text that is cheap to clone.
#[derive(Clone)]
pub struct SharedStr(Kind);

#[derive(Clone)]
enum Kind {
    Fixed(&'static str),
    Shared(Arc<str>),
}

impl SharedStr {
    /// A text of the program itself.
    #[must_use]
    pub const fn fixed(text: &'static str) -> Self {
        Self(Kind::Fixed(text))
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Kind::Fixed(text) => text,
            Kind::Shared(text) => text,
        }
    }
}

impl Deref for SharedStr {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for SharedStr {
    fn as_ref(&self) -> &str {
        self
    }
}

impl From<String> for SharedStr {
    fn from(text: String) -> Self {
        Self(Kind::Shared(text.into()))
    }
}

impl From<&str> for SharedStr {
    fn from(text: &str) -> Self {
        Self(Kind::Shared(text.into()))
    }
}

impl From<SharedStr> for String {
    fn from(text: SharedStr) -> Self {
        text.as_str().to_owned()
    }
}

impl Default for SharedStr {
    fn default() -> Self {
        Self::fixed("")
    }
}

impl PartialEq for SharedStr {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs) = (self.as_str(), other.as_str());
        std::ptr::eq(ours, theirs) || ours == theirs
    }
}

impl Eq for SharedStr {}

impl PartialEq<str> for SharedStr {
    fn eq(&self, other: &str) -> bool {
        **self == *other
    }
}

impl PartialEq<&str> for SharedStr {
    fn eq(&self, other: &&str) -> bool {
        **self == **other
    }
}

impl Serialize for SharedStr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl fmt::Display for SharedStr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&**self, formatter)
    }
}

impl fmt::Debug for SharedStr {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
