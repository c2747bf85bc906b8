//! Autostart files of a server with the setting `"autostart": "strict"`.

use super::{end_session, entry_for, git, grant_folder_of, repository, undecided_files};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::world::eventually;
use ironcurtain_protocol::AutostartFileState;
use serde_json::json;
use std::fs;
use std::path::Path;

#[test]
fn strict_mode_quarantines_autostart_files_and_keeps_other_files() {
    let world = hostile::contained(&json!({ "autostart": "strict", "gitConfig": "guarded" }));
    let repo = repository(&world);
    fs::write(repo.join(".npmrc"), "mine").unwrap();
    let mut client = world.connect("hostile");
    grant_folder_of(&world, &mut client, &repo.join("text"));
    // Autostart files that already exist are read-only.
    client.run(&repo, "echo evil > .npmrc").refused("Read-only file system");
    let named = [".gitattributes", ".pre-commit-config.yaml", ".bashrc"];
    for name in named {
        client.run(&repo, &format!("echo x > {name}")).ok();
    }
    client.run(&repo, "mkdir v && echo '{}' > v/settings.json && mv v .vscode").ok();
    client.run(&repo, "echo all: > Makefile && echo made > made").ok();
    let mut moved: Vec<_> = named.map(|name| repo.join(name)).to_vec();
    moved.push(repo.join(".vscode"));
    eventually("the files are quarantined", TIMEOUT, || moved.iter().all(|path| !path.exists()));
    let record = end_session(&world, client);

    for path in &moved {
        let file = record.files.iter().find(|file| Path::new(&file.path).starts_with(path));
        let file = file.unwrap_or_else(|| panic!("{} is not in {record:?}", path.display()));
        assert_eq!(file.state, AutostartFileState::Quarantined, "{file:?}");
        assert!(Path::new(file.moved_to.as_ref().unwrap()).exists(), "{file:?}");
    }
    let makefile = repo.join("Makefile");
    assert_eq!(undecided_files(&record), [makefile.to_str().unwrap()]);
    assert_eq!(entry_for(&record, &makefile).state, AutostartFileState::Undecided);
    assert_eq!(fs::read_to_string(repo.join(".npmrc")).unwrap(), "mine");
    assert_eq!(git(&world, &repo, &["status", "--porcelain"]), "?? .npmrc\n?? Makefile\n?? made\n");
}
