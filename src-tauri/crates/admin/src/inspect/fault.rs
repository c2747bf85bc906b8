//! Protocol and limit violations by a server that is being inspected.

/// Maximum size of a message: 8 MiB.
pub(super) const MAX_MESSAGE_LEN: usize = 8 * 1024 * 1024;
/// Maximum total size of all messages: 32 MiB.
pub(super) const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Maximum number of pages in the tool list.
pub(super) const MAX_PAGES: usize = 100;
/// Maximum number of tools in the tool list.
pub(super) const MAX_TOOLS: usize = 1000;

/// Reason a server's tool list was rejected. The message continues a sentence that starts with the server's name.
#[derive(Debug, thiserror::Error)]
pub enum ServerFault {
    /// A request could not be serialized.
    #[error(transparent)]
    Request(#[from] serde_json::Error),
    /// The server has exited or has stopped reading its input.
    #[error("has exited or does not read its input")]
    StdinClosed,
    /// The server closed its output before it responded to the request with this method.
    #[error("exited before it answered `{0}`")]
    Exited(String),
    /// The server responded with an error.
    #[error("answered `{method}` with an error: {message}")]
    ErrorResponse {
        /// Method of the request.
        method: String,
        /// Error message, safe to display.
        message: String,
    },
    /// A remote server did not respond. The message comes from IronCurtain's transport.
    #[error("did not answer: {0}")]
    NoResponse(String),
    /// A remote server requires a login. The message comes from IronCurtain.
    #[error("did not answer: {0}")]
    NeedsLogin(String),
    /// A message is too large.
    #[error("sent a message that exceeds {n} MB; the limit is {most} MB", n = .0 >> 20, most = MAX_MESSAGE_LEN >> 20)]
    MessageTooLong(u64),
    /// The combined size of all messages exceeds the limit.
    #[error("sent more than {MAX_BYTES} bytes")]
    OutputTooLong,
    /// The server printed lines that are not protocol messages.
    #[error("printed lines that are not protocol messages, such as `{0}`")]
    NotMessages(String),
    /// The list of tools is invalid.
    #[error("returned an invalid list of tools: {0}")]
    InvalidToolList(String),
    /// The server has too many tools.
    #[error("lists more than {MAX_TOOLS} tools")]
    TooManyTools,
    /// The list has too many pages.
    #[error("lists its tools on more than {MAX_PAGES} pages")]
    TooManyPages,
    /// Two tools have the same name.
    #[error("lists the tool `{0}` twice")]
    DuplicateTool(String),
    /// A tool lacks an argument schema.
    #[error("has no valid input schema for the tool `{0}`")]
    NoSchema(String),
    /// The name of a tool or argument could be confused with another name.
    #[error("has a {owner} whose name cannot be displayed safely: `{shown}`")]
    AmbiguousName {
        /// Kind of item that has the name, such as "tool".
        owner: String,
        /// The name, escaped for display.
        shown: String,
    },
}
