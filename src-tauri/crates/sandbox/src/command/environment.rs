//! Environment of the command: allow-listed variables, and those from the settings and the sandbox. Performs no I/O.

use std::collections::BTreeMap;

use ironcurtain_egress::environment as of_proxy;

use ironcurtain_srt_settings::PassedVariables;

use crate::spec::PROXY_PORT;

/// Variables that are always passed on, in addition to those starting with `LC_`.
const ALWAYS_PASSED: [&str; 11] = [
    "COLORTERM",
    "FORCE_COLOR",
    "HOME",
    "LANG",
    "LOGNAME",
    "NO_COLOR",
    "PATH",
    "SHELL",
    "TERM",
    "TZ",
    "USER",
];

/// Sources of the command's environment.
pub(super) struct EnvironmentSources<'a> {
    /// Environment of this process.
    pub(super) inherited: &'a BTreeMap<String, String>,
    pub(super) pass: &'a PassedVariables,
    /// Variables that are never passed on.
    pub(super) denied: Vec<&'a str>,
    /// Directories that git trusts regardless of their owner.
    pub(super) safe_directories: &'a [String],
    /// Directory for temporary files, passed as `TMPDIR`.
    pub(super) tmp_dir: &'a str,
    /// Path of this program, if the sandbox has a proxy.
    pub(super) connector: Option<&'a str>,
}

/// Returns the complete environment of the command.
pub(super) fn environment(sources: &EnvironmentSources<'_>) -> BTreeMap<String, String> {
    let is_requested = |name: &str| match sources.pass {
        PassedVariables::All => true,
        PassedVariables::Named(names) => names.iter().any(|named| named == name),
    };
    let is_passed =
        |name: &str| ALWAYS_PASSED.contains(&name) || name.starts_with("LC_") || is_requested(name);
    let inherited = sources
        .inherited
        .iter()
        .filter(|(name, _)| is_passed(name) && !sources.denied.contains(&name.as_str()));
    let mut env: BTreeMap<String, String> =
        inherited.map(|(name, value)| (name.clone(), value.clone())).collect();
    // The host's proxy is unreachable from the sandbox, so its variables are replaced.
    let proxy = of_proxy(PROXY_PORT, sources.connector);
    env.retain(|name, _| !proxy.contains_key(name));
    if sources.connector.is_some() {
        env.extend(proxy);
    }
    env.entry("PATH".to_owned()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    env.insert("TMPDIR".to_owned(), sources.tmp_dir.to_owned());
    // `srt` sets this variable too. Programs use it to check whether they are sandboxed.
    env.insert("SANDBOX_RUNTIME".to_owned(), "1".to_owned());
    add_safe_directories(&mut env, sources.safe_directories);
    env
}

/// Adds directories to git's trusted directories through environment variables.
fn add_safe_directories(env: &mut BTreeMap<String, String>, directories: &[String]) {
    if directories.is_empty() {
        return;
    }
    let first: usize = env.get("GIT_CONFIG_COUNT").and_then(|count| count.parse().ok()).unwrap_or_default();
    let values = directories.iter().map(|directory| directory.trim_end_matches('/')).flat_map(|directory| {
        // Git compares each value with a repository's own directory, so nested repositories need a pattern.
        [if directory.is_empty() { "/".to_owned() } else { directory.to_owned() }, format!("{directory}/*")]
    });
    let mut next = first;
    for value in values {
        env.insert(format!("GIT_CONFIG_KEY_{next}"), "safe.directory".to_owned());
        env.insert(format!("GIT_CONFIG_VALUE_{next}"), value);
        next += 1;
    }
    env.insert("GIT_CONFIG_COUNT".to_owned(), next.to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(pass: &PassedVariables, connector: Option<&str>) -> Vec<String> {
        let inherited = [
            ("HOME", "/h"),
            ("LC_TIME", "C"),
            ("TOKEN", "t"),
            ("OTHER", "o"),
            ("HTTPS_PROXY", "http://corporate"),
            ("TMPDIR", "/elsewhere"),
            ("GIT_CONFIG_COUNT", "1"),
        ];
        let inherited = inherited.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let safe_directories = ["/repo".to_owned()];
        let sources = EnvironmentSources {
            inherited: &inherited,
            pass,
            denied: vec!["OTHER"],
            safe_directories: &safe_directories,
            tmp_dir: "/dev/shm",
            connector,
        };
        environment(&sources).into_iter().map(|(name, value)| format!("{name}={value}")).collect()
    }

    #[test]
    fn passes_on_only_listed_variables() {
        let own = ["PATH=/usr/local/bin:/usr/bin:/bin", "SANDBOX_RUNTIME=1", "TMPDIR=/dev/shm"];
        let git = |number: usize| {
            [
                format!("GIT_CONFIG_COUNT={}", number + 2),
                format!("GIT_CONFIG_KEY_{number}=safe.directory"),
                format!("GIT_CONFIG_KEY_{}=safe.directory", number + 1),
                format!("GIT_CONFIG_VALUE_{number}=/repo"),
                format!("GIT_CONFIG_VALUE_{}=/repo/*", number + 1),
            ]
        };
        let all = |lists: &[&[&str]], git: [String; 5]| {
            let mut all: Vec<String> =
                lists.iter().flat_map(|list| list.iter().map(|text| (*text).to_owned())).chain(git).collect();
            all.sort();
            all
        };
        let always = ["HOME=/h", "LC_TIME=C"];
        assert_eq!(given(&PassedVariables::Named(vec![]), None), all(&[&always, &own], git(0)));
        let named = PassedVariables::Named(vec!["TOKEN".into(), "OTHER".into(), "HTTPS_PROXY".into()]);
        assert_eq!(given(&named, None), all(&[&always, &["TOKEN=t"], &own], git(0)));
        assert_eq!(given(&PassedVariables::All, None), all(&[&always, &["TOKEN=t"], &own], git(1)));
    }

    #[test]
    fn proxy_variables_name_the_sandbox_proxy() {
        let given = given(&PassedVariables::All, Some("/bin/us"));
        assert!(given.contains(&"HTTPS_PROXY=http://127.0.0.1:3128".to_owned()), "{given:?}");
        assert!(
            given.iter().any(|text| text.starts_with("GIT_SSH_COMMAND=ssh ") && text.contains("/bin/us"))
        );
    }
}
