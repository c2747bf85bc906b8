//! Runs published agent clients that `ironcurtain clients connect` has configured, with a scripted model.
//!
//! - Each client starts the shim from the settings that IronCurtain wrote. The model's tool calls go through the
//!   policy, the user's answer and a sandboxed server, and the results reach the model.
//! - The loopback interface is the only network.
//! - The tests run each client's own executable, because the vendors' launchers check for updates.

mod model;

use crate::scripted_user::{Next, paths};
use crate::world::{World, installed, programs};
use ironcurtain_consent::{DenialReach, Lifetime, Reach};
use ironcurtain_testkit::namespace::{is_inside, run_inside_through};
use model::Model;
use serde_json::json;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Content of the file that the model reads.
const CONTENT: &str = "the numbers of this year";

/// The user's note on the denied call.
const NOTE: &str = "ask my accountant instead";

/// Error message of the server `broken`, which fails to start.
const REASON: &str = "the server `broken` is not running: exit status 1";

/// Timeout for one prompt, in seconds. The clients are large programs, and several run at once.
const TIMEOUT: &str = "90";

/// Shell command that brings up the loopback interface and then runs a program.
const ALONE: &str = r#"PATH="$PATH:/usr/sbin:/sbin" ip link set lo up; exec "$0" "$@""#;

struct Agent {
    /// Client id in IronCurtain's client table.
    id: &'static str,
    /// Name of the client's program on `PATH`.
    name: &'static str,
    /// Path of the program below `node_modules`.
    program: &'static str,
    /// Client name in the `initialize` request.
    greets_as: &'static str,
    /// Path and content of the client's settings file before connecting. `MODEL-URL` stands for the model's address.
    settings: Option<(&'static str, &'static str)>,
    /// Environment variables. `MODEL-URL` stands for the model's address.
    variables: &'static [(&'static str, &'static str)],
    /// Arguments that make the client list its servers.
    list: &'static [&'static str],
    /// Text that the list contains if the server works.
    works: &'static str,
    /// Arguments that make the client send one prompt to the model.
    run: &'static [&'static str],
    /// Arguments and an environment variable that make the client report why a server failed to start.
    why: (&'static [&'static str], (&'static str, &'static str)),
}

const CLAUDE_CODE: Agent = Agent {
    id: "claude-code",
    name: "claude",
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    greets_as: "claude-code",
    settings: None,
    variables: &[
        ("ANTHROPIC_BASE_URL", "MODEL-URL"),
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ],
    list: &["mcp", "list"],
    works: "Connected",
    run: &["-p", "go", "--allowedTools", "mcp__filesystem"],
    why: (&["-p", "go", "--debug-file", "/dev/stdout"], ("NOTHING", "")),
};

