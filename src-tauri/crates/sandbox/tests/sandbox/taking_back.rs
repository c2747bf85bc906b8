//! Taking a path away is proved, or said not to be.

use ironcurtain_sandbox::{Access::*, Proof};

use crate::harness::{Place, Probe};

#[test]
fn an_open_file_is_noticed() {
    noticed("hold");
}

#[test]
fn a_mapping_is_noticed() {
    noticed("map");
}

#[test]
fn a_descriptor_in_flight_in_a_socket_is_noticed() {
    noticed("park");
}

#[test]
fn a_working_directory_is_noticed() {
    let (place, mut probe, file) = granted();
    assert_eq!(probe.say(&format!("cd {}", place.path("dir"))), "ok");
    assert_eq!(probe.remove(&place.path("dir")), Proof::Held);
    assert_eq!(probe.say(&format!("exists {file}")), "err ENOENT");
}

#[test]
fn what_was_closed_in_time_is_not_held() {
    let (place, mut probe, file) = granted();
    for how in ["hold", "map", "park"] {
        assert_eq!(probe.say(&format!("{how} {file}")), "ok");
    }
    assert_eq!(probe.say("let-go"), "ok");
    assert_eq!(probe.remove(&place.path("dir")), Proof::Proved);
}

#[test]
fn a_held_path_is_gone_by_name_and_can_be_granted_again() {
    let (place, mut probe, file) = granted();
    assert_eq!(probe.say(&format!("hold {file}")), "ok");
    assert_eq!(probe.remove(&place.path("dir")), Proof::Held);
    assert_eq!(probe.say(&format!("exists {}", place.path("dir"))), "err ENOENT");
    assert_eq!(probe.say("read-held"), "ok dir/file");
    probe.add(&place.path("dir"), ReadOnly);
    assert_eq!(probe.say(&format!("read {file}")), "ok dir/file");
    assert_eq!(probe.say("let-go"), "ok");
    assert_eq!(probe.remove(&place.path("dir")), Proof::Proved);
}

/// Something that keeps a file in use is noticed; the same without it is proved.
fn noticed(how: &str) {
    let (place, mut probe, file) = granted();
    assert_eq!(probe.remove(&place.path("dir")), Proof::Proved);
    probe.add(&place.path("dir"), ReadOnly);
    assert_eq!(probe.say(&format!("{how} {file}")), "ok");
    assert_eq!(probe.remove(&place.path("dir")), Proof::Held);
    assert_eq!(probe.say(&format!("exists {file}")), "err ENOENT");
}

fn granted() -> (Place, Probe, String) {
    let place = Place::new();
    let file = place.file("dir/file");
    let mut probe = place.probe();
    probe.add(&place.path("dir"), ReadOnly);
    (place, probe, file)
}
