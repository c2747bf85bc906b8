//! Tests that a bundle's server is written exactly as shown, and that the bundle is otherwise deleted.

use crate::window::add_server::Draft;
use crate::window::file_picker::Picked;
use crate::window::open_bundle::{OpenBundle, PathRequest, WantedBundle};
use ironcurtain_config::home::Home;
use serde_json::{Value, json, to_value};
use std::io::Write;
use std::path::{Path, PathBuf};
use zip::ZipWriter;
use zip::write::SimpleFileOptions;

struct Scene {
    home: Home,
    dir: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(&dir.path().join("ic"), dir.path());
        home.prepare().unwrap();
        Self { home, dir }
    }

    fn packed(&self, files: &[(&str, &str)]) -> PathBuf {
        let path = self.dir.path().join("some.mcpb");
        let mut writer = ZipWriter::new(std::fs::File::create(&path).unwrap());
        for (name, text) in files {
            writer.start_file(*name, SimpleFileOptions::default()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        writer.finish().unwrap();
        path
    }

    fn open(&self, manifest: &Value) -> (Draft, Value) {
        let packed = self.packed(&[("manifest.json", &manifest.to_string()), ("server/main.js", "")]);
        let (bundle, view) = OpenBundle::open(&self.home, &packed).unwrap();
        let mut draft = Draft::default();
        draft.open(bundle);
        (draft, to_value(view).unwrap())
    }

    fn refused(&self, bundle: &Path) -> String {
        let refused = OpenBundle::open(&self.home, bundle).err().unwrap().to_string();
        assert_eq!(self.unpacked(), 0, "the unpacked bundle remains: {refused}");
        refused
    }

    /// Returns the number of unpacked bundles on disk.
    fn unpacked(&self) -> usize {
        std::fs::read_dir(self.home.data.join("bundles")).map_or(0, Iterator::count)
    }

    fn servers(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.home.config.join("mcp-servers.json")).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }
}

fn notes() -> Value {
    json!({
        "name": "notes", "display_name": "My notes", "description": "Keeps \u{202e}notes", "author": { "name": "a".repeat(400) },
        "server": { "mcp_config": {
            "command": "node", "args": ["${__dirname}/server/main.js", "${user_config.folders}", "--level=${user_config.level}"],
            "env": { "KEY": "${user_config.key}", "PIN": "${user_config.pin}" },
        } },
        "user_config": {
            "folders": { "type": "directory", "title": "Where notes are", "required": true, "multiple": true, "default": ["${HOME}"] },
            "level": { "type": "number", "title": "Level", "description": "How much", "default": 2, "min": 1, "max": 3 },
            "key": { "type": "string", "title": "Key", "sensitive": true, "required": true },
            "pin": { "type": "string", "title": "Pin", "sensitive": true },
        },
    })
}

fn wanted(values: &[(&str, &str)]) -> WantedBundle {
    let values = values.iter().map(|(key, value)| ((*key).to_owned(), vec![(*value).to_owned()]));
    WantedBundle { values: values.collect(), without: ["pin".to_owned()].into(), ..WantedBundle::default() }
}

#[test]
fn shows_a_bundles_escaped_texts_and_suggestions() {
    let scene = Scene::new();
    let (_draft, view) = scene.open(&notes());
    let setting = |key: &str, title: &str, about: &str, kind: &str, more: [bool; 2], proposed: &[&str]| {
        let [required, several] = more;
        json!({ "key": key, "title": title, "about": about, "kind": kind, "required": required, "several": several, "proposed": proposed })
    };
    let expected = json!({
        "file": scene.dir.path().join("some.mcpb"), "name": "notes", "title": "My notes", "about": "Keeps \\u{202e}notes",
        "maker": format!("{} \u{2026} (100 characters more)", "a".repeat(300)),
        "settings": [
            setting("folders", "Where notes are", "", "folder", [true, true], &["${HOME}"]),
            setting("key", "Key", "", "secret", [true, false], &[]),
            setting("level", "Level", "How much", "number", [false, false], &["2"]),
            setting("pin", "Pin", "", "secret", [false, false], &[]),
        ],
    });
    assert_eq!(view, expected);
}

