//! The shell: tray, consent dialog and settings window around the trusted process.
//!
//! - The only crate that knows the UI toolkit. The trusted process runs on separate threads.
//! - The settings window is the same program in a separate process.
//! - Decides nothing: it shows what it receives and passes on the user's answers.

mod autostart;
mod backend;
mod consent;
mod options;
mod shell;
mod single_instance;
mod start;
mod tray;
mod window;
#[cfg(target_os = "linux")]
mod window_stack;

pub use backend::{Backend, BoxFuture, Trusted};
pub use consent::{AnswerSink, DialogConsent, DialogLoop, PendingQuestion};
pub use options::AppOptions;
pub use shell::{ShellError, run as run_shell};
pub use start::run;
pub use window::{WindowError, WindowProcess, run_window};
