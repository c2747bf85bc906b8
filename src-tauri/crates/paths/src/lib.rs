//! Canonical paths, path resolution and safe file access.
//!
//! - [`CanonicalPath`] is always available. It never accesses the disk, so policies can compare paths without I/O.
//! - [`Resolver`] is the only code that follows symlinks (default feature `resolve`). If a path cannot be resolved,
//!   it returns an error, and the caller must deny access.
//! - [`OwnProgram`] starts IronCurtain's own programs (default feature `program`).
//! - [`bounded_read`] opens paths that may not be regular files, and [`atomic_file`] replaces files (default feature
//!   `files`).
//! - [`protected`] lists the paths of secrets and of agent clients' configurations.

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
pub use program::{OwnProgram, SYSTEM_PATH, is_trusted_owner, is_writable_by_others};
#[cfg(all(unix, feature = "files"))]
pub use random_name::random_name;
#[cfg(feature = "resolve")]
pub use resolve::{Link, PathError, PathKind, Resolution, Resolver};
