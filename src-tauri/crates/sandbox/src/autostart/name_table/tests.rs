//! Tests of the listed names, the rules of a sandbox and the strict mode.

use super::*;

#[test]
fn last_components_determine_the_name() {
    let when =
        |path: &str| autostart_condition(path, Some("/home/me")).map(|found| (found.when, found.automatic));
    for (path, automatic) in [
        ("/p/.git/hooks/pre-commit", true),
        ("/p/.GIT/Config", true),
        ("/p/.git/modules/m/hooks/x", true),
        ("/p/.git", true),
        ("/p/.mcp.json", true),
        ("/p/node_modules/a/.mcp.json", true),
        ("/p/.cursor/mcp.json", true),
        ("/p/.cursor/rules/a.mdc", false),
        ("/p/.vscode/tasks.json", false),
        ("/p/.vscode/a/b", false),
        ("/p/.github/workflows/a.yml", false),
        ("/p/Makefile", false),
        ("/home/me/.bashrc", true),
        ("/home/me/.config/systemd/user/x.service", true),
    ] {
        assert_eq!(when(path).map(|(_, automatic)| automatic), Some(automatic), "{path}");
    }
    for path in [
        "/p",
        "/p/.git/objects/ab",
        "/p/.bashrc",
        "/p/.config/fish/a.fish",
        "/home/me/x/.zshrc",
        "/p/hooks/x",
        "/p/.envrc/x",
        "/p/config",
        "/p/node_modules/a/package.json",
        "/p/node_modules/a/.vscode/settings.json",
    ] {
        assert_eq!(when(path), None, "{path}");
    }
    assert_eq!(when("/p/.husky/pre-commit"), Some(("when you commit in this repository", false)));
    assert_eq!(autostart_condition("/home/me/.bashrc", None), None);
}

#[test]
fn finds_names_of_agents_environments_and_desktops() {
    let automatic = |path: &str| autostart_condition(path, Some("/home/me")).map(|found| found.automatic);
    for path in [
        "/p/.hg/hgrc",
        "/p/.jj/repo/config.toml",
        "/p/.kiro/settings/mcp.json",
        "/p/.kiro/hooks/save.kiro.hook",
        "/p/.windsurf/hooks.json",
        "/p/.github/copilot/mcp.json",
        "/p/.github/hooks/a.json",
        "/p/.factory/mcp.json",
        "/p/.opencode/plugin/a.ts",
        "/p/.qwen/settings.json",
        "/p/.junie/mcp/mcp.json",
        "/p/.continue/mcpServers/a.yaml",
        "/home/me/.config/zsh/.zshrc",
        "/home/me/.config/kitty/kitty.conf",
        "/home/me/.config/sway/config",
        "/home/me/.config/awesome/rc.lua",
        "/home/me/.local/share/applications/firefox.desktop",
        "/home/me/.local/share/gnome-shell/extensions/a@b/extension.js",
        "/home/me/.local/lib/python3.12/site-packages/usercustomize.py",
    ] {
        assert_eq!(automatic(path), Some(true), "{path}");
    }
    for path in [
        "/p/.venv/bin/python",
        "/p/.venv/bin/activate",
        "/p/.venv/lib/python3.12/site-packages/_virtualenv.pth",
        "/p/.venv/lib/python3.12/site-packages/sitecustomize.py",
        "/p/env/lib/python3.12/site-packages/a.pth",
        "/home/me/.local/lib/python3.12/site-packages/a.pth",
    ] {
        assert_eq!(automatic(path), Some(false), "{path}");
    }
    for path in [
        "/p/.config/kitty/kitty.conf",
        "/p/applications/a.desktop",
        "/home/me/.local/share/applications/icon.png",
        "/p/.venv/lib/python3.12/site-packages/a.py",
        "/p/.venv/lib/python3.12/site-packages/a/setup.py",
        "/p/bin/python",
        "/p/.hg/store/00changelog.i",
        "/p/.jj/repo/store/type",
    ] {
        assert_eq!(automatic(path), None, "{path}");
    }
}

#[test]
fn strict_mode_does_not_move_package_files() {
    let names = NameTable::new(&AutostartRules { mode: AutostartMode::Strict, ..AutostartRules::default() });
    for path in ["/p/.venv/bin/python", "/p/.venv/lib/x/site-packages/a.pth"] {
        let (known, _) = names.find(path, is_git_by_name).unwrap();
        assert!(known.group.installed && !names.makes_read_only(&known) && !known.group.strict, "{path}");
    }
}

#[test]
fn allowed_names_are_not_found() {
    let names = |allow: &[&str]| {
        let allow = allow.iter().map(|name| (*name).to_owned()).collect();
        NameTable::new(&AutostartRules { allow, ..AutostartRules::default() })
    };
    let some = names(&[".git", ".VSCode"]);
    for path in ["/p/.git/hooks/a", "/p/.git", "/p/.vscode/tasks.json"] {
        assert!(some.find(path, is_git_by_name).is_none(), "{path}");
    }
    assert!(some.find("/p/.gitattributes", is_git_by_name).is_some());
    let one = names(&[".git/config"]);
    assert!(one.find("/p/.git/config", is_git_by_name).is_none());
    assert!(one.find("/p/.git/hooks/a", is_git_by_name).is_some());
}

#[test]
fn denied_path_covers_its_content() {
    let names =
        NameTable::new(&AutostartRules { denied: vec!["/p/out".into()], ..AutostartRules::default() });
    for path in ["/p/out", "/p/out/a/b"] {
        assert!(
            names
                .find(path, is_git_by_name)
                .is_some_and(|(known, _)| known.group.verdict == RunVerdict::Automatic)
        );
    }
    for path in ["/p", "/p/outer", "/p/in/out"] {
        assert!(names.find(path, is_git_by_name).is_none(), "{path}");
    }
}

#[test]
fn strict_mode_applies_home_names_everywhere() {
    let is_found = |mode| {
        let names = NameTable::new(&AutostartRules {
            mode,
            home: Some("/home/me".into()),
            ..AutostartRules::default()
        });
        ["/home/me/.bashrc", "/p/.bashrc"].map(|path| names.find(path, is_git_by_name).is_some())
    };
    assert_eq!(
        (is_found(AutostartMode::Listed), is_found(AutostartMode::Strict)),
        ([true, false], [true, true])
    );
}

#[test]
fn names_are_unique_lower_case_and_described() {
    let mut seen = std::collections::BTreeSet::new();
    for listed in table::names() {
        let KnownName { name, group, .. } = listed.known;
        assert!(seen.insert((format!("{:?}", group.scope), name)), "{name} is listed twice");
        assert!(group.when.starts_with("when you "), "{}", group.when);
        assert_eq!(name.to_ascii_lowercase(), name);
        assert!(!name.is_empty() && !name.starts_with('/') && !name.contains("//"), "{name}");
    }
    assert!(seen.len() > 200, "{}", seen.len());
}
