//! Tests which changes lead to a different identity.

use super::*;
use ironcurtain_config::Servers;
use std::fs::{rename, set_permissions, write};
use std::os::unix::fs::PermissionsExt;

struct TestPrograms {
    base: PathBuf,
    _dir: tempfile::TempDir,
}

impl TestPrograms {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { base: dir.path().canonicalize().unwrap(), _dir: dir }
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let file = self.base.join(name);
        write(&file, text).unwrap();
        set_permissions(&file, PermissionsExt::from_mode(0o755)).unwrap();
        file
    }

    fn identity(&self, entry: &str) -> ServerIdentity {
        self.found(entry).identity
    }

    fn found(&self, entry: &str) -> FoundIdentity {
        let text = format!(r#"{{ "notes": {} }}"#, entry.replace("BASE", self.base.to_str().unwrap()));
        let servers = Servers::parse(&text, Path::new("/c"), &self.base).unwrap();
        let server = servers.find(Some("notes")).unwrap();
        ServerIdentity::of(server, None, Path::new("/nonexistent"), &Digests::default()).unwrap()
    }
}

#[test]
fn a_changed_program_argument_or_address_is_another_server() {
    let programs = TestPrograms::new();
    programs.write("one", "\u{7f}ELF 1");
    let one = r#"{ "command": "BASE/one", "args": ["a"] }"#;
    let before = programs.identity(one);
    assert_eq!(before.change_to(&programs.identity(one)), None);
    assert_eq!(ServerIdentity::read(&before.to_json()).unwrap().change_to(&before), None);
    let args = programs.identity(r#"{ "command": "BASE/one", "args": ["b"] }"#);
    assert_eq!(before.change_to(&args).unwrap(), "its arguments changed");
    // A file with the same content at another path is the same program.
    programs.write("moved", "\u{7f}ELF 1");
    assert_eq!(before.change_to(&programs.identity(r#"{ "command": "BASE/moved", "args": ["a"] }"#)), None);
    programs.write("one", "\u{7f}ELF 2");
    let changed = before.change_to(&programs.identity(one)).unwrap();
    assert_eq!(changed, format!("`{}/one` was changed", programs.base.display()));
    let remote = programs.identity(r#"{ "url": "https://one.example/mcp?key=s3cret" }"#);
    let other = programs.identity(r#"{ "url": "https://one.example/mcp?key=other" }"#);
    assert_eq!(remote.change_to(&remote), None);
    assert!(remote.change_to(&other).is_some() && before.change_to(&remote).is_some());
    assert!(!remote.to_json().contains("s3cret") && !before.to_json().contains(r#""a""#));
}

#[test]
fn a_script_is_part_of_the_program_and_a_system_path_is_its_own_identity() {
    let programs = TestPrograms::new();
    programs.write("server.js", "one");
    let entry = r#"{ "command": "/bin/sh", "args": ["BASE/server.js", "BASE/data.db"] }"#;
    let before = programs.identity(entry);
    programs.write("data.db", "changes all the time");
    assert_eq!(before.change_to(&programs.identity(entry)), None);
    programs.write("server.js", "two");
    assert_eq!(
        before.change_to(&programs.identity(entry)).unwrap(),
        format!("`{}/server.js` was changed", programs.base.display())
    );
    let ProgramIdentity::Files(files) = &before.program else { panic!("{before:?}") };
    assert_eq!(files[0].by, FileIdentity::System);
    assert!(matches!(files[1].by, FileIdentity::Digest(_)));
}

#[test]
fn a_program_that_is_replaced_during_the_start_is_detected() {
    let programs = TestPrograms::new();
    let program = programs.write("one", "\u{7f}ELF 1");
    let found = programs.found(r#"{ "command": "BASE/one" }"#);
    found.check_unchanged().unwrap();
    let other = programs.write("two", "\u{7f}ELF 1");
    rename(other, &program).unwrap();
    assert!(
        matches!(found.check_unchanged(), Err(IdentityError::ChangedDuringStart(path)) if path == program)
    );
}
