//! Tells the person that a question waits when nobody looks at it.
//!
//! - A notification has no power: it carries no action, and nothing that comes back from it is read.
//! - Runs on its own thread, since the notification service may be slow or missing.

use notify_rust::{Notification, NotificationHandle, Timeout, Urgency};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The thread that talks to the notification service.
pub(super) struct Notices {
    commands: Sender<Command>,
}

enum Command {
    Show { id: String, text: String },
    Close { id: String },
}

impl Notices {
    pub(super) fn start() -> Self {
        let (commands, inbox) = channel();
        // Without the thread there are no notifications, and the dialog is still there.
        if let Err(error) = std::thread::Builder::new().name("notices".into()).spawn(move || serve(&inbox)) {
            tracing::warn!(%error, "notifications cannot be shown");
        }
        Self { commands }
    }

    pub(super) fn show(&self, id: &str, text: &str) {
        let _ = self.commands.send(Command::Show { id: id.to_owned(), text: text.to_owned() });
    }

    pub(super) fn close(&self, id: &str) {
        let _ = self.commands.send(Command::Close { id: id.to_owned() });
    }
}

fn serve(commands: &Receiver<Command>) {
    let mut open: HashMap<String, NotificationHandle> = HashMap::new();
    let mut markup = None;
    while let Ok(command) = commands.recv() {
        match command {
            Command::Show { id, text } => {
                // Asked once, when the first one is due. A service that does not answer is taken to read markup.
                let reads_markup = *markup.get_or_insert_with(|| {
                    notify_rust::get_capabilities().map_or(true, |all| all.iter().any(|c| c == "body-markup"))
                });
                match notification(&text, reads_markup).show() {
                    Ok(handle) => {
                        open.insert(id, handle);
                    }
                    Err(error) => tracing::info!(%error, "the notification could not be shown"),
                }
            }
            Command::Close { id } => {
                if let Some(handle) = open.remove(&id) {
                    handle.close();
                }
            }
        }
    }
}

fn notification(text: &str, reads_markup: bool) -> Notification {
    let body = if reads_markup { escape(text) } else { text.to_owned() };
    Notification::new()
        .appname("IronCurtain")
        .summary("A question waits for you")
        .body(&body)
        .icon("ironcurtain-desktop")
        .urgency(Urgency::Normal)
        .timeout(Timeout::Default)
        .finalize()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_not_markup_and_there_is_nothing_to_press() {
        let shown = notification("<a href='x'>Click & win</a> wants to write a file", true);
        assert_eq!(shown.body, "&lt;a href='x'&gt;Click &amp; win&lt;/a&gt; wants to write a file");
        assert_eq!(shown.actions, Vec::<String>::new());
        assert_eq!(notification("a & b", false).body, "a & b");
    }
}
