//! Canonical paths: the one type that says where a path really leads, and the only code that finds it out.
//!
//! - [`CanonicalPath`] is lexical and always available: judging compares paths and never touches the disk.
//! - [`Resolver`], behind the default feature `resolve`, is the only code that follows symlinks.
//! - Whatever cannot be resolved is an error, never a guess: the caller denies.
//! - [`OwnProgram`], behind the default feature `program`, is how our programs start each other.
//! - [`bounded_read`], behind the default feature `files`, is how files are opened that may be something else, and
//!   [`atomic_file`] how they are replaced.
//! - [`protected`] lists the paths of secrets and of agents' clients. It is data.

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
