//! File with the desktops that root permits to pair with this machine.

use crate::channel::PeerKey;
use ironcurtain_config::{ManagedError, read_root_file};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// File with the keys of the desktops that root permits to pair, by name.
pub const ROOT_DESKTOPS: &str = "/etc/ironcurtain/desktops.json";

/// Failure to read the file.
#[derive(Debug, thiserror::Error)]
pub enum RootDesktopsError {
    /// Reading failed, or a user other than root can change the file.
    #[error(transparent)]
    File(#[from] ManagedError),
    /// The file is malformed.
    #[error("failed to read `{ROOT_DESKTOPS}`: {0}")]
    Invalid(#[from] serde_json::Error),
}

/// Returns the keys in the file by name. A missing file permits no desktops.
///
/// # Errors
/// Returns [`RootDesktopsError`] if the file cannot be read, is malformed, or can be changed by a user other than root.
pub fn permitted_desktops(file: &Path) -> Result<BTreeMap<String, PeerKey>, RootDesktopsError> {
    match read_root_file(file) {
        Ok(text) => keys(&text),
        Err(ManagedError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Ok(BTreeMap::new())
        }
        Err(problem) => Err(problem.into()),
    }
}

fn keys(text: &str) -> Result<BTreeMap<String, PeerKey>, RootDesktopsError> {
    Ok(serde_json::from_str(text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChannelKey;

    #[test]
    fn only_root_can_permit_a_desktop_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let (file, key) =
            (dir.path().join("desktops.json"), ChannelKey::from_seed(&[1; 32]).unwrap().public());
        assert!(permitted_desktops(Path::new("/etc/ironcurtain/no/desktops.json")).unwrap().is_empty());
        let line = format!("\"laptop\": \"{key}\"");
        std::fs::write(&file, format!("{{{line}}}")).unwrap();
        // Other users can write to the folder for temporary files.
        let refused = permitted_desktops(&file).unwrap_err().to_string();
        assert!(refused.contains("other users can write to it"), "{refused}");
        assert_eq!(keys(&format!("{{{line}}}")).unwrap().get("laptop"), Some(&key));
        let refused = keys(&format!("{{}}\n{{{line}}}")).unwrap_err().to_string();
        assert!(refused.contains("failed to read `/etc/ironcurtain/desktops.json`: trailing"), "{refused}");
    }
}
