//! Tests the server with the client of the official Rust SDK.
#![expect(deprecated, reason = "roots are deprecated in 2026-07-28 only")]

use std::path::PathBuf;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ErrorData, Implementation, ListRootsResult, Root,
};
use rmcp::service::RequestContext;
use rmcp::transport::TokioChildProcess;
use rmcp::{ClientHandler, RoleClient, ServiceExt as _};
use serde_json::json;

use crate::client::{directory, ours};

#[tokio::test]
async fn roots_and_calls_work() {
    let (_keep, root) = directory();
    std::fs::write(root.join("file"), "content").expect("file");
    let transport = TokioChildProcess::new(tokio::process::Command::from(ours())).expect("starts");
    let client = Person(root.clone()).serve(transport).await.expect("handshake");
    let tools = client.list_all_tools().await.expect("tools");
    assert_eq!(tools.len(), 14);
    let arguments = json!({ "path": root.join("file") }).as_object().cloned().expect("an object");
    let call = CallToolRequestParams::new("read_text_file").with_arguments(arguments);
    let result = client.call_tool(call).await.expect("an answer");
    assert_eq!(result.structured_content, Some(json!({ "content": "content" })));
    client.cancel().await.expect("ends");
}

struct Person(PathBuf);

impl ClientHandler for Person {
    fn get_info(&self) -> ClientConfig {
        let capabilities = ClientCapabilities::builder().enable_roots().build();
        ClientConfig::new(capabilities, Implementation::new("person", "1"))
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(ListRootsResult::new(vec![Root::new(format!("file://{}", self.0.display()))]))
    }
}
