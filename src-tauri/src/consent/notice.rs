//! Tells the person that a question waits when nobody looks at it.
//!
//! - INVARIANT: a notification never allows. Any program on the bus can forge what comes back from one: the most that it
//!   does is to bring the dialog to the front, or a no.
//! - Names who asks and for what kind of thing, and no file: others may look at the screen.
//! - Runs on threads of its own, since the notification service may be slow or missing.

use super::{Command as QueueCommand, NoticeDetail};
use notify_rust::{ActionResponse, Notification, NotificationHandle, Timeout, Urgency};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::mpsc::WeakUnboundedSender;

/// The thread that talks to the notification service.
pub(super) struct Notices {
    commands: Sender<Command>,
}

enum Command {
    Show { id: String, text: String },
    Tell { text: String },
    Close { id: String },
    Detail(NoticeDetail),
}

impl Notices {
    /// Starts it. What people press there goes to `queue`.
    pub(super) fn start(queue: WeakUnboundedSender<QueueCommand>) -> Self {
        let (commands, inbox) = channel();
        // Without the thread there are no notifications, and the dialog is still there.
        if let Err(error) =
            std::thread::Builder::new().name("notices".into()).spawn(move || serve(&inbox, &queue))
        {
            tracing::warn!(%error, "notifications cannot be shown");
        }
        Self { commands }
    }

    /// Shows a notification, in place of an earlier one of the same question.
    pub(super) fn show(&self, id: &str, text: &str) {
        let _ = self.commands.send(Command::Show { id: id.to_owned(), text: text.to_owned() });
    }

    /// Tells something that is no question.
    pub(super) fn tell(&self, text: &str) {
        let _ = self.commands.send(Command::Tell { text: text.to_owned() });
    }

    /// Says how much they say from now on.
    pub(super) fn set_detail(&self, detail: NoticeDetail) {
        let _ = self.commands.send(Command::Detail(detail));
    }

    pub(super) fn close(&self, id: &str) {
        let _ = self.commands.send(Command::Close { id: id.to_owned() });
    }
}

fn serve(commands: &Receiver<Command>, queue: &WeakUnboundedSender<QueueCommand>) {
    let mut open: HashMap<String, NotificationHandle> = HashMap::new();
    let mut markup = None;
    let mut detail = NoticeDetail::default();
    while let Ok(command) = commands.recv() {
        match command {
            Command::Show { id, text } => {
                if let Some(earlier) = open.remove(&id) {
                    earlier.close();
                }
                let Some(text) = detail.of(text, "Open IronCurtain to see it.") else { continue };
                let reads_markup = *markup.get_or_insert_with(reads_markup);
                match notification(&text, reads_markup).show() {
                    Ok(handle) => {
                        listen(handle.id(), id.clone(), queue.clone());
                        open.insert(id, handle);
                    }
                    Err(error) => tracing::info!(%error, "the notification could not be shown"),
                }
            }
            Command::Detail(wanted) => detail = wanted,
            Command::Tell { text } => {
                let plain = "There is something to know. Open IronCurtain to see it.";
                let Some(text) = detail.of(text, plain) else { continue };
                let reads_markup = *markup.get_or_insert_with(reads_markup);
                if let Err(error) = notice(&text, reads_markup).show() {
                    tracing::info!(%error, "the notification could not be shown");
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

/// Asked once, when the first one is due. A service that does not answer is taken to read markup.
fn reads_markup() -> bool {
    notify_rust::get_capabilities().map_or(true, |all| all.iter().any(|c| c == "body-markup"))
}

/// Something that is no question, with nothing to press.
fn notice(text: &str, reads_markup: bool) -> Notification {
    let body = if reads_markup { escape(text) } else { text.to_owned() };
    Notification::new()
        .appname("IronCurtain")
        .summary("IronCurtain")
        .body(&body)
        .icon("ironcurtain-desktop")
        .urgency(Urgency::Normal)
        .timeout(Timeout::Default)
        .finalize()
}

/// Waits for what is pressed there, until the notification is closed.
fn listen(notification: u32, question: String, queue: WeakUnboundedSender<QueueCommand>) {
    let wait = move || {
        let pressed = notify_rust::handle_action(notification, |response: &ActionResponse<'_>| {
            let command = match response {
                ActionResponse::Custom("deny") => QueueCommand::Denied(question),
                ActionResponse::Custom("open" | "default") => QueueCommand::Raise,
                ActionResponse::Custom(_) | ActionResponse::Closed(_) => return,
            };
            // Without a queue the question is denied already.
            if let Some(queue) = queue.upgrade() {
                let _ = queue.send(command);
            }
        });
        if let Err(error) = pressed {
            tracing::info!(%error, "the notification's buttons do not work");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("notice".into()).spawn(wait) {
        tracing::warn!(%error, "the notification's buttons do not work");
    }
}

fn notification(text: &str, reads_markup: bool) -> Notification {
    let body = if reads_markup { escape(text) } else { text.to_owned() };
    Notification::new()
        .appname("IronCurtain")
        .summary("A question waits for you")
        .body(&body)
        .icon("ironcurtain-desktop")
        // A click on the notification itself.
        .action("default", "Open")
        .action("open", "Open")
        .action("deny", "Deny")
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
    fn foreign_text_is_not_markup_and_nothing_there_allows() {
        let shown = notification("<a href='x'>Click & win</a> wants to write a file", true);
        assert_eq!(shown.body, "&lt;a href='x'&gt;Click &amp; win&lt;/a&gt; wants to write a file");
        assert_eq!(shown.actions, ["default", "Open", "open", "Open", "deny", "Deny"]);
        assert_eq!(notification("a & b", false).body, "a & b");
        let told = notice("a <b>", true);
        assert_eq!((told.body.as_str(), told.actions), ("a &lt;b&gt;", vec![]));
    }
}
