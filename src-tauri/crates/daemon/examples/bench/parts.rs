//! Benchmarks of single components, and a minimal MCP client.

use anyhow::{Context, ensure};
use ironcurtain_sandbox::{NetworkAccess, ResourceLimits, Spec, UnixSockets, View, launch};
use ironcurtain_testkit::measurements::{Row, Sample};
use ironcurtain_testkit::programs::built;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Measures the time from the launch of `echo` to its first output byte, in IronCurtain's sandbox and in plain
/// bubblewrap.
pub fn sandbox_launch(base: &Path, starts: usize) -> anyhow::Result<Vec<Row>> {
    let session = base.join("session");
    std::fs::create_dir_all(&session)?;
    let text = |path: &Path| path.to_str().map(str::to_owned).context("not UTF-8");
    let spec = Spec {
        argv: vec!["/bin/echo".into(), "x".into()],
        env: BTreeMap::new(),
        cwd: None,
        home: None,
        view: View::Roots { session_dir: text(&session)?, programs: vec![] },
        mounts: vec![],
        network: NetworkAccess::None,
        unix_sockets: UnixSockets::None,
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: ResourceLimits::default(),
        state_dir: text(&base.join("state"))?,
        allow_root: true,
    };
    let supervisor = built().join("ironcurtain-sandbox");
    let (mut ours, mut peer) = (Sample::default(), Sample::default());
    for _ in 0..starts {
        ours.time(|| -> anyhow::Result<()> {
            let launched = launch(&spec, &supervisor, |_| ())?;
            first_byte(std::fs::File::from(launched.stdout))
        })?;
        peer.time(|| -> anyhow::Result<()> {
            let mut bwrap = Command::new("bwrap")
                .args([
                    "--unshare-all",
                    "--die-with-parent",
                    "--ro-bind",
                    "/",
                    "/",
                    "--dev",
                    "/dev",
                    "--proc",
                    "/proc",
                ])
                .args(["--", "/bin/echo", "x"])
                .stdout(Stdio::piped())
                .spawn()?;
            first_byte(bwrap.stdout.take().context("no output")?)?;
            bwrap.wait()?;
            Ok(())
        })?;
    }
    Ok(vec![Row::compared(
        "sandbox, launch to first byte",
        ours,
        "bubblewrap alone, and exit",
        peer,
        "<= 20 ms",
    )])
}

fn first_byte(mut from: impl Read) -> anyhow::Result<()> {
    let mut byte = [0];
    from.read_exact(&mut byte)?;
    Ok(())
}

/// Minimal MCP client. Its own overhead is low, so measurements show the server side.
pub struct BenchClient {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl BenchClient {
    /// Starts the server program and performs the `initialize` handshake.
    pub fn begin(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdin = child.stdin.take().context("no input")?;
        let stdout = BufReader::new(child.stdout.take().context("no output")?);
        let mut conversation = Self { child, stdin, stdout, id: 0 };
        let client = json!({ "name": "bench", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        conversation.send("initialize", &hello)?;
        conversation.answer()?;
        writeln!(
            conversation.stdin,
            "{}",
            json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
        )?;
        Ok(conversation)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Calls a tool and waits for the response. Fails if the response is an error.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<()> {
        self.begin_call(tool, arguments)?;
        self.answered()
    }

    /// Calls a tool without waiting for the response.
    pub fn begin_call(&mut self, tool: &str, arguments: &Value) -> anyhow::Result<()> {
        self.send("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Waits for the response to a call. Fails if the response is an error.
    pub fn answered(&mut self) -> anyhow::Result<()> {
        let answer = self.answer()?;
        ensure!(!answer.contains("\"isError\":true") && !answer.contains("\"error\""), "{answer}");
        Ok(())
    }

    fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<()> {
        self.id += 1;
        let line =
            format!("{}\n", json!({ "jsonrpc": "2.0", "id": self.id, "method": method, "params": params }));
        Ok(self.stdin.write_all(line.as_bytes())?)
    }

    fn answer(&mut self) -> anyhow::Result<String> {
        let mut answer = String::new();
        let read = self.stdout.read_line(&mut answer)?;
        ensure!(read > 0, "the connection was closed");
        Ok(answer)
    }
}

impl Drop for BenchClient {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