#[test]
fn writes_a_bundle_as_shown_with_the_picked_folder() {
    let scene = Scene::new();
    let (mut draft, _) = scene.open(&notes());
    let refused = draft.plan_bundle(&scene.home, wanted(&[])).unwrap_err().to_string();
    assert!(refused.contains("Where notes are (suggested: `${HOME}`)"), "{refused}");
    let refused = draft.plan_bundle(&scene.home, wanted(&[("folders", "/")])).unwrap_err().to_string();
    assert_eq!(refused, "choose the file or folder for `folders` with the file picker");
    let refused = draft.bundle().unwrap().pick("level", vec!["/".into()]).unwrap_err().to_string();
    assert_eq!(refused, "the bundle has no file or folder setting `level`");
    let wish = draft.bundle().unwrap().path_request("folders").unwrap();
    let title = "Pick folders for notes".to_owned();
    assert_eq!(wish, PathRequest { title, kind: Picked::Folder, several: true });

    let folder = scene.dir.path().join("mine");
    std::fs::create_dir(&folder).unwrap();
    draft.bundle().unwrap().pick("folders", vec![folder.clone()]).unwrap();
    let refused = draft.plan_bundle(&scene.home, wanted(&[("level", "7")])).unwrap_err().to_string();
    assert_eq!(refused, "`level` must be a number from 1 to 3, found `7`");
    assert_eq!(
        draft.write(&scene.home).unwrap_err().to_string(),
        "the reviewed server is no longer available; review it again"
    );
    let planned = to_value(draft.plan_bundle(&scene.home, wanted(&[("level", "3")])).unwrap()).unwrap();
    let here = draft.bundle().unwrap().folder();
    let (main, shown) = (here.join("server/main.js"), folder.display());
    assert_eq!(planned["command"], format!("node {} {shown} --level=3", main.display()));
    assert_eq!(planned["secrets"], json!({ "key": "notes-key" }), "one that was left out is not kept");
    let works_with = format!("Works with, after you allow it for an agent: {shown}");
    assert!(planned["reaches"].as_array().unwrap().contains(&json!(works_with)), "{planned}");
    assert_eq!(scene.servers(), None, "nothing is written before the yes");

    draft.write(&scene.home).unwrap();
    let entry: Value = serde_json::from_str(planned["entry"].as_str().unwrap()).unwrap();
    assert_eq!(scene.servers().unwrap()["notes"], entry);
    assert_eq!((&entry["env"]["KEY"], &entry["env"]["PIN"]), (&json!("keyring:notes-key"), &Value::Null));
    assert_eq!(entry["sandbox"]["filesystem"]["allowRead"], json!([here]));
    drop(draft);
    assert!(main.is_file(), "its server is started from there");

    let (mut draft, _) = scene.open(&notes());
    draft.bundle().unwrap().pick("folders", vec![folder]).unwrap();
    let refused = draft.plan_bundle(&scene.home, wanted(&[])).unwrap_err().to_string();
    assert_eq!(refused, "a server named `notes` already exists; choose another name");
    let named = WantedBundle { name: " other ".to_owned(), ..wanted(&[]) };
    draft.plan_bundle(&scene.home, named).unwrap();
    assert_eq!(scene.unpacked(), 2);
    draft.leave();
    assert_eq!(scene.unpacked(), 1, "discarded bundles are deleted");
    assert_eq!(
        draft.write(&scene.home).unwrap_err().to_string(),
        "the reviewed server is no longer available; review it again"
    );
}

#[test]
fn rejects_invalid_bundles_and_deletes_them() {
    let scene = Scene::new();
    let manifest = notes().to_string();
    let no = scene.dir.path().join("no.mcpb");
    std::fs::write(&no, "no").unwrap();
    assert!(scene.refused(&no).contains("no.mcpb`: "));
    std::fs::File::create(&no).unwrap().set_len((256 << 20) + 1).unwrap();
    assert!(scene.refused(&no).starts_with("the bundle is larger than 256 MB packed"));
    let slip = scene.packed(&[("manifest.json", &manifest), ("../../evil", "x")]);
    let refused = scene.refused(&slip);
    assert!(
        refused.starts_with("`../../evil` in the bundle is a symlink or outside its folder"),
        "{refused}"
    );
    assert!(!scene.home.data.join("evil").exists() && !scene.home.data.join("bundles/evil").exists());
    let without = scene.packed(&[("server/main.js", "")]);
    assert!(scene.refused(&without).starts_with("failed to read the bundle's `manifest.json`"));
    let wrong = scene.packed(&[("manifest.json", r#"{ "name": "x", "server": "node" }"#)]);
    assert!(scene.refused(&wrong).starts_with("failed to parse the bundle's `manifest.json`"));
    let right = scene.packed(&[("manifest.json", &manifest)]);
    assert!(OpenBundle::open(&scene.home, &right).is_ok());
}
