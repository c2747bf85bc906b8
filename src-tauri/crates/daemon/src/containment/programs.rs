//! Finding the programs that servers are.

use std::path::{Path, PathBuf};

/// The program's real file: an absolute path, one of ours, or the first on the path.
///
/// # Errors
/// A sentence that names the program.
pub(crate) fn find_program(command: &str, ours: &Path) -> Result<PathBuf, String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = if command.starts_with('/') {
        Some(PathBuf::from(command))
    } else if command.contains('/') {
        return Err(format!("`{command}` is a relative path; write the whole path or a name"));
    } else {
        let dirs = std::iter::once(ours.to_path_buf()).chain(std::env::split_paths(&path));
        dirs.map(|dir| dir.join(command)).find(|p| p.is_file())
    };
    let found = found.ok_or_else(|| format!("the program `{command}` is nowhere on the path"))?;
    found.canonicalize().map_err(|e| format!("the program `{}` cannot be used: {e}", found.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_nowhere_is_named() {
        let problem = find_program("no-such-program", Path::new("/nonexistent"));
        assert_eq!(problem, Err("the program `no-such-program` is nowhere on the path".into()));
        assert!(find_program("./x", Path::new("/nonexistent")).unwrap_err().contains("relative path"));
    }
}
