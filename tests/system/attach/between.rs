//! A man in the middle: a program between a desktop and a remote machine.

use super::peer::{listen, runtime, start_relay};
use super::{Attach, NOT_WAITING, Remote, pair, run};
use crate::world::World;
use ironcurtain_remote::ChannelKey;
use std::io::Write;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpStream, UnixStream};

/// Starts the program. With keys, the program terminates both channels and copies the decrypted messages. Otherwise, it
/// copies the ciphertext. Returns the command for `ironcurtain attach`.
fn between(remote: &Remote, keys: Option<[ChannelKey; 2]>) -> Vec<String> {
    let (relay, inside) = start_relay(remote);
    let (listener, command) = listen();
    std::thread::spawn(move || {
        let _relay = relay;
        let (outside, _) = listener.accept().unwrap();
        outside.set_nonblocking(true).unwrap();
        runtime().block_on(async {
            let mut outside = TcpStream::from_std(outside).unwrap();
            let mut inside = UnixStream::from_std(inside).unwrap();
            // Both branches return when the machines close their connections.
            let _ = match keys {
                None => copy_bidirectional(&mut outside, &mut inside).await,
                Some([as_remote, as_desktop]) => {
                    let mut outside = as_remote.accept(outside).await.unwrap();
                    let mut inside = as_desktop.connect(inside).await.unwrap();
                    copy_bidirectional(&mut outside.stream, &mut inside.stream).await
                }
            };
        });
    });
    command
}

#[test]
fn a_program_that_ends_both_channels_pairs_with_neither_side() {
    let (desktop, remote) = (World::new(), Remote::new());
    let keys = [3, 4].map(|seed| ChannelKey::from_seed(&[seed; 32]).unwrap());
    let (attach, _user) = Attach::waiting(&desktop.ours(), "devbox", &between(&remote, Some(keys)));
    // The user follows the instructions and types the desktop's code on the remote machine.
    let code = attach.code();
    let refused = pair(&remote.place.ours(), &code).unwrap_err();
    assert!(refused.contains("the desktop that is pairing has another code"), "{refused}");
    assert!(refused.contains("a program may be between the two machines"), "{refused}");
    attach.gives_up("a wrong code was typed on the remote machine");
    assert!(!desktop.home.remotes().exists() && !remote.place.home.desktops().exists());
    let again = run(&remote.place.ours(), &["pair", &code]).unwrap_err();
    assert!(again.contains(NOT_WAITING), "{again}");
    // A program that only copies the ciphertext does not prevent pairing.
    let (attach, mut user) = Attach::waiting(&desktop.ours(), "devbox", &between(&remote, None));
    let remote_code = pair(&remote.place.ours(), &attach.code()).unwrap();
    writeln!(user, "{remote_code}").unwrap();
    attach.attached(1);
    assert!(desktop.home.remotes().exists() && remote.place.home.desktops().exists());
}
