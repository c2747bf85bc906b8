//! Ways in which a server writes files, which determine how much of the disk it must access.

/// The way a server writes files, from its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileWrites {
    /// Opens the file and writes to it; needs access only to the file.
    #[default]
    InPlace,
    /// Writes a new file in the same folder and renames it; needs access to the folder.
    Replace,
}
