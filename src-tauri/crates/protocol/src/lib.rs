//! Messages between the shim, the command line, the app and the trusted process.
//!
//! One JSON object per line over a socket that only the user can access. The first line in each direction contains the
//! protocol version.
//! - No message can approve anything: no message contains an answer to a question or adds a grant. Answers from an
//!   attached desktop arrive over an encrypted channel that requires the paired key.
//! - Contains only wire types. The daemon converts them to and from its own types.

mod control;
mod framing;
mod hello;
mod questions;
mod socket;
mod view;

pub use control::{ErrorCode, Passphrase, Reply, ReplyFrame, Request, RequestFrame};
pub use framing::{FrameError, MAX_FRAME_BYTES, read_frame, write_frame};
pub use hello::{
    AttachNote, Hello, HelloRefusal, PairingConfirmed, Purpose, RefusalCode, RunAsk, RunHello, RunNote,
    RunProfileChoice, RunUse, ShimHello, ShimNote, StdioMode, UsedFile, Welcome,
};
pub use questions::{DenialView, QuestionSelection, QuestionState, QuestionView, QuestionsView};
pub use socket::{
    ConnectError, HOME_VARIABLE, RUN_SOCKET, SocketPathError, Sockets, default_runtime_directory,
};
pub use view::{
    ActivityView, AuditCheckView, AutostartFileChoice, AutostartFileState, AutostartFileView, ClientView,
    EndedLoginView, GrantView, ProcessView, PromptLocation, Protection, RootView, SecretsFileView,
    SessionRecordView, SessionView, StatusView,
};

/// Version of this protocol. Both sides are installed together and must have the same version.
pub const VERSION: u32 = 1;
