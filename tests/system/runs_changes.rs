//! A program that changes a file through temporary names raises only one question, about that file.

use crate::runs::Shell;
use crate::runs_commands::world;
use crate::scripted_user::{Next, paths};
use crate::world::World;
use ironcurtain_consent::{Lifetime, Question, Reach};
use std::path::Path;

fn allow(world: &World) {
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Session));
}

/// Returns each question's path and tool.
fn asked(world: &World) -> Vec<(String, String)> {
    let of = |question: &Question| (paths(question)[0].to_owned(), question.tool.clone().unwrap());
    world.user.asked().iter().map(of).collect()
}

/// Runs a command that changes `~/settings/conf`, and asserts that it raises exactly one question.
fn one_question(command: &str, before: &str, after: &str) {
    let world = world();
    let file = world.file("settings/conf", before);
    let mut shell = Shell::start(&world, &world.path("project"));
    allow(&world);
    assert_eq!(shell.run(command), "status 0\n", "{command}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), after, "{command}");
    assert_eq!(asked(&world), [(file.to_str().unwrap().to_owned(), "files/change".to_owned())], "{command}");
    let left: Vec<_> =
        std::fs::read_dir(world.path("settings")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["conf"], "{command}");
}

#[test]
fn git_changes_a_configuration_with_one_question() {
    one_question("git config -f ~/settings/conf user.name me", "[core]\n", "[core]\n[user]\n\tname = me\n");
}

#[test]
fn an_agent_replaces_its_settings_with_one_question() {
    let program = "const fs = require('fs'), f = process.env.HOME + '/settings/conf', t = f + '.tmp.77.123'; \
        fs.mkdirSync(f + '.lock'); fs.writeFileSync(t, '{\"n\":2}'); \
        if (fs.readFileSync(f, 'utf8') !== '{\"n\":1}') process.exit(1); \
        fs.renameSync(t, f); fs.rmdirSync(f + '.lock');";
    one_question(
        &format!("node -e '{}'", program.replace('\'', "\"").replace("{\"n\"", "{\\\"n\\\"")),
        "{\"n\":1}",
        "{\"n\":2}",
    );
}

#[test]
fn editors_ask_to_read_and_to_change() {
    for command in [
        "sed -i s/two/2/ ~/settings/conf",
        "vim -N -u NONE -es -c 's/two/2/' -c wq ~/settings/conf",
        "vim -N -u NONE -es -c 'set backup' -c 's/two/2/' -c wq ~/settings/conf; rm ~/settings/conf~",
    ] {
        let world = world();
        let file = world.file("settings/conf", "two\n");
        let mut shell = Shell::start(&world, &world.path("project"));
        allow(&world);
        allow(&world);
        assert_eq!(shell.run(command), "status 0\n", "{command}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2\n", "{command}");
        let path = file.to_str().unwrap().to_owned();
        let expected = [(path.clone(), "files/read".to_owned()), (path, "files/change".to_owned())];
        assert_eq!(asked(&world), expected, "{command}");
    }
}

#[test]
fn a_denied_change_leaves_nothing_behind() {
    let world = world();
    let file = world.file("settings/conf", "[core]\n");
    let mut shell = Shell::start(&world, &world.path("project"));
    let denied = shell.run("git config -f ~/settings/conf user.name me");
    assert!(denied.contains("Permission denied") && !denied.ends_with("status 0\n"), "{denied}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[core]\n");
    assert_eq!(shell.run("ls -A ~/settings"), "conf\nstatus 0\n");
    assert_eq!(asked(&world).len(), 1);
}

#[test]
fn permission_to_change_a_file_excludes_autostart_files() {
    let world = world();
    world.file("settings/.vscode", "");
    world.file(".zsh", "");
    let mut shell = Shell::start(&world, &world.path("project"));
    allow(&world);
    assert_eq!(shell.run("echo 1 >> ~/.zsh"), "status 0\n");
    let denied = shell.run("echo evil > ~/.zshenv");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert!(!world.path(".zshenv").exists());
    // Writing to a temporary name that the permission covers does not help either.
    allow(&world);
    let denied = shell.run("echo evil > ~/.zsh.tmp && mv ~/.zsh.tmp ~/.zshenv");
    assert!(denied.contains("Permission denied"), "{denied}");
    assert_eq!((world.path(".zsh.tmp").exists(), world.path(".zshenv").exists()), (true, false));
}

#[test]
fn links_and_renamed_folders_cannot_create_autostart_files() {
    let world = world();
    world.file("docs/evil/hooks/pre-commit", "#!/bin/sh\n");
    world.file(".ssh/id", "key");
    let mut shell = Shell::start(&world, &world.path("project"));
    let docs = world.path("docs");
    let refused = |shell: &mut Shell, command: &str, why: &str, name: &Path| {
        let said = shell.run(command);
        assert!(said.contains(why) && !said.ends_with("status 0\n"), "{command}: {said}");
        assert!(name.symlink_metadata().is_err(), "{command}");
    };
    refused(&mut shell, "ln -s evil ~/docs/.git", "Operation not permitted", &docs.join(".git"));
    refused(&mut shell, "ln -s ~/.ssh/id ~/docs/key", "Permission denied", &docs.join("key"));
    // The folder cannot be renamed, so `mv` copies it, and each file is judged by its new path.
    (0..10).for_each(|_| allow(&world));
    refused(
        &mut shell,
        "mv ~/docs/evil ~/docs/.git",
        "Permission denied",
        &docs.join(".git/hooks/pre-commit"),
    );
    // Permitted counterparts with harmless names.
    world.user.forget();
    (0..10).for_each(|_| world.user.will(Next::AllowFirst(vec![Reach::Paths])));
    assert_eq!(shell.run("ln -s evil ~/docs/good && mv ~/docs/evil ~/docs/moved"), "status 0\n");
    assert!(docs.join("moved/hooks/pre-commit").is_file());
}
