//! Command-line agents in a run, each with its profile and with a scripted model on the run's loopback interface.
//!
//! - A launcher takes the place of the installed agent. It starts the model and then the agent. A user profile
//!   extends the shipped profile and gives access to the real agent's files.

use crate::scripted_user::{Next, paths};
use crate::world::{World, installed, programs};
use ironcurtain_consent::{Lifetime, Reach};
use serde_json::{Value, json};
use std::fs::{Permissions, create_dir_all, read_to_string, set_permissions, write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Port of the model. Each run has its own loopback interface.
const PORT: &str = "4000";

/// Address of the model.
const MODEL: &str = "http://127.0.0.1:4000";

/// Timeout for one prompt, in seconds. The agents are large programs, and several run at once.
const TIMEOUT: &str = "120";

struct Agent {
    /// Name of the program and of its profile.
    name: &'static str,
    /// Folder of the package that the profile recognizes, relative to `node_modules`.
    package: &'static str,
    /// Path of the program, relative to `node_modules` of the test programs.
    program: &'static str,
    /// Path and content of the settings file in the home directory.
    settings: Option<(&'static str, &'static str)>,
    /// Environment variables.
    variables: &'static [(&'static str, &'static str)],
    /// Arguments that send one prompt to the model and keep the agent from asking for approval itself.
    prompt: &'static [&'static str],
    /// Tool that runs a shell command, and the argument that contains the command.
    shell: (&'static str, &'static str),
    /// File or folder that a session creates in the agent's settings, relative to the home directory.
    keeps: &'static str,
    /// Shell command that prints the user's git configuration.
    reads_git: &'static str,
}

const CLAUDE: Agent = Agent {
    name: "claude",
    package: "@anthropic-ai/claude-code/bin",
    program: "@anthropic-ai/claude-code-linux-x64/claude",
    settings: None,
    variables: &[
        ("ANTHROPIC_BASE_URL", MODEL),
        ("ANTHROPIC_API_KEY", "none"),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ],
    prompt: &["-p", "go", "--allowedTools", "Bash"],
    shell: ("Bash", "command"),
    keeps: ".claude/projects",
    reads_git: "cat ~/.gitconfig",
};

const CODEX: Agent = Agent {
    name: "codex",
    package: "@openai/codex/bin",
    program: "@openai/codex/vendor/x86_64-unknown-linux-musl/bin/codex",
    settings: Some((
        ".codex/config.toml",
        "model = \"stand-in\"\nmodel_provider = \"ours\"\n\n[model_providers.ours]\nname = \"Ours\"\nbase_url = \"http://127.0.0.1:4000/v1\"\nwire_api = \"responses\"\n",
    )),
    variables: &[],
    prompt: &["exec", "go"],
    shell: ("exec_command", "cmd"),
    keeps: ".codex/sessions",
    reads_git: "cat ~/.gitconfig",
};

const GEMINI: Agent = Agent {
    name: "gemini",
    package: "@google/gemini-cli/bin",
    program: "@google/gemini-cli/bundle/gemini.js",
    settings: Some((
        ".gemini/settings.json",
        r#"{ "security": { "auth": { "selectedType": "gemini-api-key" } }, "general": { "enableAutoUpdate": false }, "privacy": { "usageStatisticsEnabled": false } }"#,
    )),
    variables: &[
        ("GEMINI_API_KEY", "none"),
        ("GOOGLE_GEMINI_BASE_URL", MODEL),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true"),
    ],
    prompt: &["-m", "gemini-2.5-flash", "--yolo", "--skip-trust", "-p", "go"],
    shell: ("run_shell_command", "command"),
    keeps: ".gemini/projects.json",
    reads_git: "cat ~/.gitconfig",
};

