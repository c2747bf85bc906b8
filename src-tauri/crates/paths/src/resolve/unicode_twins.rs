//! Detects names that are the same text in different Unicode forms.
//!
//! - The kernel treats such names as different, but if one name does not exist, some servers open the file with the
//!   other name. Such a server would open a file that was not judged, so the path is rejected.

use super::PathError;
use std::path::Path;
use unicode_normalization::UnicodeNormalization as _;

/// ASCII characters with a canonically equivalent non-ASCII character: `K` (Kelvin sign), `;` (Greek question mark) and
/// the backtick (Greek varia).
const ASCII_WITH_TWINS: [u8; 3] = *b"K;`";

/// Returns `true` if the text may have an equivalent in a different Unicode form.
pub(super) fn may_have_twin(text: &str) -> bool {
    text.bytes().any(|byte| !byte.is_ascii() || ASCII_WITH_TWINS.contains(&byte))
}

/// Returns an error if the parent folder of `path` contains the same name in a different Unicode form. `path` itself
/// must not exist.
pub(super) fn reject_twin(path: &str) -> Result<(), PathError> {
    let Some((folder, name)) = path.rsplit_once('/').filter(|(_, name)| may_have_twin(name)) else {
        return Ok(());
    };
    let folder = if folder.is_empty() { "/" } else { folder };
    let unreadable = |source| PathError::Unreadable { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(Path::new(folder)).map_err(unreadable)? {
        let found = entry.map_err(unreadable)?.file_name();
        if found.to_str().is_some_and(|found| found != name && found.nfc().eq(name.nfc())) {
            let found = found.to_string_lossy().escape_default().to_string();
            return Err(PathError::OtherUnicodeForm { path: path.to_owned(), found });
        }
    }
    Ok(())
}
