//! Tests connecting, moving and disconnecting a client in a temporary home directory.

use super::*;
use crate::catalog::GivenSecrets;
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

struct Fixture {
    clients: Clients,
    dir: tempfile::TempDir,
}

static NO_SECRETS: GivenSecrets = GivenSecrets::new();

const CURSOR: ClientTarget<'static> = ClientTarget { id: "cursor", project: None };

const BEFORE: &str = r#"{
  // mine
  "mcpServers": {
    "notes": { "command": "npx", "args": ["-y", "notes-mcp@1.2.3"], "env": { "TOKEN": "t0ken" } },
    "far": { "url": "https://mcp.example/mcp" },
    "here": { "command": "node", "args": ["${workspaceFolder}/server.js"] }
  }
}
"#;

fn fixture(settings: Option<&str>) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::under(&dir.path().join("ic"), dir.path());
    home.prepare().unwrap();
    let programs = dir.path().join("programs");
    std::fs::create_dir(&programs).unwrap();
    std::fs::write(programs.join("ironcurtain-shim"), "").unwrap();
    std::fs::create_dir(dir.path().join(".cursor")).unwrap();
    let fixture = Fixture { clients: Clients::new(home, &programs).unwrap(), dir };
    if let Some(settings) = settings {
        std::fs::write(fixture.file(), settings).unwrap();
    }
    fixture
}

impl Fixture {
    fn file(&self) -> PathBuf {
        self.dir.path().join(".cursor/mcp.json")
    }

    fn text(&self) -> Option<String> {
        std::fs::read_to_string(self.file()).ok()
    }

    fn connect(&self, request: ConnectRequest<'_>) -> Result<ClientChange, ClientError> {
        let change = self.clients.connect(CURSOR, request)?;
        self.clients.write(&change).map(|()| change)
    }

    fn disconnect(&self, server: Option<&str>) -> Result<ClientChange, ClientError> {
        let change = self.clients.disconnect(CURSOR, server)?;
        self.clients.write(&change).map(|()| change)
    }

    fn state(&self) -> ClientState {
        self.clients.report_for(CURSOR).unwrap().state
    }

    fn servers(&self) -> Value {
        let file = self.clients.home.config.join("mcp-servers.json");
        serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
    }
}

#[test]
fn disconnecting_restores_the_original_settings() {
    for before in [None, Some(BEFORE)] {
        let fixture = fixture(before);
        assert_eq!(fixture.state(), ClientState::NotConnected);
        let planned = fixture.clients.connect(CURSOR, ConnectRequest::Each).unwrap();
        assert!(planned.edit.diff().contains("+    \"filesystem\": {"), "{}", planned.edit.diff());
        assert_eq!(fixture.text().as_deref(), before, "a plan writes nothing");
        fixture.connect(ConnectRequest::Each).unwrap();
        let expected = if before.is_none() { ClientState::Connected } else { ClientState::Bypassing };
        assert_eq!(fixture.state(), expected);
        assert!(fixture.connect(ConnectRequest::Each).unwrap().edit.is_empty(), "twice changes nothing");
        fixture.connect(ConnectRequest::AsOne).unwrap();
        let disconnected = fixture.disconnect(None).unwrap();
        assert_eq!(disconnected.names, ["filesystem", "ironcurtain"]);
        assert_eq!((fixture.text().as_deref(), fixture.state()), (before, ClientState::NotConnected));
        let refused = fixture.disconnect(None).unwrap_err();
        assert_eq!(refused.to_string(), "Cursor is not connected");
    }
}

