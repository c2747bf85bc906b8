//! The command that shows which parts of a folder a sandboxed program sees.

use crate::world::{World, is_root, programs};
use ironcurtain_admin::inspect::{Inspection, list_folder};
use ironcurtain_secrets::SecretStore;
use std::time::Duration;

#[test]
fn private_folders_are_visible_only_when_mounted() {
    let world = World::new();
    let key = world.file(".config/private/key", "secret");
    let folder = key.parent().unwrap();
    let inspection = Inspection {
        home: world.home.clone(),
        programs: programs(),
        allow_root: is_root(),
        timeout: Duration::from_secs(20),
        secrets: SecretStore::of(&world.home.state),
    };
    let refused = world.wait(list_folder(&inspection, folder, None)).unwrap();
    assert_eq!(refused.names, Vec::<String>::new());
    assert!(refused.stderr.contains("No such file or directory"), "{refused:?}");
    let shown = world.wait(list_folder(&inspection, folder, Some(folder))).unwrap();
    assert_eq!((shown.names, shown.stderr), (vec!["key".to_owned()], String::new()));
}
