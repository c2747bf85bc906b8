//! Servers from public registries, added as their documentation describes, and the first call to each server.

use serde_json::{Value, json};

/// Server, and the expected result of its first call.
pub struct RegistryServer {
    /// Name that `servers add` gives the server.
    pub name: &'static str,
    /// Arguments that the user types after `servers add`.
    pub typed: &'static [&'static str],
    /// Variables in the settings snippet from the documentation. Empty if the user pastes no snippet.
    pub env: &'static [(&'static str, &'static str)],
    /// Tool and arguments of the first call, as JSON.
    pub call: (&'static str, &'static str),
    pub expected: Expected,
}

/// Expected result of the first call.
pub enum Expected {
    /// The call succeeds, and its result contains this text.
    Works(&'static str),
    /// The call succeeds, or its error contains one of these strings, which name what is missing.
    MissingDependency(&'static [&'static str]),
    /// The user is asked about this host, when the server is added or called.
    HostQuestion(&'static str),
}

impl RegistryServer {
    /// Returns the settings snippet, if the user pastes one.
    pub fn snippet(&self, fill: impl Fn(&str) -> String) -> Option<Value> {
        if self.env.is_empty() {
            return None;
        }
        let env: serde_json::Map<String, Value> =
            self.env.iter().map(|(key, value)| ((*key).to_owned(), json!(fill(value)))).collect();
        let (command, args) = self.typed.split_first()?;
        let args: Vec<String> = args.iter().map(|word| fill(word)).collect();
        Some(json!({ "mcpServers": { self.name: { "command": command, "args": args, "env": env } } }))
    }
}

/// The servers. `{home}` stands for the user's home directory, `{postgres}` for the database's URL, and `{chromium}`
/// for the browser.
pub const SERVERS: [RegistryServer; 14] = [
    RegistryServer {
        name: "calculator",
        typed: &["uvx", "mcp-server-calculator"],
        env: &[],
        call: ("calculate", r#"{"expression": "21 * 2"}"#),
        expected: Expected::Works("42"),
    },
    RegistryServer {
        name: "excel-mcp-server",
        typed: &["uvx", "excel-mcp-server", "stdio"],
        env: &[],
        call: ("create_workbook", r#"{"path": "{home}/docs/table.xlsx", "sheets": ["one"]}"#),
        expected: Expected::Works("table.xlsx"),
    },
    RegistryServer {
        name: "repomix",
        typed: &["npx", "-y", "repomix", "--mcp"],
        env: &[],
        call: ("pack_codebase", r#"{"directory": "{home}/app"}"#),
        expected: Expected::Works("totalFiles"),
    },
    RegistryServer {
        name: "eslint",
        typed: &["npx", "-y", "@eslint/mcp@latest"],
        env: &[],
        call: ("lint-files", r#"{"filePaths": ["{home}/app/index.js"]}"#),
        expected: Expected::Works("no-unused-vars"),
    },
    RegistryServer {
        name: "kubernetes",
        typed: &["npx", "-y", "mcp-server-kubernetes"],
        env: &[],
        call: ("kubectl_context", r#"{"operation": "list"}"#),
        expected: Expected::MissingDependency(&["kubectl"]),
    },
    RegistryServer {
        name: "aws-documentation",
        typed: &["uvx", "awslabs.aws-documentation-mcp-server@latest"],
        env: &[],
        call: (
            "read_documentation",
            r#"{"url": "https://docs.aws.amazon.com/AmazonS3/latest/userguide/Welcome.html"}"#,
        ),
        expected: Expected::HostQuestion("docs.aws.amazon.com"),
    },
    RegistryServer {
        name: "firecrawl",
        typed: &["npx", "-y", "firecrawl-mcp"],
        env: &[("FIRECRAWL_API_KEY", "fc-0123456789abcdef")],
        call: ("firecrawl_scrape", r#"{"url": "https://example.com"}"#),
        expected: Expected::HostQuestion("api.firecrawl.dev"),
    },
    RegistryServer {
        name: "mongodb",
        typed: &["npx", "-y", "mongodb-mcp-server@latest", "--readOnly"],
        env: &[("MDB_MCP_CONNECTION_STRING", "mongodb://127.0.0.1:27017/test")],
        call: ("list-databases", r#"{"connectionId": "preconfigured"}"#),
        expected: Expected::MissingDependency(&["27017"]),
    },
    RegistryServer {
        name: "postgres",
        typed: &["npx", "-y", "@modelcontextprotocol/server-postgres", "{postgres}"],
        env: &[],
        call: ("query", r#"{"sql": "SELECT 21 * 2 AS answer"}"#),
        expected: Expected::Works("42"),
    },
    RegistryServer {
        name: "chrome-devtools",
        typed: &[
            "npx",
            "-y",
            "chrome-devtools-mcp@latest",
            "--headless",
            "--isolated",
            "--executablePath={chromium}",
            "--chromeArg=--no-sandbox",
        ],
        env: &[],
        call: ("new_page", r#"{"url": "data:text/html,<title>hello</title>"}"#),
        expected: Expected::Works("data:text/html"),
    },
    RegistryServer {
        name: "mermaid",
        typed: &["npx", "-y", "mcp-mermaid"],
        env: &[],
        call: ("generate_mermaid_diagram", r#"{"mermaid": "graph TD; A-->B", "outputType": "svg"}"#),
        // The server needs a browser that Playwright installs in `~/.cache`.
        expected: Expected::MissingDependency(&["executable doesn't exist"]),
    },
    RegistryServer {
        name: "pandoc",
        typed: &["uvx", "mcp-pandoc"],
        env: &[],
        call: (
            "convert-contents",
            r##"{"contents": "# hello", "input_format": "markdown", "output_format": "html"}"##,
        ),
        // The package's `pandoc` dependency has no wheel.
        expected: Expected::MissingDependency(&["no wheels for `pandoc`"]),
    },
    RegistryServer {
        name: "docker",
        typed: &["uvx", "mcp-server-docker"],
        env: &[],
        call: ("list_containers", "{}"),
        expected: Expected::MissingDependency(&["needs python 3.12", "docker"]),
    },
    RegistryServer {
        name: "qdrant",
        typed: &["uvx", "mcp-server-qdrant"],
        env: &[("QDRANT_LOCAL_PATH", "{home}/qdrant"), ("COLLECTION_NAME", "notes")],
        call: ("qdrant-store", r#"{"information": "hello"}"#),
        expected: Expected::HostQuestion("huggingface.co"),
    },
];