#[test]
fn servers_are_moved_to_ironcurtain_and_back() {
    let fixture = fixture(Some(BEFORE));
    let change =
        fixture.connect(ConnectRequest::Move { secrets: false, only: None, given: &NO_SECRETS }).unwrap();
    assert_eq!(change.names, ["notes"]);
    let left: Vec<String> =
        change.unmoved.iter().map(|left| format!("{}: {}", left.name, left.reason)).collect();
    assert_eq!(
        left,
        [
            "far: it connects directly to `https://mcp.example/mcp`",
            "here: it uses `${workspaceFolder}/server.js`, which only the client can replace"
        ]
    );
    let expected = json!({ "command": "npx", "args": ["-y", "notes-mcp@1.2.3"], "unannotated": "ask", "env": { "TOKEN": "t0ken" } });
    assert_eq!(fixture.servers()["notes"], expected);
    assert!(fixture.servers()["filesystem"].is_object(), "the default server is kept");
    let shim = fixture.clients.shim.display().to_string();
    let text = fixture.text().unwrap();
    assert!(text.contains(&shim) && !text.contains("t0ken") && text.contains("// mine"), "{text}");
    assert_eq!(
        fixture
            .connect(ConnectRequest::Move { secrets: false, only: None, given: &NO_SECRETS })
            .unwrap()
            .names,
        [""; 0]
    );
    // If the file has changed, only IronCurtain's entries are restored and other changes are kept.
    std::fs::write(fixture.file(), text.replace("// mine", "// theirs")).unwrap();
    fixture.disconnect(None).unwrap();
    let text = fixture.text().unwrap();
    assert!(text.contains("// theirs") && text.contains("t0ken") && !text.contains(&shim), "{text}");
}

#[test]
fn only_the_named_servers_are_moved() {
    let fixture =
        fixture(Some(&BEFORE.replace("\"far\"", "\"more\": { \"command\": \"more-mcp\" },\n    \"far\"")));
    let before: Value = serde_json::from_str(&fixture.text().unwrap().replace("// mine", "")).unwrap();
    let only = ["more".to_owned()];
    let request = ConnectRequest::Move { secrets: false, only: Some(&only), given: &NO_SECRETS };
    let change = fixture.connect(request).unwrap();
    assert_eq!((change.names.as_slice(), change.unmoved.as_slice()), (&only[..], &[][..]));
    assert!(fixture.servers()["more"].is_object() && fixture.servers()["notes"].is_null());
    let now: Value = serde_json::from_str(&fixture.text().unwrap().replace("// mine", "")).unwrap();
    assert_eq!(now["mcpServers"]["notes"], before["mcpServers"]["notes"]);
    assert_eq!(fixture.state(), ClientState::Bypassing);
    // `more` was already moved, and `none` never existed.
    for name in ["more", "none"] {
        let only = [name.to_owned()];
        let request = ConnectRequest::Move { secrets: false, only: Some(&only), given: &NO_SECRETS };
        let refused = fixture.clients.connect(CURSOR, request).unwrap_err().to_string();
        assert_eq!(
            refused,
            format!("Cursor does not start a server `{name}` directly, so there is nothing to move")
        );
    }
    fixture.disconnect(None).unwrap();
    let back: Value = serde_json::from_str(&fixture.text().unwrap().replace("// mine", "")).unwrap();
    assert_eq!(back, before);
}

