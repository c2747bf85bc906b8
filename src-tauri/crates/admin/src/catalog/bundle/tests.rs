//! Tests with valid, invalid and hostile bundles.

use super::unpack::unpack;
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

struct Fixture {
    home: Home,
    dir: tempfile::TempDir,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::under(&dir.path().join("ic"), dir.path());
    Fixture { home, dir }
}

impl Fixture {
    fn open(&self, manifest: &str) -> Result<Bundle, String> {
        let packed = self.packed(&[("manifest.json", manifest), ("server/index.js", "")]);
        Bundle::open(&self.home, &packed).map_err(|problem| problem.to_string())
    }

    fn read(&self, manifest: &str, settings: &[(&str, &str)]) -> Result<Addition, String> {
        let bundle = self.open(manifest)?;
        bundle.addition(&self.home, None, &answers(settings, &[])).map_err(|problem| problem.to_string())
    }

    /// Returns the number of unpacked bundles on disk.
    fn bundle_count(&self) -> usize {
        std::fs::read_dir(self.home.data.join("bundles")).map_or(0, Iterator::count)
    }

    fn packed(&self, files: &[(&str, &str)]) -> PathBuf {
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

fn answers(settings: &[(&str, &str)], without: &[&str]) -> BundleAnswers {
    let mut answers = BundleAnswers::default();
    for (key, value) in settings {
        answers.values.entry((*key).to_owned()).or_default().push((*value).to_owned());
    }
    answers.omitted_secrets.extend(without.iter().map(|key| (*key).to_owned()));
    answers
}

#[test]
fn bundle_becomes_a_server_that_works_with_the_named_folder() {
    let fixture = fixture();
    let notes = fixture.dir.path().join("my notes");
    std::fs::create_dir(&notes).unwrap();
    let bundle = fixture.open(NOTES).unwrap();
    let given = answers(&[("folder", notes.to_str().unwrap())], &[]);
    let added = bundle.addition(&fixture.home, None, &given).unwrap();
    let (folder, data) = (bundle.folder().to_path_buf(), fixture.home.server_data("notes"));
    let expected = json!({
        "command": "node",
        "args": [folder.join("server/index.js"), notes, "--level=info"],
        "env": { "API_KEY": "keyring:notes-key", "HOME": data },
        "sandbox": { "view": "roots", "filesystem": { "allowWrite": [data], "allowRead": [folder] } },
        "unannotated": "ask",
        "worksWith": [notes],
    });
    assert_eq!((added.name.as_str(), &added.entry), ("notes", &expected));
    assert!(folder.join("server/index.js").is_file());
    drop(bundle);
    assert_eq!(fixture.bundle_count(), 0, "the files are removed if the server is not added");
    fixture.open(NOTES).unwrap().persist();
    assert_eq!(fixture.bundle_count(), 1);
}

#[test]
fn values_must_have_the_right_type_and_number() {
    let fixture = fixture();
    let text = r#"{ "name": "x", "server": { "mcp_config": { "command": "c", "args": ["${user_config.in}", "-p=${user_config.port}", "${user_config.all}"] } },
        "user_config": { "in": { "type": "directory", "multiple": true }, "port": { "type": "number", "min": 1, "max": 9, "default": 7 },
        "all": { "type": "boolean", "default": false } } }"#;
    let args =
        |settings: &[(&str, &str)]| fixture.read(text, settings).map(|added| added.entry["args"].clone());
    assert_eq!(args(&[]), Ok(json!(["-p=7", "false"])));
    let mut cleared = answers(&[], &[]);
    cleared.values.insert("all".to_owned(), Vec::new());
    let bundle = fixture.open(text).unwrap();
    let added = bundle.addition(&fixture.home, None, &cleared).unwrap();
    assert_eq!(added.entry["args"], json!(["-p=7"]), "a cleared setting is left out");
    let two = [("in", "/"), ("in", "/tmp"), ("port", "9"), ("all", "true")];
    assert_eq!(args(&two), Ok(json!(["/", "/tmp", "-p=9", "true"])));
    assert_eq!(fixture.read(text, &two).unwrap().entry["worksWith"], json!(["/", "/tmp"]));
    for (settings, wanted) in [
        (&[("port", "10")][..], "`port` must be a number from 1 to 9, found `10`"),
        (&[("port", "much")], "`port` must be a number from 1 to 9, found `much`"),
        (&[("all", "yes")], "`all` must be `true` or `false`, found `yes`"),
        (&[("all", "true"), ("all", "false")], "expected one value for `all`, found 2"),
    ] {
        let refused = args(settings).unwrap_err();
        assert!(refused.starts_with(wanted), "{refused}");
    }
}

#[test]
fn optional_secrets_can_be_left_out_and_other_servers_secrets_are_never_used() {
    let fixture = fixture();
    let text = r#"{ "name": "notes", "server": { "mcp_config": { "command": "c", "env": { "KEY": "${user_config.key}", "A": "PLAIN" } } },
        "user_config": { "key": { "type": "string", "sensitive": true } } }"#;
    let bundle = fixture.open(text).unwrap();
    let env = |name: Option<&str>, without: &[&str]| {
        let added = bundle.addition(&fixture.home, name, &answers(&[], without));
        added.map(|added| added.entry["env"]["KEY"].clone()).map_err(|problem| problem.to_string())
    };
    assert_eq!(env(None, &[]), Ok(json!("keyring:notes-key")));
    assert_eq!(env(None, &["key"]), Ok(Value::Null));
    assert_eq!(env(None, &["pin"]), Err("unknown setting `pin`; the bundle has `key`".to_owned()));
    let needed = text.replace("true }", "true, \"required\": true }");
    let needed = fixture.open(&needed).unwrap();
    let added = needed.addition(&fixture.home, None, &answers(&[], &["key"])).unwrap();
    assert_eq!(added.entry["env"]["KEY"], "keyring:notes-key", "a required secret is not left out");