const OPENCODE: Agent = Agent {
    name: "opencode",
    package: "opencode-ai/bin",
    program: "opencode-linux-x64-baseline/bin/opencode",
    settings: Some((
        ".config/opencode/opencode.json",
        r#"{ "autoupdate": false, "provider": { "ours": { "npm": "@ai-sdk/openai-compatible", "options": { "baseURL": "http://127.0.0.1:4000/v1", "apiKey": "none" }, "models": { "stand-in": {} } } } }"#,
    )),
    variables: &[("OPENCODE_DISABLE_MODELS_FETCH", "1"), ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1")],
    prompt: &["run", "-m", "ours/stand-in", "go"],
    shell: ("bash", "command"),
    keeps: ".local/share/opencode",
    // OpenCode itself refuses commands that contain a path outside the project.
    reads_git: "git config --global --list",
};

/// Copilot CLI with the user's own model, so that no GitHub login is needed.
const COPILOT: Agent = Agent {
    name: "copilot",
    package: "@github/copilot",
    program: "@github/copilot-linux-x64/copilot",
    settings: None,
    variables: &[
        ("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:4000/v1"),
        ("COPILOT_MODEL", "stand-in"),
        ("COPILOT_OFFLINE", "true"),
    ],
    prompt: &["-p", "go", "--allow-all-tools", "--allow-all-paths"],
    shell: ("bash", "command"),
    keeps: ".copilot/session-state",
    reads_git: "cat ~/.gitconfig",
};

/// Claude Code, which starts an MCP server itself and calls one of its tools.
const CLAUDE_WITH_SERVER: Agent = Agent {
    prompt: &["-p", "go", "--allowedTools", "mcp__mine__read"],
    shell: ("mcp__mine__read", "path"),
    ..CLAUDE
};

/// MCP server with a tool that reads a file.
const SERVER: &str = r#"
import json, sys
schema = {"type": "object", "properties": {"path": {"type": "string"}}}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message: continue
    result, method = {}, message["method"]
    if method == "initialize":
        result = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "mine", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "read", "description": "Reads a file", "inputSchema": schema}]}
    elif method == "tools/call":
        try:
            text, failed = open(message["params"]["arguments"]["path"]).read(), False
        except OSError as error:
            text, failed = error.strerror, True
        result = {"content": [{"type": "text", "text": text}], "isError": failed}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;

/// An agent in a repository without local changes.
struct Desk {
    agent: &'static Agent,
    world: World,
}

impl Desk {
    fn new(agent: &'static Agent) -> Self {
        Self::of(agent, World::new())
    }

    fn of(agent: &'static Agent, world: World) -> Self {
        let folder = world.home.run_profiles();
        create_dir_all(&folder).unwrap();
        // Node.js also looks for `package.json` in the folders above a package.
        let opened = ["node_modules/", "package.json"].map(|path| installed("clients").join(path));
        let own = json!({ "schemaVersion": 1, "name": agent.name, "programs": opened });
        write(folder.join(format!("{}.json", agent.name)), own.to_string()).unwrap();
        if let Some((settings, text)) = agent.settings {
            world.file(settings, text);
        }
        world.file(".gitconfig", "[user]\n\tname = Me\n\temail = me@example.test\n");
        world.file("docs/yes.txt", "the numbers of this year");
        world.file("docs/no.txt", "the numbers of last year");
        world.file("project/own.txt", "own text");
        let desk = Self { agent, world };
        for arguments in [&["init", "-q"][..], &["add", "."], &["commit", "-qm", "first"]] {
            let mut git = Command::new("git");
            let done = git.args(arguments).current_dir(desk.world.path("project"));
            assert!(done.env("HOME", &desk.world.home.user_home).status().unwrap().success());
        }
        desk.install("");
        // The copy is next to the launcher, together with the `package.json` that Node.js looks for above a script.
        std::fs::copy(script(), desk.model()).unwrap();
        write(desk.model().with_file_name("package.json"), "{}").unwrap();
        create_dir_all(desk.world.path("bin")).unwrap();
        symlink(desk.launcher(), desk.world.path("bin").join(agent.name)).unwrap();
        desk
    }

    fn launcher(&self) -> PathBuf {
        self.world.path("npm/lib/node_modules").join(self.agent.package).join(self.agent.name)
    }

    fn model(&self) -> PathBuf {
        self.launcher().with_file_name("model.js")
    }