#[test]
fn client_can_be_connected_to_a_profile() {
    let fixture = fixture(None);
    let refused = fixture.clients.connect(CURSOR, ConnectRequest::Profile("work")).unwrap_err().to_string();
    assert_eq!(refused, "unknown profile `work`; run `ironcurtain profiles` to list them");
    let config = fixture.clients.home.config.join("config.json");
    std::fs::write(config, r#"{ "profiles": { "work": ["filesystem"] } }"#).unwrap();
    fixture.connect(ConnectRequest::AsOne).unwrap();
    fixture.connect(ConnectRequest::Profile("work")).unwrap();
    let ways: Vec<EntryTarget> =
        fixture.clients.report_for(CURSOR).unwrap().entries.into_iter().map(|entry| entry.target).collect();
    assert_eq!(ways, [EntryTarget::Shim { server: None, profile: Some("work".into()) }]);
}

#[test]
fn one_server_of_several_is_disconnected() {
    let fixture = fixture(Some(BEFORE));
    fixture.connect(ConnectRequest::Each).unwrap();
    fixture.connect(ConnectRequest::Move { secrets: false, only: None, given: &NO_SECRETS }).unwrap();
    fixture.disconnect(Some("notes")).unwrap();
    let text = fixture.text().unwrap();
    assert!(text.contains("t0ken") && text.contains("\"filesystem\""), "{text}");
    fixture.disconnect(Some("filesystem")).unwrap();
    let now: Value = serde_json::from_str(&fixture.text().unwrap().replace("// mine", "")).unwrap();
    let before: Value = serde_json::from_str(&BEFORE.replace("// mine", "")).unwrap();
    assert_eq!(now, before);
}

#[test]
fn changes_between_two_disconnects_are_kept() {
    let fixture = fixture(Some(BEFORE));
    fixture.connect(ConnectRequest::Each).unwrap();
    fixture.connect(ConnectRequest::Move { secrets: false, only: None, given: &NO_SECRETS }).unwrap();
    let text = fixture.text().unwrap().replace("// mine", "// theirs");
    std::fs::write(fixture.file(), text).unwrap();
    fixture.disconnect(Some("notes")).unwrap();
    fixture.disconnect(Some("filesystem")).unwrap();
    let text = fixture.text().unwrap();
    assert!(text.contains("// theirs"), "{text}");
    let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(value(&text.replace("// theirs", "")), value(&BEFORE.replace("// mine", "")));
}

#[test]
fn copies_of_settings_are_deleted_after_use() {
    let fixture = fixture(Some(BEFORE));
    let copies = || std::fs::read_dir(fixture.clients.home.state.join("clients")).unwrap().count() - 1;
    fixture.connect(ConnectRequest::Each).unwrap();
    assert_eq!(copies(), 1);
    std::fs::write(fixture.file(), fixture.text().unwrap().replace("// mine", "// theirs")).unwrap();
    fixture.connect(ConnectRequest::AsOne).unwrap();
    assert_eq!(copies(), 1, "the older copy is no longer needed");
    fixture.disconnect(None).unwrap();
    assert_eq!(copies(), 0);
}

#[test]
fn taken_changed_and_invalid_settings_are_rejected() {
    let fixture = fixture(Some(BEFORE));
    let refused = |request| fixture.clients.connect(CURSOR, request).unwrap_err().to_string();
    assert_eq!(
        refused(ConnectRequest::Server("x")),
        "unknown server `x`; run `ironcurtain servers list` to list them"
    );
    std::fs::write(
        fixture.clients.home.config.join("mcp-servers.json"),
        r#"{ "notes": { "command": "other" }, "time": { "command": "t" } }"#,
    )
    .unwrap();
    assert_eq!(
        refused(ConnectRequest::Server("notes")),
        "Cursor already has an entry `notes`, which starts `npx -y notes-mcp@1.2.3`; to run it through IronCurtain, use `--move`"
    );
    let each = fixture.clients.connect(CURSOR, ConnectRequest::Each).unwrap();
    assert_eq!((each.names.as_slice(), each.unmoved[0].name.as_str()), (&["time".to_owned()][..], "notes"));
    let moved = fixture
        .clients
        .connect(CURSOR, ConnectRequest::Move { secrets: false, only: None, given: &NO_SECRETS })
        .unwrap();
    assert_eq!(
        moved.unmoved[0].reason.to_string(),
        "one of your servers already has this name, and starts `other`"
    );
    std::fs::write(fixture.file(), BEFORE.replace("mine", "theirs")).unwrap();
    let stale = fixture.clients.write(&each).unwrap_err();
    assert!(
        stale.to_string().ends_with("has changed since it was read; nothing was written; try again"),
        "{stale}"
    );
    assert_eq!(fixture.text().unwrap(), BEFORE.replace("mine", "theirs"));
    std::fs::write(fixture.file(), "{\n  oops\n").unwrap();
    let bad = fixture.clients.connect(CURSOR, ConnectRequest::Each).unwrap_err().to_string();
    assert!(bad.contains("mcp.json`, line 2"), "{bad}");
    assert_eq!(fixture.state(), ClientState::Unreadable);
    let unknown = ClientTarget { id: "emacs", project: None };
    let unknown = fixture.clients.report_for(unknown).unwrap_err().to_string();
    assert_eq!(
        unknown,
        "unknown client `emacs`; run `ironcurtain clients list --all` to list the supported ones"
    );
    let nowhere = ClientTarget { id: "kiro", project: None };
    let nowhere = fixture.clients.connect(nowhere, ConnectRequest::Each).unwrap_err().to_string();
    assert!(nowhere.starts_with("Kiro is not installed; its settings file would be `"), "{nowhere}");
}

#[test]
fn connecting_again_fixes_a_missing_shim() {
    let fixture = fixture(Some(
        r#"{ "mcpServers": { "filesystem": { "command": "/old/ironcurtain-shim", "args": ["--server", "filesystem"] } } }"#,
    ));
    assert_eq!(fixture.state(), ClientState::Drifted);
    fixture.connect(ConnectRequest::Each).unwrap();
    assert_eq!(fixture.state(), ClientState::Connected);
}

#[test]
fn symlink_and_mode_of_settings_are_kept_and_copies_are_private() {
    let fixture = fixture(None);
    let real = fixture.dir.path().join("dotfiles.json");
    std::fs::write(&real, BEFORE).unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, fixture.file()).unwrap();
    fixture.connect(ConnectRequest::Each).unwrap();
    assert!(std::fs::symlink_metadata(fixture.file()).unwrap().is_symlink());
    assert_eq!(std::fs::metadata(&real).unwrap().mode() & 0o777, 0o640);
    let kept = fixture.clients.home.state.join("clients");
    assert_eq!(std::fs::metadata(&kept).unwrap().mode() & 0o777, 0o700);
    for file in std::fs::read_dir(kept).unwrap() {
        assert_eq!(file.unwrap().metadata().unwrap().mode() & 0o077, 0);
    }
    let project = fixture.dir.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let target = ClientTarget { id: "vscode", project: Some(&project) };
    fixture.clients.write(&fixture.clients.connect(target, ConnectRequest::Each).unwrap()).unwrap();
    assert!(project.join(".vscode/mcp.json").is_file());
    let none = ClientTarget { id: "codex", project: Some(&project) };
    assert_eq!(
        fixture.clients.report_for(none).unwrap_err().to_string(),
        "Codex does not support project settings"
    );
}

