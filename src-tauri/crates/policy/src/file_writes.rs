//! Strategy by which a server writes files, which determines the folders that its sandbox must make writable.

/// Strategy by which a server writes files, as set in its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileWrites {
    /// Opens the file and writes to it. The server needs access to the file only.
    #[default]
    InPlace,
    /// Creates a new file in the same folder and renames it. The server needs access to the folder.
    Replace,
}
