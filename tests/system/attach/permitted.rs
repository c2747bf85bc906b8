//! Tests a desktop that the remote machine's root user has permitted to pair, without another desktop's consent.

use super::{Attach, Remote, attach, file, run};
use crate::client::TIMEOUT;
use crate::private_etc::replace_etc;
use crate::scripted_user::Next;
use crate::world::{World, eventually};
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_protocol::PromptLocation;
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Returns the key in the error message for a desktop that tries to pair while no other desktop is attached.
#[track_caller]
fn refused_key(desktop: &Path, remote: &Remote) -> String {
    let refused = Attach::start(desktop, "devbox", &remote.relay());
    refused.says("another desktop is paired with this machine, and has to allow this one", 1);
    let said = refused.said().join("\n");
    let key = said.split_once("\"NAME\": \"").and_then(|(_, rest)| rest.split_once('"'));
    key.unwrap_or_else(|| panic!("no key in {said}")).0.to_owned()
}

#[test]
fn root_permits_one_more_desktop_by_its_key_and_no_other() {
    if !is_inside() {
        let name = "attach::permitted::root_permits_one_more_desktop_by_its_key_and_no_other";
        return run_inside(name, &["--mount"]);
    }
    let dir = tempfile::tempdir().unwrap();
    let desktops = replace_etc(dir.path()).join("desktops.json");
    let (first, second, third, remote) = (World::new(), World::new(), World::new(), Remote::new());
    drop(attach(&first, &remote));
    eventually("the first is detached", TIMEOUT, || {
        remote.status().prompt_location != PromptLocation::Desktop
    });
    let key = refused_key(&second.ours(), &remote);
    std::fs::write(&desktops, format!("{{ \"new laptop\": \"{key}\" }}")).unwrap();
    let writable_by = |mode| {
        std::fs::set_permissions(&desktops, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    writable_by(0o666);
    let refused = Attach::start(&second.ours(), "devbox", &remote.relay());
    refused.gives_up("other users can write to it");
    assert!(!second.home.remotes().exists());
    writable_by(0o644);
    // The code is still needed, but no desktop is asked.
    let attached = Attach::pairing(&second.ours(), "devbox", &remote.relay(), &remote.place.ours());
    attached.attached(1);
    assert_eq!(first.user.count(), 0);
    let (path, mut agent) = (file(&remote, "docs/first.txt"), remote.connect());
    second.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    agent.read(&path).ok();
    drop(attached);
    eventually("the second is detached", TIMEOUT, || {
        remote.status().prompt_location != PromptLocation::Desktop
    });
    assert_ne!(refused_key(&third.ours(), &remote), key);
    let listed = run(&remote.place.ours(), &["pair", "--list"]).unwrap();
    let expected = format!(
        "Root permits these desktops to pair (/etc/ironcurtain/desktops.json):\nnew laptop\n  key        {key}\n"
    );
    assert!(listed.contains(&expected), "{listed}");
    let kept = run(&remote.place.ours(), &["pair", "--remove", "new laptop"]).unwrap_err();
    assert!(kept.contains("as root, remove its line from that file"), "{kept}");
}
