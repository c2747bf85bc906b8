//! The look that is shown to be refused: the very sandbox of servers, and a folder that is really there.

use crate::world::{World, is_root, programs};
use ironcurtain_admin::inspect::{Inspection, sight};
use ironcurtain_secrets::SecretStore;
use std::time::Duration;

#[test]
fn a_program_that_is_shown_nothing_sees_no_private_folder_and_one_that_is_shown_it_does() {
    let world = World::new();
    let key = world.file(".config/private/key", "secret");
    let folder = key.parent().unwrap();
    let inspection = Inspection {
        home: world.home.clone(),
        programs: programs(),
        allow_root: is_root(),
        patience: Duration::from_secs(20),
        secrets: SecretStore::of(&world.home.state),
    };
    let refused = world.wait(sight(&inspection, folder, None)).unwrap();
    assert_eq!(refused.seen, Vec::<String>::new());
    assert!(refused.complaint.contains("No such file or directory"), "{refused:?}");
    let shown = world.wait(sight(&inspection, folder, Some(folder))).unwrap();
    assert_eq!((shown.seen, shown.complaint), (vec!["key".to_owned()], String::new()));
}
