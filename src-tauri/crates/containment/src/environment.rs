//! Environment of a sandboxed server, built from an allow-list.

use ironcurtain_config::{PassEnv, Server};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// Variables passed on whenever they are set.
const DEFAULT_VARIABLES: [&str; 4] = ["LANG", "TERM", "USER", "LC_ALL"];

/// Returns a server's environment. Fixed variables come first, followed by variables passed on from `ours`, the proxy's
/// variables, and the variables in the server's entry. Later values override earlier ones.
#[must_use]
pub fn environment(
    server: &Server,
    home: &Path,
    proxy: Option<BTreeMap<String, String>>,
    ours: impl IntoIterator<Item = (OsString, OsString)>,
) -> BTreeMap<String, String> {
    let passed = |name: &str| match &server.pass_env {
        // The sandbox has its own `/tmp`.
        PassEnv::All => name != "TMPDIR",
        PassEnv::Named(names) => DEFAULT_VARIABLES.contains(&name) || names.iter().any(|n| n == name),
    };
    let home = home.to_string_lossy();
    let fixed = [("PATH", "/usr/local/bin:/usr/bin:/bin"), ("HOME", &*home), ("TMPDIR", "/tmp")];
    let mut env = BTreeMap::from(fixed.map(|(name, value)| (name.to_owned(), value.to_owned())));
    // The sandbox specification is JSON, which cannot contain invalid UTF-8.
    let text =
        |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
    env.extend(ours.into_iter().filter_map(text).filter(|(name, _)| passed(name)));
    env.extend(proxy.unwrap_or_default());
    env.extend(server.env.clone());
    env
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_config::{Sampling, Sandbox, ServerAccess, ToolPinning};
    use ironcurtain_policy::{FileWrites, Unannotated};

    fn given(pass_env: PassEnv) -> Vec<(String, String)> {
        let server = Server {
            name: "x".into(),
            description: None,
            remote: None,
            command: "/bin/sh".into(),
            args: vec![],
            env: BTreeMap::from([("A".into(), "1".into())]),
            pass_env,
            works_with: vec![],
            sandbox: Sandbox::default(),
            access: ServerAccess::Grants,
            file_writes: FileWrites::InPlace,
            unannotated: Unannotated::Deny,
            pin: ToolPinning::Enforce,
            sampling: Sampling::Ask,
            refused: None,
        };
        let ours = [
            ("LANG", "C"),
            ("KEPT", "yes"),
            ("SECRET", "no"),
            ("PATH", "/p"),
            ("TMPDIR", "/t"),
            ("A", "2"),
            ("HTTP_PROXY", "ours"),
        ];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let proxy = ironcurtain_egress::environment(1, None).into_iter();
        let proxy = proxy.filter(|(name, _)| name == "HTTP_PROXY").collect();
        environment(&server, Path::new("/home/u"), Some(proxy), ours).into_iter().collect()
    }

    fn pairs<const N: usize>(of: [(&str, &str); N]) -> Vec<(String, String)> {
        of.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
    }

    #[test]
    fn only_named_variables_are_passed_on() {
        let expected = [
            ("A", "1"),
            ("HOME", "/home/u"),
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("KEPT", "yes"),
            ("LANG", "C"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TMPDIR", "/tmp"),
        ];
        assert_eq!(given(PassEnv::Named(vec!["KEPT".into()])), pairs(expected));
    }

    #[test]
    fn passing_all_excludes_the_folder_for_temporary_files() {
        let expected = [
            ("A", "1"),
            ("HOME", "/home/u"),
            ("HTTP_PROXY", "http://127.0.0.1:1"),
            ("KEPT", "yes"),
            ("LANG", "C"),
            ("PATH", "/p"),
            ("SECRET", "no"),
            ("TMPDIR", "/tmp"),
        ];
        assert_eq!(given(PassEnv::All), pairs(expected));
    }
}
