//! Compares the reference "everything" server over streamable HTTP with and without the shim. The differences are
//! those of the local server, plus those of a server without roots.

use super::write_entry;
use crate::comparison::{allow_all, allow_questions, different, documented_steps, format_difference, run};
use crate::reference;
use crate::servers;
use crate::world::World;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

/// Additional steps that differ. A server without roots offers no tool for them and does not mention them. Over HTTP,
/// the server includes its session id in the text of four responses.
const BY_HTTP: [&str; 6] = [
    "listed get-roots-list",
    "notifications",
    "toggle-simulated-logging off",
    "toggle-simulated-logging on",
    "toggle-subscriber-updates off",
    "toggle-subscriber-updates on",
];

struct Everything(Child);

impl Everything {
    fn start(port: u16) -> Self {
        let mut command = Command::new("node");
        command
            .arg(reference::script("server-everything"))
            .arg("streamableHttp")
            .env("PORT", port.to_string());
        let mut child = command.stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut lines = lines.skip_while(|line| !line.contains("listening on port"));
        assert!(lines.next().is_some(), "the server does not listen");
        std::thread::spawn(move || lines.for_each(drop));
        Self(child)
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn everything_server_over_http_differs_from_stdio_as_documented() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let _everything = Everything::start(port);
    let world = World::with(|prepared| {
        servers::install(prepared, "everything");
        allow_all(prepared);
        let entry = json!({ "url": format!("http://127.0.0.1:{port}/mcp"), "sampling": "allow" });
        write_entry(&prepared.home.config, "everything", &entry);
    });
    allow_questions(&world);
    let direct =
        std::thread::spawn(|| run(Command::new("node").arg(reference::script("server-everything")), true));
    let mut shim = Command::new(world.programs.join("ironcurtain-shim"));
    let through = run(shim.args(["--server", "everything"]).env("IRONCURTAIN_HOME", world.ours()), false);
    let direct = direct.join().unwrap();
    let expected: BTreeSet<String> =
        documented_steps().into_iter().chain(BY_HTTP.map(str::to_owned)).collect();
    let different = different(&direct, &through);
    let shown = format_difference(&different, &expected, &direct, &through);
    assert_eq!(different, expected, "unexpected differences{shown}");
    assert!(world.audit().intact);
}
