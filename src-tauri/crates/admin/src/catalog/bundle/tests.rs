//! Bundles as makers write them, and as nobody should.

use super::*;
use std::io::Write;
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

const NOTES: &str = r#"{
  "manifest_version": "0.3", "name": "notes", "version": "1.0.0", "description": "d", "author": { "name": "a" },
  "server": { "type": "node", "entry_point": "server/index.js", "mcp_config": {
    "command": "node", "args": ["${__dirname}/server/index.js", "${user_config.folder}", "--level=${user_config.level}", "${user_config.extra}"],
    "env": { "API_KEY": "${user_config.key}", "EXTRA": "${user_config.extra}" }
  } },
  "user_config": {
    "folder": { "type": "directory", "title": "Where notes are", "required": true, "default": "${HOME}/Notes" },
    "level": { "type": "string", "default": "info" },
    "extra": { "type": "string" },
    "key": { "type": "string", "sensitive": true, "required": true }
  }
}"#;

struct Scene {
    home: Home,
    dir: tempfile::TempDir,
}

fn place() -> Scene {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::under(&dir.path().join("ic"), dir.path());
    Scene { home, dir }
}

impl Scene {
    fn read(&self, manifest: &str, settings: &[(&str, &str)]) -> Result<Addition, String> {
        let folder = self.dir.path().join("bundle");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join(MANIFEST), manifest).unwrap();
        let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Addition::bundle(&self.home, &folder, None, &settings).map_err(|problem| problem.to_string())
    }

    fn packed(&self, files: &[(&str, &str)]) -> std::path::PathBuf {
        let path = self.dir.path().join("some.mcpb");
        let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, text) in files {
            writer.start_file(*name, SimpleFileOptions::default().unix_permissions(0o755)).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        path
    }
}

#[test]
fn a_bundle_becomes_a_server_to_which_the_folder_that_the_person_named_is_proposed() {
    let place = place();
    let notes = place.dir.path().join("my notes");
    std::fs::create_dir(&notes).unwrap();
    let added = place.read(NOTES, &[("folder", notes.to_str().unwrap())]).unwrap();
    let (folder, data) = (place.dir.path().join("bundle"), place.home.server_data("notes"));
    let expected = json!({
        "command": "node",
        "args": [folder.join("server/index.js"), notes, "--level=info"],
        "env": { "API_KEY": "keyring:notes-key", "HOME": data },
        "sandbox": { "view": "roots", "filesystem": { "allowWrite": [data], "allowRead": [folder] } },
        "unannotated": "ask",
        "worksWith": [notes],
    });
    assert_eq!((added.name.as_str(), &added.entry), ("notes", &expected));
}

#[test]
fn a_folder_that_it_proposes_is_said_and_not_taken() {
    let place = place();
    let refused = place.read(NOTES, &[]).unwrap_err();
    assert_eq!(refused, "it needs `--set folder=...`: Where notes are (it proposes `${HOME}/Notes`)");
    for (settings, wanted) in [
        (&[("folder", "notes")][..], "`notes` is no absolute path"),
        (&[("folder", "/nowhere/at/all")], "that is there"),
        (&[("folder", "/"), ("key", "s3cret")], "keep it with `ironcurtain secrets set notes-key`"),
        (&[("other", "x")], "has no setting `other`"),
    ] {
        let refused = place.read(NOTES, settings).unwrap_err();
        assert!(refused.contains(wanted) && !refused.contains("s3cret"), "{refused}");
    }
    let unknown = NOTES.replace("${__dirname}", "${SHELL}");
    assert!(place.read(&unknown, &[("folder", "/")]).unwrap_err().contains("has `${SHELL}`"));
    assert!(place.read("{}", &[]).unwrap_err().contains("is not understood"));
}

#[test]
fn what_this_system_is_told_goes_before() {
    let place = place();
    let text = r#"{ "name": "x", "server": { "mcp_config": { "command": "x.exe", "args": ["a"],
        "platform_overrides": { "linux": { "command": "${__dirname}/x" }, "win32": { "command": "y" } } } } }"#;
    let added = place.read(text, &[]).unwrap();
    assert_eq!(added.entry["command"], json!(place.dir.path().join("bundle/x")));
    assert_eq!(added.entry["args"], json!(["a"]));
}

#[test]
fn nothing_of_a_bundle_is_written_outside_of_its_folder() {
    let place = place();
    let folder = place.dir.path().join("out");
    unpack(&place.packed(&[("server/run", "x"), ("manifest.json", "{}")]), &folder).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("server/run")).unwrap(), "x");
    for name in ["../evil", "a/../../evil", "/evil"] {
        let refused = unpack(&place.packed(&[(name, "x")]), &folder);
        let landed = folder.join("evil").exists();
        assert!(refused.is_err() || landed, "{name}: {refused:?}");
        assert!(!place.dir.path().join("evil").exists() && !Path::new("/evil").exists());
    }
    let mut writer = ZipWriter::new(std::fs::File::create(place.dir.path().join("link.mcpb")).unwrap());
    writer.add_symlink("server", "/etc", SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap();
    let refused = unpack(&place.dir.path().join("link.mcpb"), &folder).unwrap_err().to_string();
    assert!(refused.starts_with("`server` in the bundle would lie outside of it, or is a link"), "{refused}");
    assert!(!folder.exists());
    std::fs::write(place.dir.path().join("no.mcpb"), "no").unwrap();
    assert!(unpack(&place.dir.path().join("no.mcpb"), &folder).is_err());
}
