//! Configuration files and folders from which agent clients start programs.
//!
//! - Only the user and the client may change the files in the home directory, because the programs run outside
//!   IronCurtain.
//! - An agent may have a legitimate reason to change the files in a project, so each change requires approval, even if
//!   a rule or grant allows it.

use super::{KnownPath, known};

/// Paths relative to the home directory, for every supported client.
#[rustfmt::skip]
pub(super) const IN_HOME: &[KnownPath] = &[
    known(".claude.json", "Claude Code servers, for the user and for each project", "code.claude.com/docs/en/settings"),
    known(".claude/settings.json", "Claude Code hooks and permissions", "code.claude.com/docs/en/settings"),
    known(".claude/settings.local.json", "Claude Code hooks and permissions", "code.claude.com/docs/en/settings"),
    known(".claude/plugins", "Claude Code plugins, which bring servers and hooks", "code.claude.com/docs/en/plugins-reference"),
    known(".config/Claude/claude_desktop_config.json", "Claude Desktop servers", "modelcontextprotocol.io/docs/develop/connect-local-servers"),
    known(".config/claude/claude_desktop_config.json", "Claude Desktop servers, in another spelling", "github.com/aaddrick/claude-desktop-debian"),
    known("Library/Application Support/Claude/claude_desktop_config.json", "Claude Desktop servers", "modelcontextprotocol.io/docs/develop/connect-local-servers"),
    known(".cursor/mcp.json", "Cursor servers", "cursor.com/docs/context/mcp"),
    known(".cursor/hooks.json", "programs that Cursor runs alongside its agent", "cursor.com/docs/agent/hooks"),
    known(".config/Code/User/mcp.json", "VS Code servers", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".config/Code/User/settings.json", "VS Code settings, which name programs", "code.visualstudio.com/docs/configure/settings"),
    known(".config/Code - Insiders/User/mcp.json", "VS Code Insiders servers", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".config/Code - Insiders/User/settings.json", "VS Code Insiders settings", "code.visualstudio.com/docs/configure/settings"),
    known(".config/VSCodium/User/mcp.json", "VSCodium servers", "github.com/VSCodium/vscodium"),
    known("Library/Application Support/Code/User/mcp.json", "VS Code servers", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".config/Cursor/User/mcp.json", "Cursor servers, as in VS Code", "cursor.com/docs/context/mcp"),
    known(".config/Cursor/User/settings.json", "Cursor settings, which name programs", "cursor.com/docs"),
    known(".codeium/windsurf/mcp_config.json", "Windsurf servers", "docs.windsurf.com/windsurf/cascade/mcp"),
    known(".codeium/windsurf/hooks.json", "programs that Windsurf runs alongside its agent", "docs.windsurf.com/windsurf/cascade/hooks"),
    known(".config/zed/settings.json", "Zed servers, and programs that Zed runs", "zed.dev/docs/ai/mcp"),
    known(".config/zed/tasks.json", "Zed tasks", "zed.dev/docs/tasks"),
    known(".var/app/dev.zed.Zed/config/zed/settings.json", "Zed servers from Flathub", "flathub.org/apps/dev.zed.Zed"),
    known(".codex/config.toml", "Codex servers and notifiers", "developers.openai.com/codex/config-reference"),
    known(".codex/hooks.json", "programs that Codex runs alongside its agent", "developers.openai.com/codex"),
    known(".config/goose/config.yaml", "Goose extensions", "block.github.io/goose/docs/guides/config-files"),
    known(".lmstudio/mcp.json", "LM Studio servers", "lmstudio.ai/docs/app/mcp"),
    known(".gemini/settings.json", "Gemini CLI servers and hooks", "github.com/google-gemini/gemini-cli docs/get-started/configuration.md"),
    known(".gemini/extensions", "Gemini CLI extensions, which bring servers", "github.com/google-gemini/gemini-cli docs/extensions"),
    known(".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "Cline servers in VS Code", "docs.cline.bot/mcp"),
    known(".cline/data/settings/cline_mcp_settings.json", "Cline CLI servers", "docs.cline.bot/mcp"),
    known(".continue/config.yaml", "Continue servers", "docs.continue.dev/reference"),
    known(".continue/config.json", "Continue servers, before config.yaml", "docs.continue.dev/reference/json-reference"),
    known(".continue/mcpServers", "Continue servers, a file each", "docs.continue.dev/customize/deep-dives/mcp"),
    known(".config/opencode/opencode.json", "OpenCode servers", "opencode.ai/docs/mcp-servers"),
    known(".config/opencode/opencode.jsonc", "OpenCode servers", "opencode.ai/docs/config"),
    known(".config/opencode/plugin", "code that OpenCode loads", "opencode.ai/docs/plugins"),
    known(".config/opencode/plugins", "code that OpenCode loads", "opencode.ai/docs/plugins"),
    known(".copilot/mcp-config.json", "Copilot CLI servers", "docs.github.com/copilot/how-tos/use-copilot-agents/use-copilot-cli"),
    known(".kiro/settings/mcp.json", "Kiro servers", "kiro.dev/docs/mcp/configuration"),
    known(".config/crush/crush.json", "Crush servers", "github.com/charmbracelet/crush"),
    known(".local/share/crush/crush.json", "Crush servers, in the Crush data folder", "github.com/charmbracelet/crush"),
];

/// Paths relative to any folder. The client starts the programs when it opens that folder.
#[rustfmt::skip]
pub(super) const IN_PROJECT: &[KnownPath] = &[
    known(".mcp.json", "Claude Code, Copilot CLI", "code.claude.com/docs/en/mcp"),
    known(".claude/settings.json", "Claude Code", "code.claude.com/docs/en/hooks"),
    known(".claude/settings.local.json", "Claude Code", "code.claude.com/docs/en/hooks"),
    known(".vscode/mcp.json", "VS Code", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".vscode/tasks.json", "VS Code", "code.visualstudio.com/docs/debugtest/tasks"),
    known(".vs/mcp.json", "Visual Studio", "learn.microsoft.com/visualstudio/ide/mcp-servers"),
    known(".cursor/mcp.json", "Cursor", "cursor.com/docs/context/mcp"),
    known(".cursor/hooks.json", "Cursor", "cursor.com/docs/agent/hooks"),
    known(".windsurf/hooks.json", "Windsurf", "docs.windsurf.com/windsurf/cascade/hooks"),
    known(".zed/settings.json", "Zed", "zed.dev/docs/ai/mcp"),
    known(".codex/config.toml", "Codex", "developers.openai.com/codex/config-reference"),
    known(".gemini/settings.json", "the Gemini CLI", "github.com/google-gemini/gemini-cli docs/get-started/configuration.md"),
    known(".kiro/settings/mcp.json", "Kiro", "kiro.dev/docs/mcp/configuration"),
    known(".roo/mcp.json", "Roo Code", "docs.roocode.com/features/mcp/using-mcp-in-roo"),
    known(".amazonq/mcp.json", "Amazon Q", "docs.aws.amazon.com/amazonq/latest/qdeveloper-ug/command-line-mcp-configuration.html"),
    known("opencode.json", "OpenCode", "opencode.ai/docs/config"),
    known("opencode.jsonc", "OpenCode", "opencode.ai/docs/config"),
    known("crush.json", "Crush", "github.com/charmbracelet/crush"),
    known(".crush.json", "Crush", "github.com/charmbracelet/crush"),
];
