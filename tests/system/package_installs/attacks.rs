//! Malicious packages.

use super::registry::{Package, Registry, packed};
use super::{folders, install, json_of, prepare, refusal, run, tell, world};
use crate::test_home::{Prepared, TestHome};
use serde_json::json;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

fn scripts() -> serde_json::Value {
    json!({ "preinstall": "touch pre", "install": "touch in", "postinstall": "touch post", "prepare": "touch prepare" })
}

fn place(registry: &Registry, program: &str, args: &[&str]) -> TestHome {
    let place = TestHome::new(|_| {});
    prepare(&Prepared { home: place.home.clone() }, registry, program, args);
    place
}

#[test]
fn install_runs_no_package_scripts_and_reaches_only_the_registry() {
    let registry = Registry::new();
    let dependencies = json!({ "helper": "1.0.0" });
    registry.npm("helper", "1.0.0", &Package { scripts: scripts(), ..Package::default() });
    registry.npm("tiny", "1.0.0", &Package { scripts: scripts(), dependencies, ..Package::default() });
    let world = world(&registry, &["-y", "tiny@1.0.0"]);
    let folder = install(&world.home, "tiny").join("node_modules");
    for package in ["tiny", "helper"] {
        let mut names: Vec<_> = std::fs::read_dir(folder.join(package))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["package.json", "server.js"], "{package}");
    }
    // An ordinary npm installation does run the scripts.
    let twin = tempfile::tempdir().unwrap();
    std::fs::write(twin.path().join("package.json"), "{}").unwrap();
    let npm = Command::new("npm")
        .args(["install", "--no-audit", "--no-update-notifier", "tiny@1.0.0"])
        .env("HOME", &world.home.user_home)
        .current_dir(twin.path())
        .output()
        .unwrap();
    assert!(npm.status.success(), "{}", String::from_utf8_lossy(&npm.stderr));
    for package in ["tiny", "helper"] {
        assert!(twin.path().join("node_modules").join(package).join("post").is_file(), "{package}");
    }

    let mut client = world.connect("tiny");
    assert_eq!(tell(&world, &mut client, "version", json!({})), "1.0.0");
    assert_eq!(tell(&world, &mut client, "reach", json!({ "port": registry.port })), "ECONNREFUSED");
    assert_eq!(tell(&world, &mut client, "change", json!({})), "EROFS");
}

#[test]
fn install_from_foreign_host_is_refused_and_cleaned_up() {
    let registry = Registry::new();
    let other = Registry::new();
    let elsewhere = format!("http://127.0.0.1:{}", other.port);
    let package = Package { elsewhere: Some(&elsewhere), ..Package::default() };
    registry.npm("tiny", "1.0.0", &package);
    other.npm("tiny", "1.0.0", &Package::default());
    let place = place(&registry, "npx", &["tiny"]);
    let refused = run(&place.home, &["install", "tiny"]).unwrap_err();
    let words =
        format!("refused connection: `127.0.0.1:{}` is an IP address, which the list of allowed", other.port);
    assert!(refused.contains(&words), "{refused}");
    assert_eq!(other.asked(), [] as [&str; 0]);
    assert_eq!(folders(&place.home), [] as [&str; 0]);
    assert!(!place.home.state.join("installs/tiny.json").exists());
    registry.npm("tiny", "1.0.0", &Package::default());
    install(&place.home, "tiny");
    assert_eq!(folders(&place.home), ["tiny/1.0.0"]);
}

#[test]
fn modified_installation_is_not_started_until_reinstalled() {
    let registry = Registry::new();
    registry.npm("tiny", "1.0.0", &Package::default());
    let mut world = world(&registry, &["-y", "tiny"]);
    let folder = install(&world.home, "tiny");
    let script = folder.join("node_modules/tiny/server.js");
    // Changes the file's modification time but not its content.
    chmod(&script, 0o644);
    chmod(&script, 0o555);
    assert_eq!(report_version(&world), "1.0.0");
    let (text, time) =
        (std::fs::read_to_string(&script).unwrap(), script.metadata().unwrap().modified().unwrap());
    chmod(&script, 0o755);
    std::fs::write(&script, text.replace("'1.0.0'", "'6.6.6'")).unwrap();
    std::fs::File::options().write(true).open(&script).unwrap().set_modified(time).unwrap();
    chmod(&script, 0o555);
    let message = refusal(&world, "tiny");
    assert!(message.contains("its package `tiny@1.0.0` changed since it was installed"), "{message}");
    assert!(message.contains(&format!("files in `{}` changed", folder.display())), "{message}");
    let state = json_of(&world.home, &["list"])["servers"][0]["package"]["state"].clone();
    assert_eq!(state, json!("not-ready"));
    assert_eq!(install(&world.home, "tiny"), folder);
    world.restart();
    assert_eq!(report_version(&world), "1.0.0");
    chmod(script.parent().unwrap(), 0o755);
    std::fs::remove_file(&script).unwrap();
    let refused = refusal(&world, "tiny");
    assert!(refused.contains(&format!("files in `{}` changed", folder.display())), "{refused}");
}

