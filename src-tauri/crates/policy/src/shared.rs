//! Values that are copied without copying what is in them: the names and reasons of rules go into every verdict.

use serde::{Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

/// A value that is cheap to clone: one of the program itself, or one that is kept as long as somebody has it.
pub struct Shared<T: ?Sized + 'static>(Kind<T>);

/// A text that is cheap to clone.
pub type SharedStr = Shared<str>;

enum Kind<T: ?Sized + 'static> {
    Fixed(&'static T),
    Kept(Arc<T>),
}

impl<T: ?Sized> Shared<T> {
    /// A value of the program itself.
    #[must_use]
    pub const fn fixed(value: &'static T) -> Self {
        Self(Kind::Fixed(value))
    }
}

impl Shared<str> {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self
    }
}

impl<T: ?Sized> Clone for Shared<T> {
    fn clone(&self) -> Self {
        match &self.0 {
            Kind::Fixed(value) => Self(Kind::Fixed(value)),
            Kind::Kept(value) => Self(Kind::Kept(Arc::clone(value))),
        }
    }
}

impl<T: ?Sized> Deref for Shared<T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.0 {
            Kind::Fixed(value) => value,
            Kind::Kept(value) => value,
        }
    }
}

impl<T: ?Sized> AsRef<T> for Shared<T> {
    fn as_ref(&self) -> &T {
        self
    }
}

impl<T> From<T> for Shared<T> {
    fn from(value: T) -> Self {
        Self(Kind::Kept(value.into()))
    }
}

impl From<String> for SharedStr {
    fn from(text: String) -> Self {
        Self(Kind::Kept(text.into()))
    }
}

impl From<&str> for SharedStr {
    fn from(text: &str) -> Self {
        Self(Kind::Kept(text.into()))
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

impl<T: ?Sized + PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        let (ours, theirs): (&T, &T) = (self, other);
        std::ptr::eq(ours, theirs) || ours == theirs
    }
}

impl<T: ?Sized + Eq> Eq for Shared<T> {}

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

impl<T: ?Sized + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}
