//! Tests that a remote machine's desktops can be listed and removed.

use super::{Remote, attach, run};
use crate::test_home::TestHome;
use crate::world::World;
use ironcurtain_remote::{ChannelKey, PairedKeys};

#[test]
fn an_attached_desktop_is_listed_and_detached_when_it_is_removed() {
    let (desktop, remote) = (World::new(), Remote::new());
    let (home, keys) = (remote.place.ours(), PairedKeys::new(remote.place.home.desktops()));
    let list = || run(&home, &["pair", "--list"]).unwrap();
    assert!(list().starts_with("No desktop is paired with this machine.\n"), "{}", list());
    let attached = attach(&desktop, &remote);
    let (name, key) = keys.read().unwrap().pop_first().unwrap();
    assert!(list().starts_with(&format!("{name}  attached\n  key        {key}\n")), "{}", list());
    let json = run(&home, &["--json", "pair", "--list"]).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let expected = serde_json::json!([{ "name": name, "key": key.to_string(), "attached": true }]);
    assert_eq!(json["desktops"], expected);
    let unknown = run(&home, &["pair", "--remove", "nobody"]).unwrap_err();
    assert!(unknown.contains("no desktop `nobody` is paired with this machine"), "{unknown}");
    let removed = run(&home, &["pair", "--remove", &name]).unwrap();
    assert!(removed.contains(&format!("Removed: {name}.")), "{removed}");
    attached.gives_up("this machine does not know your desktop");
    assert!(keys.read().unwrap().is_empty());
}

#[test]
fn desktops_are_listed_and_removed_while_the_daemon_is_not_running() {
    let place = TestHome::new(|_| {});
    let keys = PairedKeys::new(place.home.desktops());
    let [first, second] = [1, 2].map(|seed| ChannelKey::from_seed(&[seed; 32]).unwrap().public());
    keys.add("laptop", first).unwrap();
    keys.add("-old", second).unwrap();
    let listed = run(&place.ours(), &["pair", "--list"]).unwrap();
    let expected =
        format!("-old  not attached\n  key        {second}\nlaptop  not attached\n  key        {first}\n");
    assert!(listed.starts_with(&expected), "{listed}");
    run(&place.ours(), &["pair", "--remove", "-old"]).unwrap();
    assert_eq!(keys.read().unwrap().into_iter().collect::<Vec<_>>(), [("laptop".to_owned(), first)]);
    let unpaired = run(&place.ours(), &["pair", "000000"]).unwrap_err();
    assert!(unpaired.contains("IronCurtain is not running"), "{unpaired}");
}