    /// Writes the launcher. Its model makes the agent run this shell command.
    fn install(&self, command: &str) {
        let (tool, argument) = self.agent.shell;
        let arguments = json!({ argument: command, "description": "go" }).to_string();
        let program = installed("clients").join("node_modules").join(self.agent.program);
        let text = format!(
            "#!/bin/sh\ntail -f /dev/null | node {model} {tool} {arguments} {log} {PORT} > /tmp/port &\n\
             while ! [ -s /tmp/port ]; do sleep 0.02; done\n{program} \"$@\" < /dev/null\n",
            model = quoted(self.model().to_str().unwrap()),
            arguments = quoted(&arguments),
            log = quoted(self.log().to_str().unwrap()),
            program = quoted(program.to_str().unwrap()),
        );
        create_dir_all(self.launcher().parent().unwrap()).unwrap();
        write(self.launcher(), text).unwrap();
        set_permissions(self.launcher(), Permissions::from_mode(0o755)).unwrap();
    }

    fn log(&self) -> PathBuf {
        self.world.path("project/model.log")
    }

    /// Runs the agent with one prompt. Returns the agent's output.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("timeout");
        command.arg(TIMEOUT).arg(programs().join("ironcurtain")).args(["run", "--", self.agent.name]);
        command.args(arguments).current_dir(self.world.path("project"));
        command.env("IRONCURTAIN_HOME", self.world.ours()).env("HOME", &self.world.home.user_home);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", self.world.path("bin").display()));
        command.envs(self.agent.variables.iter().copied());
        let Output { status, stdout, stderr } = command.output().unwrap();
        let said = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        assert!(status.success(), "{status}: {said}\nasked: {:?}", self.asked());
        said
    }

    /// Makes the agent run a shell command. Returns the output that the model received.
    #[track_caller]
    fn prompt(&self, command: &str) -> String {
        self.install(command);
        write(self.log(), "").unwrap();
        let said = self.run(self.agent.prompt);
        let log = read_to_string(self.log()).unwrap();
        let turns = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let results: Vec<Value> =
            turns.flat_map(|turn| turn["results"].as_array().unwrap().clone()).collect();
        assert_eq!(results.len(), 1, "{said}\n{log}");
        assert!(said.contains("It said: "), "{said}");
        results[0].as_str().unwrap().to_owned()
    }

    /// Returns the paths in the questions since the last call of this function.
    fn asked(&self) -> Vec<String> {
        let asked = self.world.user.asked();
        asked.iter().flat_map(|question| paths(question).into_iter().map(str::to_owned)).collect()
    }
}

/// Returns the path of the model script.
fn script() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/system/agents/model.js");
    script.canonicalize().unwrap()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Asserts that a session in the agent's own folder raises no question.
fn assert_works_alone_in_a_run(agent: &'static Agent) -> Desk {
    let desk = Desk::new(agent);
    desk.world.user.deny_hosts();
    let commands = format!("git status --short; cat own.txt; echo made > made.txt; {}", agent.reads_git);
    let told = desk.prompt(&commands);
    assert!(told.contains("own text") && told.contains("me@example.test"), "{told}");
    assert_eq!(read_to_string(desk.world.path("project/made.txt")).unwrap(), "made\n");
    assert_eq!(desk.asked(), Vec::<String>::new());
    assert!(desk.world.path(agent.keeps).exists(), "the agent's own files are the user's");
    desk
}

fn assert_works_in_a_run(agent: &'static Agent) {
    let desk = assert_works_alone_in_a_run(agent);
    let log = read_to_string(desk.log()).unwrap();
    assert!(log.contains("request_access"), "the built-in server is not offered: {log}");
    let user = &desk.world.user;
    // Each file outside that folder raises a question, and the answer takes effect.
    for next in [Next::Allow(Reach::Paths, Lifetime::Once), Next::Deny] {
        user.will(next);
    }
    let told = desk.prompt("cat ~/docs/yes.txt; cat ~/docs/no.txt");
    assert!(told.contains("the numbers of this year") && told.contains("Permission denied"), "{told}");
    assert!(!told.contains("the numbers of last year"), "{told}");
    let asked = ["docs/yes.txt", "docs/no.txt"].map(|path| desk.world.path(path).display().to_string());
    assert_eq!(desk.asked(), asked);
    for next in [Next::Allow(Reach::Paths, Lifetime::Once), Next::Deny] {
        user.will(next);
    }
    let told = desk.prompt("echo new > ~/docs/new.txt; echo changed > ~/docs/no.txt");
    assert!(told.contains("Permission denied"), "{told}");
    assert_eq!(read_to_string(desk.world.path("docs/new.txt")).unwrap(), "new\n");
    assert_eq!(read_to_string(desk.world.path("docs/no.txt")).unwrap(), "the numbers of last year");
    let asked = ["docs/new.txt", "docs/no.txt"].map(|path| desk.world.path(path).display().to_string());
    assert_eq!(desk.asked(), asked);
}