#[test]
fn project_settings_may_only_be_a_symlink_within_the_project() {
    let fixture = fixture(Some(BEFORE));
    let project = fixture.dir.path().join("project");
    std::fs::create_dir_all(project.join("shared")).unwrap();
    let target = |id| ClientTarget { id, project: Some(&project) };
    let link = |to: &Path, at: &str| std::os::unix::fs::symlink(to, project.join(at)).unwrap();
    let refused = |id| match fixture.clients.connect(target(id), ConnectRequest::Each) {
        Err(ClientError::LeavesProject { file, .. }) => file,
        other => panic!("{other:?}"),
    };
    // Symlinks that must be rejected: one to the user's settings, one to a missing file, and a folder that leads
    // outside.
    link(&fixture.file(), ".mcp.json");
    assert_eq!(refused("claude-code"), project.join(".mcp.json"));
    link(&fixture.dir.path().join("missing"), "opencode.json");
    assert_eq!(refused("opencode"), project.join("opencode.json"));
    link(&fixture.dir.path().join(".cursor"), ".cursor");
    assert_eq!(refused("cursor"), project.join(".cursor"));
    assert_eq!(fixture.text().unwrap(), BEFORE);
    assert!(!fixture.dir.path().join("missing").exists());
    // A symlink inside the project is allowed.
    std::fs::write(project.join("shared/mcp.json"), "{}").unwrap();
    link(Path::new("shared"), ".vscode");
    fixture.clients.write(&fixture.clients.connect(target("vscode"), ConnectRequest::Each).unwrap()).unwrap();
    assert!(std::fs::read_to_string(project.join("shared/mcp.json")).unwrap().contains("ironcurtain-shim"));
}
