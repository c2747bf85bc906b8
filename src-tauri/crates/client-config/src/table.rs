//! Table of the supported agent clients, with the locations and formats of their settings.
//!
//! - Source: the documentation of each client's MCP settings, as of 2026.

use crate::client::KnownClient;
use crate::document::{EntriesPath, Format};
use crate::entry::Shape;
use crate::locations::Base::{Config, Home, Variable, Xdg};
use crate::locations::location;

const SERVERS: EntriesPath = EntriesPath { keys: &["mcpServers"], is_list: false };

/// Supported clients, in display order.
pub const CLIENTS: &[KnownClient] = &[
    KnownClient {
        id: "claude-desktop",
        name: "Claude Desktop",
        files: &[
            location(Config, "Claude/claude_desktop_config.json"),
            location(Config, "claude/claude_desktop_config.json"),
        ],
        project_file: None,
        programs: &["claude-desktop"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "claude-code",
        name: "Claude Code",
        files: &[location(Variable("CLAUDE_CONFIG_DIR"), ".claude.json"), location(Home, ".claude.json")],
        project_file: Some(".mcp.json"),
        programs: &["claude"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Typed,
    },
    KnownClient {
        id: "cursor",
        name: "Cursor",
        files: &[location(Home, ".cursor/mcp.json")],
        project_file: Some(".cursor/mcp.json"),
        programs: &["cursor"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "vscode",
        name: "VS Code",
        files: &[location(Config, "Code/User/mcp.json")],
        project_file: Some(".vscode/mcp.json"),
        programs: &["code"],
        format: Format::Json,
        entries_path: EntriesPath { keys: &["servers"], is_list: false },
        shape: Shape::Typed,
    },
    KnownClient {
        id: "vscode-insiders",
        name: "VS Code Insiders",
        files: &[location(Config, "Code - Insiders/User/mcp.json")],
        project_file: Some(".vscode/mcp.json"),
        programs: &["code-insiders"],
        format: Format::Json,
        entries_path: EntriesPath { keys: &["servers"], is_list: false },
        shape: Shape::Typed,
    },
    KnownClient {
        id: "windsurf",
        name: "Windsurf",
        files: &[location(Home, ".codeium/windsurf/mcp_config.json")],
        project_file: None,
        programs: &["windsurf"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "zed",
        name: "Zed",
        files: &[location(Xdg, "zed/settings.json")],
        project_file: Some(".zed/settings.json"),
        programs: &["zed", "zeditor"],
        format: Format::Json,
        entries_path: EntriesPath { keys: &["context_servers"], is_list: false },
        shape: Shape::Zed,
    },
    KnownClient {
        id: "codex",
        name: "Codex",
        files: &[location(Variable("CODEX_HOME"), "config.toml"), location(Home, ".codex/config.toml")],
        project_file: None,
        programs: &["codex"],
        format: Format::Toml,
        entries_path: EntriesPath { keys: &["mcp_servers"], is_list: false },
        shape: Shape::Plain,
    },
    KnownClient {
        id: "goose",
        name: "Goose",
        files: &[location(
            Xdg,
            if cfg!(windows) { "Block/goose/config/config.yaml" } else { "goose/config.yaml" },
        )],
        project_file: None,
        programs: &["goose"],
        format: Format::Yaml,
        entries_path: EntriesPath { keys: &["extensions"], is_list: false },
        shape: Shape::Goose,
    },
    KnownClient {
        id: "lm-studio",
        name: "LM Studio",
        files: &[location(Home, ".lmstudio/mcp.json")],
        project_file: None,
        programs: &["lms"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "gemini",
        name: "Gemini CLI",
        files: &[location(Home, ".gemini/settings.json")],
        project_file: Some(".gemini/settings.json"),
        programs: &["gemini"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "cline",
        name: "Cline",
        files: &[location(
            Config,
            "Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        )],
        project_file: None,
        programs: &[],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "continue",
        name: "Continue",
        files: &[location(Home, ".continue/config.yaml")],
        project_file: None,
        programs: &["cn"],
        format: Format::Yaml,
        entries_path: EntriesPath { keys: &["mcpServers"], is_list: true },
        shape: Shape::Plain,
    },
    KnownClient {
        id: "opencode",
        name: "OpenCode",
        files: &[location(Xdg, "opencode/opencode.json"), location(Xdg, "opencode/opencode.jsonc")],
        project_file: Some("opencode.json"),
        programs: &["opencode"],
        format: Format::Json,
        entries_path: EntriesPath { keys: &["mcp"], is_list: false },
        shape: Shape::OpenCode,
    },
    KnownClient {
        id: "copilot",
        name: "Copilot CLI",
        files: &[
            location(Variable("COPILOT_HOME"), "mcp-config.json"),
            location(Home, ".copilot/mcp-config.json"),
        ],
        project_file: None,
        programs: &["copilot"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Copilot,
    },
    KnownClient {
        id: "kiro",
        name: "Kiro",
        files: &[location(Home, ".kiro/settings/mcp.json")],
        project_file: Some(".kiro/settings/mcp.json"),
        programs: &["kiro", "kiro-cli"],
        format: Format::Json,
        entries_path: SERVERS,
        shape: Shape::Plain,
    },
    KnownClient {
        id: "crush",
        name: "Crush",
        files: &[location(Xdg, "crush/crush.json")],
        project_file: Some("crush.json"),
        programs: &["crush"],
        format: Format::Json,
        entries_path: EntriesPath { keys: &["mcp"], is_list: false },
        shape: Shape::Typed,
    },
];

impl KnownClient {
    /// Returns the client with this id, if it is supported.
    #[must_use]
    pub fn named(id: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.id == id)
    }
}
