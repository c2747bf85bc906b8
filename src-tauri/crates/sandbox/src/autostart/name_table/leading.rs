//! Names of folders that can contain autostart files.

use super::{NameScope, autostart_condition, is_git_by_name, lower, pattern::NamePattern, table};

/// Returns `true` if other programs run the file at this path, or any file below it. A symlink here would make those
/// programs run its target.
pub fn leads_to_programs(path: &str, home: Option<&str>) -> bool {
    if autostart_condition(path, home).is_some() {
        return true;
    }
    let lower = lower(path);
    table::names().any(|listed| {
        let applies = |above: usize| {
            let above = path.get(..above).unwrap_or_default();
            match listed.known.group.scope {
                NameScope::Any => true,
                NameScope::Home => home == Some(above),
                NameScope::Git => is_git_by_name(above),
            }
        };
        let folders = listed.pattern.match_indices('/').filter_map(|(at, _)| listed.pattern.get(..at));
        folders.into_iter().any(|folder| NamePattern::new(folder).matches_end(&lower, &applies))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_listed_names_apply_where_the_names_do() {
        let leads = |path: &str| leads_to_programs(path, Some("/home/me"));
        for path in [
            "/p/.git",
            "/p/.git/hooks",
            "/p/.vscode",
            "/p/.CURSOR",
            "/p/.jj/repo",
            "/p/.jj",
            "/home/me/.config",
            "/home/me/.local/share",
            "/home/me/.bashrc",
        ] {
            assert!(leads(path), "{path}");
        }
        for path in ["/p/x", "/p/hooks", "/p/.config", "/p/node_modules/.bin", "/home/me/docs", "/p/.gitx"] {
            assert!(!leads(path), "{path}");
        }
    }
}
