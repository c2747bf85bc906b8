//! MCP server: capabilities and dispatch of tool calls.
//!
//! - Supports the protocol versions with a handshake (2024-11-05 to 2025-11-25), because roots require a handshake.
//! - A call waits for announced changes to the roots, then runs on a blocking thread. A panic on that thread becomes an
//!   error response.

use std::borrow::Cow;
use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{RoleServer, ServerHandler};

use crate::roots::Roots;
use crate::tools::{self, Answer, Call};

const PROTOCOL_VERSIONS: &[ProtocolVersion] = &[
    ProtocolVersion::V_2024_11_05,
    ProtocolVersion::V_2025_03_26,
    ProtocolVersion::V_2025_06_18,
    ProtocolVersion::V_2025_11_25,
];

/// MCP server for one client.
pub(crate) struct Server {
    roots: Arc<Roots>,
    tools: Vec<Tool>,
}

impl Server {
    pub(crate) fn new(roots: Arc<Roots>) -> Self {
        Self { roots, tools: tools::catalogue() }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.protocol_version = ProtocolVersion::V_2025_11_25;
        info.server_info = Implementation::new("ironcurtain-filesystem", env!("CARGO_PKG_VERSION"));
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(PROTOCOL_VERSIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let allowed = self.roots.current().await;
        let work = move || {
            let cancelled = || context.ct.is_cancelled();
            let call = Call { allowed: &allowed, cancelled: &cancelled };
            tools::run(&request.name, request.arguments.unwrap_or_default(), &call)
        };
        let result = match tokio::task::spawn_blocking(work).await {
            Ok(Ok(answer)) => success(answer),
            Ok(Err(error)) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
            Err(_) => return Err(ErrorData::internal_error("the tool failed unexpectedly", None)),
        };
        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // Known methods arrive here if their parameters are invalid.
        let known = ["tools/call", "tools/list", "initialize", "ping"];
        if known.contains(&request.method.as_str()) {
            let text = format!("Invalid params for {}", request.method);
            return Err(ErrorData::invalid_params(text, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "Method not found", None))
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.roots.refresh(&context.peer).await;
    }

    async fn on_roots_list_changed(&self, context: NotificationContext<RoleServer>) {
        self.roots.refresh(&context.peer).await;
    }
}

/// Creates a result with the answer as text and as structured content, like the reference server.
fn success(answer: Answer) -> CallToolResult {
    let (content, structured) = match answer {
        Answer::Text(text) => (ContentBlock::text(text.clone()), serde_json::json!({ "content": text })),
        Answer::Media { block, data } => (*block, serde_json::json!({ "content": [data] })),
    };
    let mut result = CallToolResult::success(vec![content]);
    result.is_error = None;
    result.structured_content = Some(structured);
    result
}