    std::fs::create_dir_all(&fixture.home.config).unwrap();
    let servers = r#"{ "other": { "command": "c", "env": { "K": "keyring:notes-key" } } }"#;
    std::fs::write(fixture.home.config.join("mcp-servers.json"), servers).unwrap();
    let expected =
        "the secret `notes-key` already belongs to the server `other`; choose another name for this server";
    assert_eq!(env(None, &[]), Err(expected.to_owned()));
    assert_eq!(env(Some("mine"), &[]), Ok(json!("keyring:mine-key")));
    for named in [
        text.replace("PLAIN", "keyring:github-token"),
        text.replace("PLAIN", "${user_config.half}:github-token")
            .replace("\"key\":", "\"half\": { \"type\": \"string\", \"default\": \"keyring\" }, \"key\":"),
        text.replace(
            "\"key\":",
            "\"x\": { \"type\": \"string\", \"default\": \"keyring:github-token\" }, \"key\":",
        ),
    ] {
        let refused = fixture.read(&named, &[]).unwrap_err();
        let wanted = "the bundle refers to `keyring:github-token`, which is not one of its own secrets";
        assert!(refused.starts_with(wanted), "{refused}");
    }
}

#[test]
fn suggested_folder_is_displayed_but_not_used() {
    let fixture = fixture();
    let refused = fixture.read(NOTES, &[]).unwrap_err();
    assert_eq!(
        refused,
        "the bundle requires `--set folder=...`: Where notes are (suggested: `${HOME}/Notes`)"
    );
    for (settings, wanted) in [
        (&[("folder", "notes")][..], "`folder` must be the absolute path"),
        (&[("folder", "/nowhere/at/all")], "existing file or folder"),
        (&[("folder", "/"), ("key", "s3cret")], "store it with `ironcurtain secrets set notes-key`"),
        (&[("other", "x")], "unknown setting `other`"),
        (&[("folder", "/"), ("folder", "/tmp")], "expected one value for `folder`"),
    ] {
        let refused = fixture.read(NOTES, settings).unwrap_err();
        assert!(refused.contains(wanted) && !refused.contains("s3cret"), "{refused}");
    }
    let unknown = NOTES.replace("${__dirname}", "${SHELL}");
    assert!(
        fixture.read(&unknown, &[("folder", "/")]).unwrap_err().contains("unknown placeholder `${SHELL}`")
    );
    assert_eq!(fixture.bundle_count(), 0, "the files are removed");
}