#[test]
fn claude_code_works_in_a_run() {
    assert_works_in_a_run(&CLAUDE);
}

#[test]
fn codex_works_in_a_run() {
    assert_works_in_a_run(&CODEX);
}

#[test]
fn copilot_works_in_a_run() {
    assert_works_in_a_run(&COPILOT);
}

#[test]
fn a_server_that_the_agent_starts_is_a_program_of_the_run() {
    let filesystem = json!({ "filesystem": { "command": "ironcurtain-filesystem" } }).to_string();
    let world = World::with(|home| write(home.home.config.join("mcp-servers.json"), filesystem).unwrap());
    let desk = Desk::of(&CLAUDE_WITH_SERVER, world);
    let shim = programs().join("ironcurtain-shim");
    // The second entry is the one that `ironcurtain clients connect --as-one` writes.
    let servers = json!({ "mcpServers": {
        "mine": { "command": "/usr/bin/python3", "args": [desk.world.file("project/server.py", SERVER)] },
        "ironcurtain": { "command": shim, "args": [] },
    } });
    desk.world.file(".claude.json", &servers.to_string());
    assert_eq!(desk.prompt("own.txt"), "own text");
    let log = read_to_string(desk.log()).unwrap();
    for offered in ["mcp__ironcurtain-access__request_access", "mcp__ironcurtain__filesystem__read_text_file"]
    {
        assert!(log.contains(offered), "{offered}: {log}");
    }
    // The session of the second entry asks once about the project that the agent works in.
    assert_eq!(desk.asked(), [desk.world.path("project").to_str().unwrap()]);
    for (name, next, told) in [
        ("yes", Next::Allow(Reach::Paths, Lifetime::Once), "the numbers of this year"),
        ("no", Next::Deny, "Permission denied"),
    ] {
        let path = desk.world.path(&format!("docs/{name}.txt"));
        desk.world.user.will(next);
        assert!(desk.prompt(path.to_str().unwrap()).contains(told), "{name}");
        let asked = desk.world.user.asked();
        assert_eq!(asked.iter().flat_map(paths).collect::<Vec<_>>(), [path.to_str().unwrap()]);
        let program = asked[0].with.iter().find(|(name, _)| name == "program, by its own name").unwrap();
        assert!(program.1.contains("python3"), "{program:?}");
    }
}

#[test]
fn gemini_works_alone_in_a_run() {
    drop(assert_works_alone_in_a_run(&GEMINI));
}

#[test]
fn opencode_works_alone_in_a_run() {
    drop(assert_works_alone_in_a_run(&OPENCODE));
}

#[test]
fn settings_changed_by_claude_code_are_kept() {
    let desk = Desk::new(&CLAUDE);
    let file = desk.world.file(".claude.json", r#"{ "numStartups": 3 }"#);
    desk.run(&["mcp", "add", "-s", "user", "mine", "--", "/usr/bin/true"]);
    let kept: Value = serde_json::from_str(&read_to_string(&file).unwrap()).unwrap();
    assert_eq!(kept["mcpServers"]["mine"]["command"], json!("/usr/bin/true"), "{kept}");
    assert_eq!(kept["numStartups"], json!(3));
    // A later run has the same setting.
    assert!(desk.run(&["mcp", "list"]).contains("mine: /usr/bin/true"));
    assert_eq!(desk.asked(), Vec::<String>::new());
    let left: Vec<String> = std::fs::read_dir(&desk.world.home.user_home)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with(".claude.json.") && !name.contains("backup"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
}
