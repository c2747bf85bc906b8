//! Exposes the request parser for fuzzing.

use crate::wire::{Operation, Request};
use std::ffi::OsStr;

/// Returns the names in a request, or an empty list if the request is malformed.
#[must_use]
pub fn names_in(request: &[u8]) -> Vec<&OsStr> {
    let Ok(Request { operation, .. }) = Request::parse(request) else { return vec![] };
    match operation {
        Operation::Lookup(name)
        | Operation::MakeLink { name, .. }
        | Operation::MakeNode { name, .. }
        | Operation::MakeFolder { name, .. }
        | Operation::Unlink(name)
        | Operation::RemoveFolder(name)
        | Operation::HardLink { name, .. } => vec![name],
        Operation::Rename { name, new_name, .. } => vec![name, new_name],
        Operation::Init { .. }
        | Operation::Destroy
        | Operation::Forget(_)
        | Operation::GetAttributes { .. }
        | Operation::SetAttributes(_)
        | Operation::ReadLink
        | Operation::Open { .. }
        | Operation::Read { .. }
        | Operation::Write { .. }
        | Operation::Statistics
        | Operation::Release { .. }
        | Operation::Sync { .. }
        | Operation::Flush { .. }
        | Operation::GetLock(_)
        | Operation::SetLock { .. }
        | Operation::OpenFolder
        | Operation::ReadFolder { .. }
        | Operation::ReleaseFolder { .. }
        | Operation::SyncFolder
        | Operation::Allocate { .. }
        | Operation::Seek { .. }
        | Operation::Interrupt { .. }
        | Operation::Unsupported => vec![],
    }
}