const CODEX: Agent = Agent {
    id: "codex",
    name: "codex",
    program: "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
    greets_as: "codex-mcp-client",
    settings: Some((
        ".codex/config.toml",
        "model = \"stand-in\"\nmodel_provider = \"ours\"\n\n[model_providers.ours]\nname = \"Ours\"\nbase_url = \"MODEL-URL/v1\"\nwire_api = \"responses\"\n",
    )),
    variables: &[],
    list: &["mcp", "list"],
    works: "enabled",
    run: &["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"],
    why: (
        &["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "go"],
        ("RUST_LOG", "codex_mcp=warn,codex_core=warn"),
    ),
};

const GEMINI: Agent = Agent {
    id: "gemini",
    name: "gemini",
    program: "@google/gemini-cli/bundle/gemini.js",
    greets_as: "gemini-cli-mcp-client",
    settings: Some((
        ".gemini/settings.json",
        r#"{ "security": { "auth": { "selectedType": "gemini-api-key" } }, "general": { "enableAutoUpdate": false }, "privacy": { "usageStatisticsEnabled": false } }"#,
    )),
    variables: &[
        ("GEMINI_API_KEY", "none"),
        ("GOOGLE_GEMINI_BASE_URL", "MODEL-URL"),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ],
    list: &["mcp", "list"],
    works: "Connected",
    run: &["-m", "gemini-2.5-flash", "--yolo", "--skip-trust", "-p", "go"],
    why: (&["-m", "gemini-2.5-flash", "--yolo", "--skip-trust", "-d", "-p", "go"], ("NOTHING", "")),
};

const OPENCODE: Agent = Agent {
    id: "opencode",
    name: "opencode",
    program: "opencode-linux-x64-baseline/bin/opencode",
    greets_as: "opencode",
    settings: Some((
        ".config/opencode/opencode.json",
        r#"{ "autoupdate": false, "provider": { "ours": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "MODEL-URL/v1", "apiKey": "none" }, "models": { "stand-in": {} } } } }"#,
    )),
    variables: &[("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")],
    list: &["mcp", "list"],
    works: "connected",
    run: &["run", "-m", "ours/stand-in", "go"],
    why: (&["mcp", "list"], ("NOTHING", "")),
};

const COPILOT: Agent = Agent {
    id: "copilot",
    name: "copilot",
    program: "@github/copilot-linux-x64/copilot",
    greets_as: "copilot-cli",
    settings: None,
    variables: &[
        ("COPILOT_PROVIDER_BASE_URL", "MODEL-URL/v1"),
        ("COPILOT_PROVIDER_API_KEY", "none"),
        ("COPILOT_MODEL", "stand-in"),
        ("COPILOT_OFFLINE", "true"),
    ],
    list: &["mcp", "list"],
    works: "filesystem",
    run: &["--no-auto-update", "--allow-all-tools", "--disable-builtin-mcps", "-p", "go"],
    why: (
        &[
            "--no-auto-update",
            "--allow-all-tools",
            "--disable-builtin-mcps",
            "--output-format",
            "json",
            "-p",
            "go",
        ],
        ("NOTHING", ""),
    ),
};

/// An agent client with its own home directory.
struct Desk {
    agent: &'static Agent,
    world: World,
    model: Model,
    file: PathBuf,
}

impl Desk {
    fn new(agent: &'static Agent) -> Self {
        let servers = json!({
            "filesystem": { "command": "ironcurtain-filesystem" },
            "broken": { "command": "/usr/bin/false" },
        });
        let world = World::with(|prepared| {
            std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
        });
        let file = world.file("docs/report.txt", CONTENT);
        let model = Model::start("read_text_file", &json!({ "path": file }), &world.path("model.log"));
        world.file("project/notes.txt", "");
        std::fs::create_dir(world.path("bin")).unwrap();
        let program = installed("clients").join("node_modules").join(agent.program);
        symlink(&program, world.path("bin").join(agent.name)).unwrap();
        if let Some((settings, text)) = agent.settings {
            world.file(settings, &text.replace("MODEL-URL", &model.url()));
        }
        Self { agent, world, model, file }
    }

    /// Runs a program as the user, in one of the user's projects.
    fn run(&self, program: &Path, arguments: &[&str], variable: (&str, &str)) -> (bool, String) {
        let path = std::env::var("PATH").unwrap();
        let mut command = Command::new("timeout");
        command
            .arg(TIMEOUT)
            .arg(program)
            .args(arguments)
            .current_dir(self.world.path("project"))
            .env_clear()
            .env("PATH", format!("{}:{path}", self.world.path("bin").display()))
            .env("HOME", &self.world.home.user_home)
            .env("TMPDIR", self.world.path("project"))
            .env("IRONCURTAIN_HOME", self.world.ours())
            .env(variable.0, variable.1);
        for (name, value) in self.agent.variables {
            command.env(name, value.replace("MODEL-URL", &self.model.url()));
        }
        let Output { status, stdout, stderr } = command.output().unwrap();
        (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
    }

    #[track_caller]
    fn agent(&self, arguments: &[&str]) -> String {
        let (good, said) =
            self.run(&self.world.path("bin").join(self.agent.name), arguments, ("NOTHING", ""));
        assert!(good, "{said}");
        said
    }

    /// Runs the `ironcurtain` command.
    #[track_caller]
    fn clients(&self, arguments: &[&str]) -> String {
        let words = [&["clients"], arguments].concat();
        let (good, said) = self.run(&programs().join("ironcurtain"), &words, ("NOTHING", ""));
        assert!(good, "{said}");
        said
    }

    /// Sends one prompt to the model. Returns the tool result that the model received.
    #[track_caller]
    fn prompt(&self) -> String {
        self.model.forget();
        let said = self.agent(self.agent.run);
        let told = self.model.results();
        assert_eq!(told.len(), 1, "{told:?}\n{said}");
        assert!(said.contains("It said: "), "{said}");
        told[0].clone()
    }
}

fn assert_works_through_ironcurtain(test: &str, agent: &'static Agent) {
    if !is_inside() {
        let own = std::env::current_exe().unwrap();
        return run_inside_through(test, &["--net"], &["sh", "-ec", ALONE, own.to_str().unwrap()]);
    }
    let desk = Desk::new(agent);
    let person = &desk.world.user;
    // Some clients report their working directory, which raises an additional question.
    person.deny_other_questions();
    desk.clients(&["connect", agent.id, "--server", "filesystem", "--yes"]);
    let listed = desk.agent(agent.list);
    assert!(listed.contains("filesystem") && listed.contains(agent.works), "{listed}");

    person.will(Next::Allow(Reach::Paths, Lifetime::Once));
    let told = desk.prompt();
    assert!(told.contains(CONTENT), "{told}");
    let asked = person.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].server, "filesystem");
    assert_eq!(asked[0].tool.as_deref(), Some("read_text_file"));
    assert_eq!(paths(&asked[0]), [desk.file.to_str().unwrap()]);
    let client = format!("{:?}", asked[0].client);
    assert!(asked[0].sandboxed && client.contains(agent.greets_as), "{client}");

    person.will(Next::DenyMore(DenialReach::Call, Some(NOTE.to_owned())));
    let told = desk.prompt();
    assert!(told.contains("DENIED") && told.contains(NOTE) && !told.contains(CONTENT), "{told}");
    assert_eq!(person.asked().len(), 1);

    desk.clients(&["connect", agent.id, "--server", "broken", "--yes"]);
    let (arguments, variable) = agent.why;
    let (_, said) = desk.run(&desk.world.path("bin").join(agent.name), arguments, variable);
    assert!(said.contains(REASON), "{said}");

    desk.clients(&["disconnect", agent.id, "--yes"]);
    let left = desk.clients(&["list", "--json"]);
    assert!(!left.contains("\"connected\"") && left.contains(agent.id), "{left}");
}

