//! The client of a published SDK, which tries the stateless protocol version first.

use crate::world::{World, installed};
use std::path::Path;
use std::process::Command;

fn says(world: &World, server: &str) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/sdk.py");
    let said = Command::new("python3")
        .arg(script)
        .arg(world.programs.join("ironcurtain-shim"))
        .arg(server)
        .current_dir("/")
        .env("PYTHONPATH", installed("pypi"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("IRONCURTAIN_HOME", world.ours())
        .output()
        .unwrap();
    String::from_utf8(said.stdout).unwrap().trim().to_owned()
}

#[test]
fn newest_protocol_version_is_served_or_refused_with_a_reason() {
    let world = World::new();
    assert_eq!(says(&world, "filesystem"), "2026-07-28 14");
    let told = says(&world, "nobody");
    assert!(
        told.starts_with("IronCurtain: no server is named `nobody`; pass one of `filesystem` to `--server`"),
        "{told}"
    );
}
