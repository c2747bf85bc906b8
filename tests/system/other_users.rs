//! Connections of other users of the machine.

use crate::scripted_user::Next;
use crate::world::{World, is_root};
use ironcurtain_consent::{Lifetime, Reach};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Connects to the socket and prints what the daemon sends before it gets anything.
const LISTEN: &str = "import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.settimeout(20)
peer.connect(sys.argv[1])
print(peer.recv(65536))";

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn another_user_is_refused_even_if_the_socket_is_open_to_all() {
    let world = World::new();
    let socket = world.home.socket.clone();
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    // This user's connection is accepted.
    let path = world.file("docs/notes.txt", "mine");
    world.user.will(Next::Allow(Reach::Paths, Lifetime::Once));
    assert_eq!(world.connect("filesystem").read(&path).ok(), "mine");
    if !is_root() {
        eprintln!("not tested: the refusal of another user, because only root can act as one");
        return;
    }
    for path in socket.ancestors().take_while(|path| *path != Path::new("/var/tmp")) {
        let mode = if path == socket { 0o666 } else { 0o755 };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }
    let other = ["--reuid=65534", "--regid=65534", "--clear-groups", "/usr/bin/python3", "-c", LISTEN];
    let heard = Command::new("setpriv").args(other).arg(&socket).output().unwrap();
    let text = String::from_utf8_lossy(&heard.stdout);
    assert!(text.contains("this is the IronCurtain of another user; you are user 65534"), "{heard:?}");
}
