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
    known(".claude.json", "servers of Claude Code, for the user and for each project", "code.claude.com/docs/en/settings"),
    known(".claude/settings.json", "hooks and permissions of Claude Code", "code.claude.com/docs/en/settings"),
    known(".claude/settings.local.json", "hooks and permissions of Claude Code", "code.claude.com/docs/en/settings"),
    known(".claude/plugins", "plugins of Claude Code, which bring servers and hooks", "code.claude.com/docs/en/plugins-reference"),
    known(".config/Claude/claude_desktop_config.json", "servers of Claude Desktop", "modelcontextprotocol.io/docs/develop/connect-local-servers"),
    known(".config/claude/claude_desktop_config.json", "servers of Claude Desktop, in another spelling", "github.com/aaddrick/claude-desktop-debian"),
    known("Library/Application Support/Claude/claude_desktop_config.json", "servers of Claude Desktop", "modelcontextprotocol.io/docs/develop/connect-local-servers"),
    known(".cursor/mcp.json", "servers of Cursor", "cursor.com/docs/context/mcp"),
    known(".cursor/hooks.json", "programs that Cursor runs alongside its agent", "cursor.com/docs/agent/hooks"),
    known(".config/Code/User/mcp.json", "servers of VS Code", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".config/Code/User/settings.json", "settings of VS Code, which name programs", "code.visualstudio.com/docs/configure/settings"),
    known(".config/Code - Insiders/User/mcp.json", "servers of VS Code Insiders", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".config/Code - Insiders/User/settings.json", "settings of VS Code Insiders", "code.visualstudio.com/docs/configure/settings"),
    known(".config/VSCodium/User/mcp.json", "servers of VSCodium", "github.com/VSCodium/vscodium"),
    known("Library/Application Support/Code/User/mcp.json", "servers of VS Code", "code.visualstudio.com/docs/copilot/customization/mcp-servers"),
    known(".config/Cursor/User/mcp.json", "servers of Cursor, as of VS Code", "cursor.com/docs/context/mcp"),
    known(".config/Cursor/User/settings.json", "settings of Cursor, which name programs", "cursor.com/docs"),
    known(".codeium/windsurf/mcp_config.json", "servers of Windsurf", "docs.windsurf.com/windsurf/cascade/mcp"),
    known(".codeium/windsurf/hooks.json", "programs that Windsurf runs alongside its agent", "docs.windsurf.com/windsurf/cascade/hooks"),
    known(".config/zed/settings.json", "servers of Zed, and programs it runs", "zed.dev/docs/ai/mcp"),
    known(".config/zed/tasks.json", "tasks of Zed", "zed.dev/docs/tasks"),
    known(".var/app/dev.zed.Zed/config/zed/settings.json", "servers of Zed from Flathub", "flathub.org/apps/dev.zed.Zed"),
    known(".codex/config.toml", "servers and notifiers of Codex", "developers.openai.com/codex/config-reference"),
    known(".codex/hooks.json", "programs that Codex runs alongside its agent", "developers.openai.com/codex"),
    known(".config/goose/config.yaml", "extensions of Goose", "block.github.io/goose/docs/guides/config-files"),
    known(".lmstudio/mcp.json", "servers of LM Studio", "lmstudio.ai/docs/app/mcp"),
    known(".gemini/settings.json", "servers and hooks of the Gemini CLI", "github.com/google-gemini/gemini-cli docs/get-started/configuration.md"),
    known(".gemini/extensions", "extensions of the Gemini CLI, which bring servers", "github.com/google-gemini/gemini-cli docs/extensions"),
    known(".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "servers of Cline in VS Code", "docs.cline.bot/mcp"),
    known(".cline/data/settings/cline_mcp_settings.json", "servers of the Cline CLI", "docs.cline.bot/mcp"),
    known(".continue/config.yaml", "servers of Continue", "docs.continue.dev/reference"),
    known(".continue/config.json", "servers of Continue, before config.yaml", "docs.continue.dev/reference/json-reference"),
    known(".continue/mcpServers", "servers of Continue, a file each", "docs.continue.dev/customize/deep-dives/mcp"),
    known(".config/opencode/opencode.json", "servers of OpenCode", "opencode.ai/docs/mcp-servers"),
    known(".config/opencode/opencode.jsonc", "servers of OpenCode", "opencode.ai/docs/config"),
    known(".config/opencode/plugin", "code that OpenCode loads", "opencode.ai/docs/plugins"),
    known(".config/opencode/plugins", "code that OpenCode loads", "opencode.ai/docs/plugins"),
    known(".copilot/mcp-config.json", "servers of the Copilot CLI", "docs.github.com/copilot/how-tos/use-copilot-agents/use-copilot-cli"),
    known(".kiro/settings/mcp.json", "servers of Kiro", "kiro.dev/docs/mcp/configuration"),
    known(".config/crush/crush.json", "servers of Crush", "github.com/charmbracelet/crush"),
    known(".local/share/crush/crush.json", "servers of Crush, in its data folder", "github.com/charmbracelet/crush"),
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
