//! What a policy would tell a server about its folders: candidates, in order, that the caller still checks on disk.

use crate::{Decision, Policy};
use ironcurtain_paths::CanonicalPath;

/// A folder a server may be told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The folder.
    pub path: CanonicalPath,
    /// What it is told as.
    pub name: String,
}

/// The session sandbox first, then the folder of every rule that does not deny; each once.
#[must_use]
pub fn policy_roots(policy: &Policy, sandbox: Option<&CanonicalPath>) -> Vec<Root> {
    let mut roots: Vec<Root> = sandbox.map(|path| root(path, "sandbox")).into_iter().collect();
    for rule in policy.rules().iter().filter(|rule| rule.then != Decision::Deny) {
        if let Some(path) = rule.within().filter(|path| roots.iter().all(|root| root.path != **path)) {
            roots.push(root(path, &rule.name));
        }
    }
    roots
}

/// The `file` URI of a path, as RFC 8089 and RFC 3986 spell it.
#[must_use]
pub fn file_uri(path: &CanonicalPath) -> String {
    let mut uri = String::from("file://");
    for byte in path.as_str().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                uri.push(char::from(byte))
            }
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

fn root(path: &CanonicalPath, name: &str) -> Root {
    Root { path: path.clone(), name: name.to_owned() }
}
