//! A trusted process that the relay or `daemon --detach` starts in the background.

use super::{Attach, run};
use crate::client::TIMEOUT;
use crate::test_home::TestHome;
use crate::world::{World, is_root};
use ironcurtain_testkit::wait::until;
use std::path::Path;

/// Stops the trusted process of a home directory when the test ends.
struct Background<'a>(&'a Path);

impl Drop for Background<'_> {
    fn drop(&mut self) {
        let _ = run(self.0, &["stop"]);
    }
}

/// Returns the command that runs the relay in a user namespace, as root or as an ordinary user.
fn relay_as(user: &str, home: &Path) -> Vec<String> {
    let namespace = ["unshare", "--user", user].map(str::to_owned);
    namespace.into_iter().chain(super::relay(home)).collect()
}

#[test]
fn the_relay_starts_the_trusted_process_of_an_ordinary_user() {
    let (desktop, place) = (World::new(), TestHome::new(|_| {}));
    let home = place.ours();
    let _background = Background(&home);
    let refused = Attach::start(&desktop.ours(), "rootbox", &relay_as("--map-root-user", &home));
    refused.says("does not start automatically as root; run `ironcurtain daemon --allow-root --detach`", 1);
    drop(refused);
    let attach = Attach::pairing(&desktop.ours(), "devbox", &relay_as("--map-user=1000", &home), &home);
    attach.attached(1);
    // It continues when the connection and the relay end.
    drop(attach);
    run(&home, &["status"]).unwrap();
}

#[test]
fn a_detached_daemon_is_ready_when_the_command_returns() {
    let place = TestHome::new(|_| {});
    let home = place.ours();
    let _background = Background(&home);
    let mut words = vec!["daemon", "--detach"];
    words.extend(is_root().then_some("--allow-root"));
    let on_terminal = [words.as_slice(), &["--ask", "terminal"]].concat();
    let refused = run(&home, &on_terminal).unwrap_err();
    assert!(refused.contains("`--ask terminal` needs a terminal; omit `--detach`"), "{refused}");
    // `run` returns only once all processes have closed standard output and standard error.
    assert_eq!(run(&home, &words), Ok(String::new()));
    run(&home, &["status"]).unwrap();
    let refused = run(&home, &words).unwrap_err();
    assert!(refused.contains("IronCurtain is already running"), "{refused}");
    run(&home, &["stop"]).unwrap();
    until("the trusted process has ended", TIMEOUT, || run(&home, &["status"]).err());
    // A start that fails reports the reason of the background process.
    std::fs::write(place.home.config.join("config.json"), "{").unwrap();
    let refused = run(&home, &words).unwrap_err();
    assert!(refused.contains("config.json") && refused.contains("IronCurtain failed to start"), "{refused}");
}
