//! The way a server writes files, which says how much of the disk it must reach.

/// The way a server writes files, from its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileWrites {
    /// Opens the file and writes into it: it needs no more than the file.
    #[default]
    InPlace,
    /// Writes a new file beside it and renames that over it: it needs the folder.
    Replace,
}