fn report_version(world: &crate::world::World) -> String {
    tell(world, &mut world.connect("tiny"), "version", json!({}))
}

fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[test]
fn entry_not_matching_installation_is_not_started() {
    let registry = Registry::new();
    let place = place(&registry, "npx", &["tiny", "--x"]);
    registry.npm("tiny", "1.0.0", &Package::default());
    install(&place.home, "tiny");
    let said = |args: &[&str]| {
        prepare(&Prepared { home: place.home.clone() }, &registry, "npx", args);
        json_of(&place.home, &["list"])["servers"][0]["package"].clone()
    };
    assert_eq!(said(&["-y", "tiny", "--other"])["version"], json!("1.0.0"));
    let other = said(&["tiny@2.0.0"])["problem"].as_str().unwrap().to_owned();
    assert!(other.contains("requests the package `tiny@2.0.0`, but `tiny@1.0.0` is installed"), "{other}");
    let odd = said(&["--registry=http://x.example", "tiny"])["problem"].as_str().unwrap().to_owned();
    assert!(odd.contains("the option `--registry=http://x.example` of `npx` is not supported"), "{odd}");
    let refused = run(&place.home, &["install", "tiny"]).unwrap_err();
    assert!(refused.contains("the option `--registry=http://x.example`"), "{refused}");
}

#[test]
fn source_package_is_not_built() {
    let canary = tempfile::NamedTempFile::new_in("/var/tmp").unwrap().into_temp_path();
    std::fs::remove_file(&canary).unwrap();
    let registry = Registry::new();
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("tiny-1.0");
    std::fs::create_dir(&source).unwrap();
    let setup =
        format!("open({canary:?}, 'w')\nfrom setuptools import setup\nsetup(name='tiny', version='1.0')\n");
    std::fs::write(source.join("setup.py"), setup).unwrap();
    std::fs::write(source.join("PKG-INFO"), "Metadata-Version: 1.0\nName: tiny\nVersion: 1.0\n").unwrap();
    registry.pypi("tiny", "tiny-1.0.tar.gz", packed(dir.path(), "tiny-1.0"));
    let place = place(&registry, "uvx", &["tiny"]);
    let refused = run(&place.home, &["install", "tiny"]).unwrap_err();
    assert!(
        refused.contains("pip found no wheels for `tiny`; IronCurtain does not install from source code"),
        "{refused}"
    );
    assert!(!canary.exists());
    assert_eq!(folders(&place.home), [] as [&str; 0]);
    // A wheel of the package is accepted, and the missing program is reported.
    registry.pypi("tiny", "tiny-1.0-py3-none-any.whl", wheel(dir.path(), "x"));
    let refused = run(&place.home, &["install", "tiny"]).unwrap_err();
    assert!(
        refused.contains("`tiny` has no program `tiny`; name one with `uvx --from tiny NAME`"),
        "{refused}"
    );
    registry.pypi("tiny", "tiny-1.1-py3-none-any.whl", wheel(dir.path(), "tiny"));
    let installed = json_of(&place.home, &["install", "tiny"]);
    assert_eq!((&installed["version"], installed["already"].as_bool()), (&json!("1.1"), Some(false)));
}

/// Builds a wheel that contains one program. In version 1.0, no program has the package's name.
fn wheel(dir: &Path, program: &str) -> Vec<u8> {
    let version = if program == "tiny" { "1.1" } else { "1.0" };
    let script = "import sys, zipfile
file, version, program = sys.argv[1:]
wheel, about = zipfile.ZipFile(file, 'w'), f'tiny-{version}.dist-info'
wheel.writestr('tiny.py', 'def main(): pass')
wheel.writestr(f'{about}/METADATA', f'Metadata-Version: 2.1\\nName: tiny\\nVersion: {version}\\n')
wheel.writestr(f'{about}/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
wheel.writestr(f'{about}/entry_points.txt', f'[console_scripts]\\n{program} = tiny:main\\n')
wheel.writestr(f'{about}/RECORD', '')
wheel.close()";
    let file = dir.join("wheel");
    let made =
        Command::new("/usr/bin/python3").args(["-c", script]).arg(&file).args([version, program]).status();
    assert!(made.unwrap().success());
    std::fs::read(file).unwrap()
}

#[test]
fn missing_package_manager_is_reported() {
    let registry = Registry::new();
    let place = place(&registry, "npx", &["tiny@9.9.9"]);
    let unknown = run(&place.home, &["install", "nobody"]).unwrap_err();
    assert!(unknown.contains("no server is named `nobody`; existing servers: `tiny`"), "{unknown}");
    let missing = run(&place.home, &["install", "tiny"]).unwrap_err();
    assert!(missing.contains("failed to install `tiny@9.9.9`") && missing.contains("404"), "{missing}");
    let update = run(&place.home, &["update", "tiny"]).unwrap_err();
    assert!(
        update.contains("failed to update the server `tiny`: its package `tiny@9.9.9` is not installed"),
        "{update}"
    );
}
