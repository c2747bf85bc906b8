//! The project that an agent is started in is proposed to the person when its session begins.

use crate::client::{BOUND, Client};
use crate::consent::{Next, paths};
use crate::world::{World, eventually};
use ironcurtain_daemon::consent::{Lifetime, Reach, Verb};
use ironcurtain_protocol::{Reply, Request};
use std::path::Path;
use std::process::Command;

/// A client that is started in this folder.
fn connect(world: &World, folder: &Path) -> Client {
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    shim.args(["--server", "filesystem"]).current_dir(folder);
    let mut client = Client::spawn(shim, &world.ours());
    client.handshake();
    client
}

fn world() -> World {
    let world = World::new();
    world.file("src/app/.git/HEAD", "ref: refs/heads/main");
    world.file("src/app/lib/notes.txt", "in the project");
    world
}

#[test]
fn a_yes_opens_the_project_and_is_a_grant_like_any_other() {
    let world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    world.person.will(Next::Allow(Reach::ProjectToChange, Lifetime::Always));
    let mut client = connect(&world, &project.join("lib"));
    eventually("it is granted", BOUND, || world.grants().len() == 1);
    let question = world.person.asked().remove(0);
    assert_eq!((question.consequences[0].verb, question.tool.as_deref()), (Verb::WorkIn, None));
    assert_eq!(paths(&question), [project.to_str().unwrap()]);
    assert_eq!(client.read(&notes).ok(), "in the project");
    client.write(&project.join("new.txt"), "new").ok();
    let grant = world.grants().remove(0);
    assert_eq!(
        (grant.provenance.as_str(), grant.access.join("+").as_str()),
        ("proposed workspace", "read+write")
    );
    // It is not asked again, as long as that holds.
    let mut again = connect(&world, &project);
    assert_eq!(again.read(&notes).ok(), "in the project");
    assert!(world.person.asked().is_empty());
    world.revoke_only_grant();
    again.read(&notes).refused("the user denied");
    assert!(world.audit().intact);
}

#[test]
fn a_no_is_remembered_and_can_be_taken_back() {
    let mut world = world();
    let (project, notes) = (world.path("src/app"), world.path("src/app/lib/notes.txt"));
    let mut client = connect(&world, &project);
    eventually("the no is listed", BOUND, || world.grants().iter().any(|grant| grant.kind == "declined"));
    assert_eq!(world.person.asked().len(), 1);
    client.read(&notes).refused("the user denied");
    client.hang_up();
    world.person.asked();
    world.restart();
    let mut client = connect(&world, &project);
    client.read(&notes).refused("the user denied");
    assert!(world.person.asked().iter().all(|question| question.rule != "workspace"));
    client.hang_up();
    let no = world.grants().remove(0);
    assert_eq!((no.path.as_str(), no.access.len()), (project.to_str().unwrap(), 0));
    let revoked = world.request(Request::Revoke { grant: no.id });
    assert!(matches!(revoked, Reply::Revoked { .. }), "{revoked:?}");
    world.person.will(Next::Allow(Reach::ProjectToRead, Lifetime::Session));
    let mut client = connect(&world, &project);
    eventually("it is granted", BOUND, || world.grants().iter().any(|grant| grant.access == ["read"]));
    assert_eq!(client.read(&notes).ok(), "in the project");
    client.write(&project.join("new.txt"), "new").refused("the user denied");
}

#[test]
fn neither_the_home_nor_what_lies_outside_of_it_is_proposed() {
    let world = world();
    world.file(".git/HEAD", "ref: refs/heads/main");
    let notes = world.file("docs/notes.txt", "x");
    for folder in [world.home.person.clone(), world.path("docs"), Path::new("/").to_owned()] {
        let mut client = connect(&world, &folder);
        client.read(&notes).refused("the user denied");
        let asked = world.person.asked();
        assert!(asked.iter().all(|question| question.rule != "workspace"), "{}: {asked:?}", folder.display());
    }
    // The allowed twin.
    connect(&world, &world.path("src/app"));
    eventually("it is proposed", BOUND, || {
        world.person.asked().iter().any(|question| question.rule == "workspace")
    });
}
