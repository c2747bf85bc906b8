//! The desktop app: a tray icon, consent dialogs and a settings window for the trusted process.
//!
//! - The only crate that uses the GUI toolkit. The trusted process runs on separate threads.
//! - The settings window is a second process of this program.
//! - The app makes no decisions. It shows questions and forwards the user's answers.

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
