//! Method by which a server writes files. It determines which folders the sandbox must make writable.

/// Method by which a server writes files, as set in its configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FileWrites {
    /// Opens the file and writes to it. The server needs access only to the file.
    #[default]
    InPlace,
    /// Creates a new file in the same folder and renames it. The server needs access to the folder.
    Replace,
}