#[test]
fn bundles_with_invalid_manifests_are_removed() {
    let fixture = fixture();
    assert!(fixture.open(NOTES).is_ok());
    let long = NOTES.replace("\"d\"", &format!("\"{}\"", "d".repeat(1 << 20)));
    let many: Vec<String> = (0..101).map(|n| format!(r#""k{n}": {{ "type": "string" }}"#)).collect();
    let many = format!(
        r#"{{ "name": "x", "server": {{ "mcp_config": {{ "command": "c" }} }}, "user_config": {{ {} }} }}"#,
        many.join(", ")
    );
    for (manifest, wanted) in [
        ("{}", "failed to parse the bundle's `manifest.json`: missing field `name`"),
        ("no", "failed to parse the bundle's `manifest.json`"),
        (long.as_str(), "the bundle's `manifest.json` is larger than 1024 KB or has more than 100 settings"),
        (many.as_str(), "the bundle's `manifest.json` is larger than 1024 KB or has more than 100 settings"),
    ] {
        let refused = fixture.open(manifest).unwrap_err();
        assert!(refused.starts_with(wanted), "{refused}");
    }
    let packed = fixture.packed(&[("server/index.js", "")]);
    let refused = Bundle::open(&fixture.home, &packed).unwrap_err().to_string();
    assert!(refused.starts_with("failed to read the bundle's `manifest.json`"), "{refused}");
    assert_eq!(fixture.bundle_count(), 0);
}

#[test]
fn platform_overrides_take_precedence() {
    let fixture = fixture();
    let text = r#"{ "name": "x", "server": { "mcp_config": { "command": "x.exe", "args": ["a"],
        "platform_overrides": { "linux": { "command": "${__dirname}/x" }, "win32": { "command": "y" } } } } }"#;
    let bundle = fixture.open(text).unwrap();
    let added = bundle.addition(&fixture.home, None, &BundleAnswers::default()).unwrap();
    assert_eq!(added.entry["command"], json!(bundle.folder().join("x")));
    assert_eq!(added.entry["args"], json!(["a"]));
}

#[test]
fn nothing_is_written_outside_the_bundles_folder() {
    let fixture = fixture();
    let folder = fixture.dir.path().join("out");
    unpack(&fixture.packed(&[("server/run", "x"), ("manifest.json", "{}")]), &folder).unwrap();
    assert_eq!(std::fs::read_to_string(folder.join("server/run")).unwrap(), "x");
    for name in ["../evil", "a/../../evil", "/evil"] {
        let refused = unpack(&fixture.packed(&[(name, "x")]), &folder);
        let landed = folder.join("evil").exists();
        assert!(refused.is_err() || landed, "{name}: {refused:?}");
        assert!(!fixture.dir.path().join("evil").exists() && !Path::new("/evil").exists());
    }
    let mut writer = ZipWriter::new(std::fs::File::create(fixture.dir.path().join("link.mcpb")).unwrap());
    writer.add_symlink("server", "/etc", SimpleFileOptions::default()).unwrap();
    writer.finish().unwrap();
    let refused = unpack(&fixture.dir.path().join("link.mcpb"), &folder).unwrap_err().to_string();
    assert!(refused.starts_with("`server` in the bundle is a symlink or outside its folder"), "{refused}");
    assert!(!folder.exists());
    std::fs::write(fixture.dir.path().join("no.mcpb"), "no").unwrap();
    let refused = unpack(&fixture.dir.path().join("no.mcpb"), &folder).unwrap_err().to_string();
    assert!(refused.starts_with("failed to read bundle `"), "{refused}");
    let (large, too_large) =
        (fixture.dir.path().join("large.mcpb"), "the bundle is larger than 256 MB packed");
    std::fs::File::create(&large).unwrap().set_len((256 << 20) + 1).unwrap();
    assert!(unpack(&large, &folder).unwrap_err().to_string().starts_with(too_large));
    let names: Vec<String> = (0..=50_000).map(|n| n.to_string()).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
    assert!(unpack(&fixture.packed(&many), &folder).unwrap_err().to_string().starts_with(too_large));
    assert!(!folder.exists());
}
