//! Resolves folders in a client's `file` URIs (RFC 8089) and paths in a server's entry, and checks whether they may be
//! proposed.
//!
//! - Refuses anything that is not certainly a path on this machine in canonical form. Every refusal has a reason.

use ironcurtain_grants::GrantLimits;
use ironcurtain_paths::{CanonicalPath, NotCanonicalError, PathError, PathKind, Resolver};
use ironcurtain_policy::GrantKind;
use percent_encoding::percent_decode_str;

/// System folders that cannot be a workspace, because a grant would expose files of the whole system.
const SYSTEM: [&str; 22] = [
    "/",
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/usr/local",
    "/var",
];

/// System folders that cannot be or contain a workspace.
const SYSTEM_AND_BELOW: [&str; 7] = ["/bin", "/boot", "/dev", "/etc", "/proc", "/sbin", "/sys"];

/// Maximum length of a URI, in bytes.
const MAX_LEN: usize = 4096;

/// Reason why a path is not proposed.
#[derive(Debug, thiserror::Error)]
pub(super) enum FolderRefusal {
    /// The URI is too long. Contains its length in bytes.
    #[error("its URI is {0} bytes long; the limit is {MAX_LEN} bytes")]
    TooLong(usize),
    /// The URI does not use the `file` scheme.
    #[error("it is not a `file` URI; write `file:///` and the path")]
    NotFileUri,
    /// The URI refers to another machine. Contains that machine's name.
    #[error("it is on another machine, `{0}`")]
    OtherMachine(String),
    /// The URI contains parts that different parsers interpret differently.
    #[error("its URI has a query, a fragment, a backslash or an encoded slash")]
    Ambiguous,
    /// The path is not UTF-8.
    #[error("its path is not UTF-8")]
    NotUtf8,
    /// The path is not in canonical form.
    #[error(transparent)]
    NotCanonical(#[from] NotCanonicalError),
    /// The path cannot be resolved.
    #[error(transparent)]
    Unresolved(#[from] PathError),
    /// The path does not exist, or is not a folder.
    #[error("it does not exist or is not a folder")]
    NoFolder,
    /// The path does not exist, or is neither a file nor a folder.
    #[error("it does not exist or is not a file or folder")]
    NotFileOrFolder,
    /// The path is or contains the home directory.
    #[error("it is or contains your home folder")]
    Home,
    /// The path is a system folder or is inside one.
    #[error("it is one of the system's own folders")]
    System,
    /// The path contains or is inside a protected location.
    #[error("it contains or is inside a protected folder")]
    Protected,
    /// The policy denies access to the path.
    #[error("the policy denies it")]
    Denied,
}

/// Resolves a URI to a folder, following symlinks. Blocks on file access.
pub(super) fn resolve(uri: &str, resolver: &Resolver) -> Result<CanonicalPath, FolderRefusal> {
    let path = path(uri)?;
    let found = resolver.resolve(path.as_str())?;
    match found.target {
        PathKind::Folder => Ok(found.path),
        PathKind::File { .. } | PathKind::Special | PathKind::Missing => Err(FolderRefusal::NoFolder),
    }
}

/// Resolves a path to a file or folder, following symlinks. Blocks on file access.
pub(super) fn resolve_existing(
    path: &str,
    resolver: &Resolver,
) -> Result<(CanonicalPath, GrantKind), FolderRefusal> {
    let found = resolver.resolve(path)?;
    match found.target {
        PathKind::Folder => Ok((found.path, GrantKind::Tree)),
        PathKind::File { .. } => Ok((found.path, GrantKind::File)),
        PathKind::Special | PathKind::Missing => Err(FolderRefusal::NotFileOrFolder),
    }
}

/// Parses the path in a `file` URI without accessing the file system.
fn path(uri: &str) -> Result<CanonicalPath, FolderRefusal> {
    if uri.len() > MAX_LEN {
        return Err(FolderRefusal::TooLong(uri.len()));
    }
    let (scheme, rest) = uri.split_once("://").ok_or(FolderRefusal::NotFileUri)?;
    if !scheme.eq_ignore_ascii_case("file") {
        return Err(FolderRefusal::NotFileUri);
    }
    let (host, path) = rest.split_at_checked(rest.find('/').unwrap_or(rest.len())).unwrap_or((rest, ""));
    if !(host.is_empty() || host.eq_ignore_ascii_case("localhost")) {
        return Err(FolderRefusal::OtherMachine(host.to_owned()));
    }
    if path.contains(['?', '#', '\\']) || path.to_ascii_lowercase().contains("%2f") {
        return Err(FolderRefusal::Ambiguous);
    }
    let path = percent_decode_str(path).decode_utf8().map_err(|_| FolderRefusal::NotUtf8)?;
    let without_slash = path.strip_suffix('/').filter(|path| !path.is_empty());
    Ok(CanonicalPath::assume_canonical(without_slash.unwrap_or(&path))?)
}

/// Checks that a path may be proposed as a workspace.
pub(super) fn check(folder: &CanonicalPath, limits: &GrantLimits<'_>) -> Result<(), FolderRefusal> {
    let is_below =
        |system: &&str| CanonicalPath::assume_canonical(system).is_ok_and(|system| system.contains(folder));
    if folder.contains(limits.home) {
        Err(FolderRefusal::Home)
    } else if SYSTEM.contains(&folder.as_str()) || SYSTEM_AND_BELOW.iter().any(is_below) {
        Err(FolderRefusal::System)
    } else if !limits.may_be_granted(folder) {
        Err(FolderRefusal::Protected)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(uri: &str) -> String {
        path(uri).unwrap_err().to_string()
    }

    #[test]
    fn only_canonical_local_file_uris_are_accepted() {
        for (uri, expected) in [
            ("file:///home/u/app", "/home/u/app"),
            ("file:///home/u/app/", "/home/u/app"),
            ("FILE://localhost/home/u/my%20app", "/home/u/my app"),
            ("file:///home/u/gr%C3%BCn", "/home/u/grün"),
            ("file:///", "/"),
        ] {
            assert_eq!(path(uri).unwrap().as_str(), expected, "{uri}");
        }
        for (uri, why) in [
            ("", "it is not a `file` URI"),
            ("/home/u/app", "it is not a `file` URI"),
            ("https://example.org/app", "it is not a `file` URI"),
            ("file:", "it is not a `file` URI"),
            ("file://", "`` is not an absolute path"),
            ("file://host/app", "it is on another machine, `host`"),
            ("file://home", "it is on another machine, `home`"),
            ("file:///home/u/../../etc", "is not in canonical form"),
            ("file:///home/u/%2e%2e/x", "is not in canonical form"),
            ("file:///home/u/./x", "is not in canonical form"),
            ("file:////host/share", "is not in canonical form"),
            ("file:///home/u%2Fx", "an encoded slash"),
            ("file:///home/u?x", "a query"),
            ("file:///home/u#x", "a fragment"),
            ("file:///c:\\x", "a backslash"),
            ("file:///a%00b", "contains a NUL character"),
            ("file:///a%FFb", "its path is not UTF-8"),
        ] {
            assert!(refused(uri).contains(why), "{uri}: {}", refused(uri));
        }
        assert!(refused(&format!("file:///{}", "x".repeat(5000))).contains("is 5008 bytes long"));
    }

    #[test]
    fn links_are_resolved_and_non_folders_are_rejected() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("real")).unwrap();
        std::fs::write(base.join("file"), "").unwrap();
        std::os::unix::fs::symlink("real", base.join("link")).unwrap();
        let root = CanonicalPath::root();
        let resolver = Resolver::new(root.clone(), root);
        let at = |name: &str| resolve(&format!("file://{}", base.join(name).display()), &resolver);
        assert_eq!(at("link").unwrap().as_path(), base.join("real"));
        for name in ["file", "gone"] {
            assert!(matches!(at(name), Err(FolderRefusal::NoFolder)), "{name}");
        }
        let existing = |name: &str| resolve_existing(base.join(name).to_str().unwrap(), &resolver);
        assert_eq!(existing("link").unwrap(), (at("real").unwrap(), GrantKind::Tree));
        assert_eq!(existing("file").unwrap().1, GrantKind::File);
        assert!(matches!(existing("gone"), Err(FolderRefusal::NotFileOrFolder)));
    }

    #[test]
    fn home_system_and_protected_folders_are_rejected() {
        let at = |path: &str| CanonicalPath::assume_canonical(path).unwrap();
        let (home, protected) = (at("/home/u"), [at("/home/u/.ssh"), at("/var/lib/ours")]);
        let limits = GrantLimits { home: &home, protected: &protected };
        let checked = |path: &str| check(&at(path), &limits).map_err(|why| why.to_string());
        for fine in ["/home/u/app", "/work", "/srv/app", "/tmp/x/app", "/usr/src/linux", "/var/www/site"] {
            assert_eq!(checked(fine), Ok(()), "{fine}");
        }
        for (path, why) in [
            ("/", "it is or contains your home folder"),
            ("/home", "it is or contains your home folder"),
            ("/home/u", "it is or contains your home folder"),
            ("/usr", "it is one of the system's own folders"),
            ("/etc/nginx", "it is one of the system's own folders"),
            ("/proc/1/root", "it is one of the system's own folders"),
            ("/home/u/.ssh/x", "it contains or is inside a protected folder"),
            ("/var/lib", "it contains or is inside a protected folder"),
        ] {
            assert_eq!(checked(path), Err(why.to_owned()), "{path}");
        }
    }
}
