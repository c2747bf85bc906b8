//! Faults of a server that is asked for its tools, and the bounds beyond which it is one.

/// The longest message: 8 MiB.
pub(super) const MESSAGE: usize = 8 * 1024 * 1024;
/// The amount that it may say in all: 32 MiB.
pub(super) const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// The most pages that are asked for.
pub(super) const MOST_PAGES: usize = 100;
/// The most tools a server may have.
pub(super) const MOST_TOOLS: usize = 1000;

/// Why a server's list of tools is not taken, as the words after its name.
#[derive(Debug, thiserror::Error)]
pub enum ServerFault {
    /// A request cannot be written.
    #[error(transparent)]
    Request(#[from] serde_json::Error),
    /// It takes nothing any more.
    #[error("ended, or takes no input")]
    NoInput,
    /// It says nothing any more.
    #[error("ended before it answered `{0}`")]
    Ended(String),
    /// It refuses to answer.
    #[error("answered `{method}` with an error: {message}")]
    Refused {
        /// The method.
        method: String,
        /// Its words, to be shown.
        message: String,
    },
    /// A remote server did not answer, in our own words.
    #[error("did not answer: {0}")]
    Unanswered(String),
    /// One message is too long.
    #[error("sent a message larger than {n} MB; IronCurtain takes at most {most} MB here", n = .0 >> 20, most = MESSAGE >> 20)]
    LongMessage(u64),
    /// All of it is too long.
    #[error("sent more than {MOST_BYTES} bytes")]
    TooMuch,
    /// It does not speak the protocol.
    #[error("prints lines that are no messages of the protocol, such as `{0}`")]
    Noise(String),
    /// Its list is not as the protocol has it.
    #[error("lists its tools in a way that is not understood: {0}")]
    NotUnderstood(String),
    /// It has too many tools.
    #[error("lists more than {MOST_TOOLS} tools")]
    ManyTools,
    /// Its list does not end.
    #[error("lists its tools on more than {MOST_PAGES} pages")]
    ManyPages,
    /// Two of its tools have one name.
    #[error("lists the tool `{0}` twice")]
    Twice(String),
    /// The arguments of a tool are not described.
    #[error("does not say what arguments the tool `{0}` takes")]
    NoSchema(String),
    /// The name of a tool or an argument could be taken for another one.
    #[error("has a name for a {of} that cannot be shown as it is: `{shown}`")]
    Name {
        /// The tool or argument of which tool.
        of: String,
        /// The name, to be shown.
        shown: String,
    },
}
