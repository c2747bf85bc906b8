//! Tests which files identify each kind of program.

use super::*;
use std::fs::{create_dir_all, write};

fn words(all: &[&str]) -> Vec<String> {
    all.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn finds_scripts_but_not_data_in_the_arguments() {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().canonicalize().unwrap();
    create_dir_all(base.join("app")).unwrap();
    for file in ["server.js", "hook.mjs", "data.db", "run", "app/server.py", "app/package.json"] {
        write(base.join(file), "").unwrap();
    }
    let at = |name: &str| base.join(name).to_str().unwrap().to_owned();
    let found = |command: &str, args: &[&str]| scripts(Path::new(command), &words(args));
    let (server, hook, data, run, app) =
        (at("server.js"), at("hook.mjs"), at("data.db"), at("run"), at("app"));
    let paths = |all: &[&str]| all.iter().map(|name| base.join(name)).collect::<Vec<_>>();
    assert_eq!(found("/usr/bin/uv", &["--directory", &app, "run", "server.py"]), paths(&["app/server.py"]));
    assert_eq!(found("/opt/notes", &["--db", &data]), paths(&[]));
    assert_eq!(found("/opt/notes", &[&run]), paths(&[]), "a file that a program reads");
    let import = format!("--import={hook}");
    assert_eq!(found("/usr/bin/node", &[&import, &server]), paths(&["hook.mjs", "server.js", "server.js"]));
    assert_eq!(found("/usr/bin/python3.12", &["-u", &run, &data]), paths(&["run"]));
    assert_eq!(found("/bin/sh", &["-c", &format!("exec node {server}")]), paths(&["server.js", "server.js"]));
    assert_eq!(found("/usr/bin/node", &[&app]), paths(&["app/package.json"]));
    assert_eq!(found("/usr/bin/node", &["server.js"]), paths(&[]), "relative to nothing that is named");
}

#[test]
fn the_first_line_of_a_script_names_its_interpreter() {
    let dir = tempfile::tempdir().unwrap();
    let script = dir.path().join("script");
    let named = |text: &str| {
        write(&script, text).unwrap();
        interpreter(&script)
    };
    assert_eq!(named("#!/opt/venv/bin/python3 -u\n"), Some("/opt/venv/bin/python3".to_owned()));
    assert_eq!(named("#!/usr/bin/env -S A=1 node --x\n"), Some("node".to_owned()));
    assert_eq!((named("\u{7f}ELF"), named("#!\n"), named("")), (None, None, None));
    assert_eq!(interpreter(dir.path()), None);
}
