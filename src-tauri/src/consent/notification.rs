//! Notifies the user about a pending question that they have not noticed.
//!
//! - INVARIANT: a notification cannot allow a call. Any program on the bus can forge a reply, so replies can only
//!   deny, or bring the dialog to the front.
//! - Notifications name the agent and the kind of action, but no files, because other people may see the screen.
//! - Everything runs on separate threads, because the notification service may be slow or missing.

use super::{Command as QueueCommand, NoticeDetail};
use notify_rust::{ActionResponse, Notification, NotificationHandle, Timeout, Urgency};
use std::collections::HashMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::mpsc::WeakUnboundedSender;

/// Handle to the thread that uses the notification service.
pub(super) struct Notices {
    commands: Sender<Command>,
}

enum Command {
    Show { id: String, text: String },
    Notify { text: String },
    Close { id: String },
    Detail(NoticeDetail),
}

impl Notices {
    /// Spawns the thread. Presses of notification buttons are sent to `queue`.
    pub(super) fn start(queue: WeakUnboundedSender<QueueCommand>) -> Self {
        let (commands, inbox) = channel();
        // Without the thread, there are no notifications, but the dialog still works.
        if let Err(error) =
            std::thread::Builder::new().name("notices".into()).spawn(move || serve(&inbox, &queue))
        {
            tracing::warn!(%error, "failed to start the notification thread");
        }
        Self { commands }
    }

    /// Shows a notification, replacing an earlier one about the same question.
    pub(super) fn show(&self, id: &str, text: &str) {
        let _ = self.commands.send(Command::Show { id: id.to_owned(), text: text.to_owned() });
    }

    /// Shows a notification that is not about a question.
    pub(super) fn notify(&self, text: &str) {
        let _ = self.commands.send(Command::Notify { text: text.to_owned() });
    }

    /// Sets how much detail notifications contain.
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
                let Some(text) = detail.choose(text, "Open IronCurtain to see it.") else { continue };
                let reads_markup = *markup.get_or_insert_with(reads_markup);
                match notification(&text, reads_markup).show() {
                    Ok(handle) => {
                        listen(handle.id(), id.clone(), queue.clone());
                        open.insert(id, handle);
                    }
                    Err(error) => tracing::info!(%error, "failed to show a notification"),
                }
            }
            Command::Detail(wanted) => detail = wanted,
            Command::Notify { text } => {
                let plain = "Something needs your attention. Open IronCurtain to see it.";
                let Some(text) = detail.choose(text, plain) else { continue };
                let reads_markup = *markup.get_or_insert_with(reads_markup);
                if let Err(error) = notice(&text, reads_markup).show() {
                    tracing::info!(%error, "failed to show a notification");
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

/// Returns `true` if the notification service parses markup, or if this is unknown. Called once, before the first
/// notification.
fn reads_markup() -> bool {
    notify_rust::get_capabilities().map_or(true, |all| all.iter().any(|c| c == "body-markup"))
}

/// Builds a notification without buttons.
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

/// Waits until a button of the notification is pressed or the notification is closed.
fn listen(notification: u32, question: String, queue: WeakUnboundedSender<QueueCommand>) {
    let wait = move || {
        let pressed = notify_rust::handle_action(notification, |response: &ActionResponse<'_>| {
            let command = match response {
                ActionResponse::Custom("deny") => QueueCommand::Denied(question),
                ActionResponse::Custom("open" | "default") => QueueCommand::Raise,
                ActionResponse::Custom(_) | ActionResponse::Closed(_) => return,
            };
            // If the queue no longer exists, the question has already been denied.
            if let Some(queue) = queue.upgrade() {
                let _ = queue.send(command);
            }
        });
        if let Err(error) = pressed {
            tracing::info!(%error, "failed to listen for the notification's buttons");
        }
    };
    if let Err(error) = std::thread::Builder::new().name("notice".into()).spawn(wait) {
        tracing::warn!(%error, "failed to listen for the notification's buttons");
    }
}

fn notification(text: &str, reads_markup: bool) -> Notification {
    let body = if reads_markup { escape(text) } else { text.to_owned() };
    Notification::new()
        .appname("IronCurtain")
        .summary("A question is waiting for you")
        .body(&body)
        .icon("ironcurtain-desktop")
        // Action for clicking the notification itself.
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
    fn escapes_markup_and_offers_no_allow() {
        let shown = notification("<a href='x'>Click & win</a> wants to write a file", true);
        assert_eq!(shown.body, "&lt;a href='x'&gt;Click &amp; win&lt;/a&gt; wants to write a file");
        assert_eq!(shown.actions, ["default", "Open", "open", "Open", "deny", "Deny"]);
        assert_eq!(notification("a & b", false).body, "a & b");
        let built = notice("a <b>", true);
        assert_eq!((built.body.as_str(), built.actions), ("a &lt;b&gt;", vec![]));
    }
}