#[test]
fn claude_code_works_through_ironcurtain() {
    assert_works_through_ironcurtain("agents::claude_code_works_through_ironcurtain", &CLAUDE_CODE);
}

#[test]
fn codex_works_through_ironcurtain() {
    assert_works_through_ironcurtain("agents::codex_works_through_ironcurtain", &CODEX);
}

#[test]
fn gemini_works_through_ironcurtain() {
    assert_works_through_ironcurtain("agents::gemini_works_through_ironcurtain", &GEMINI);
}

#[test]
fn opencode_works_through_ironcurtain() {
    assert_works_through_ironcurtain("agents::opencode_works_through_ironcurtain", &OPENCODE);
}

#[test]
fn copilot_works_through_ironcurtain() {
    assert_works_through_ironcurtain("agents::copilot_works_through_ironcurtain", &COPILOT);
}

#[test]
fn claude_code_is_connected_and_restored_with_its_own_cli() {
    let test = "agents::claude_code_is_connected_and_restored_with_its_own_cli";
    if !is_inside() {
        let own = std::env::current_exe().unwrap();
        return run_inside_through(test, &["--net"], &["sh", "-ec", ALONE, own.to_str().unwrap()]);
    }
    let desk = Desk::new(&CLAUDE_CODE);
    let mine = json!({ "mine": { "type": "stdio", "command": "/usr/bin/true", "args": [] } });
    let settings =
        desk.world.file(".claude.json", &json!({ "numStartups": 3, "mcpServers": mine }).to_string());
    let read =
        || serde_json::from_str::<serde_json::Value>(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    let said = desk.clients(&["connect", "claude-code", "--server", "filesystem", "--yes"]);
    let shim = programs().join("ironcurtain-shim");
    let command = format!("-- {} --server filesystem`", shim.display());
    assert!(
        said.contains("Written by `claude mcp add -s user filesystem") && said.contains(&command),
        "{said}"
    );
    let entry = &read()["mcpServers"]["filesystem"];
    assert_eq!(entry["command"], json!(shim));
    assert_eq!(entry["args"], json!(["--server", "filesystem"]));
    assert!(read()["numStartups"] == 3 && read()["mcpServers"].get("mine").is_some());
    // The entry already exists, so nothing is added.
    assert!(
        desk.clients(&["connect", "claude-code", "--server", "filesystem", "--yes"])
            .contains("nothing to write")
    );
    let said = desk.clients(&["disconnect", "claude-code", "--yes"]);
    assert!(said.contains("Written by `claude mcp remove -s user filesystem`"), "{said}");
    assert_eq!(read()["mcpServers"], mine);
    // The settings file is edited directly: Claude Code's own entries may contain secrets, which must not appear on a
    // command line.
    let said = desk.clients(&["connect", "claude-code", "--move", "--yes"]);
    assert!(!said.contains("Written by"), "{said}");
    assert_eq!(read()["mcpServers"]["mine"]["command"], json!(shim));
    desk.clients(&["disconnect", "claude-code", "--yes"]);
    assert_eq!(read()["mcpServers"], mine);
}
