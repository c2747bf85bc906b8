//! The shell: tray, consent dialog and settings window around the trusted process.
//!
//! - The only code that knows the UI toolkit; the trusted process runs beside it on its own threads.
//! - The same program is the settings window, in a process of its own.
//! - Nothing here decides: it shows what it is given and passes on what the person said.

mod autostart;
mod backend;
mod consent;
#[cfg(target_os = "linux")]
mod in_front;
mod options;
mod shell;
mod single;
mod start;
mod tray;
mod window;

pub use backend::{Backend, BoxFuture, Trusted};
pub use consent::{AnswerSink, DialogConsent, DialogLoop, PendingQuestion};
pub use options::AppOptions;
pub use shell::{ShellError, run as run_shell};
pub use start::run;
pub use window::{WindowError, WindowProcess, run_window};
