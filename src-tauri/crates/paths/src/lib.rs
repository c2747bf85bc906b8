//! Canonical paths: a type for resolved paths, and the only code that resolves them.
//!
//! - [`CanonicalPath`] is lexical and always available: policy code compares paths and never touches the disk.
//! - [`Resolver`], behind the default feature `resolve`, is the only code that follows symlinks.
//! - A path that cannot be resolved is an error, never a guess: the caller denies.
//! - [`OwnProgram`], behind the default feature `program`, starts our own programs.
//! - [`bounded_read`], behind the default feature `files`, opens files that may not be regular files, and
//!   [`atomic_file`] replaces files.
//! - [`protected`] lists the paths of secrets and of agent clients. It is data.

#[cfg(all(unix, feature = "files"))]
pub mod atomic_file;
#[cfg(all(unix, feature = "files"))]
pub mod bounded_read;
mod canonical;
#[cfg(all(unix, feature = "program"))]
mod program;
pub mod protected;
#[cfg(all(unix, feature = "files"))]
mod random_name;
#[cfg(feature = "resolve")]
mod resolve;

pub use canonical::{CanonicalPath, NotCanonicalError};
#[cfg(all(unix, feature = "program"))]
pub use program::{OwnProgram, SYSTEM_PATH, is_trusted_owner, is_written_by_others};
#[cfg(all(unix, feature = "files"))]
pub use random_name::random_name;
#[cfg(feature = "resolve")]
pub use resolve::{Link, PathError, PathKind, Resolution, Resolver};
