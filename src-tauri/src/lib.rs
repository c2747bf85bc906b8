//! The desktop app: a tray icon, consent dialogs and a settings window around the trusted process.
//!
//! - The only crate that uses the user interface toolkit. The trusted process runs on separate threads.
//! - The settings window is this program in a second process.
//! - Makes no decisions: it shows questions and forwards the user's answers.

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
