//! Notifications that are forwarded. All other notifications are dropped, because a receiver that dispatches on the
//! method alone would act on them without a policy check or an audit record.

/// Notifications that a client may send.
const FROM_CLIENTS: [&str; 5] = [
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
    "notifications/roots/list_changed",
    "notifications/tasks/status",
];

/// Notifications that a server may send.
const FROM_SERVERS: [&str; 9] = [
    "notifications/cancelled",
    "notifications/progress",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "notifications/elicitation/complete",
    "notifications/tasks/status",
];

/// Returns `true` if a client may send this notification.
#[must_use]
pub fn client_may_send(method: &str) -> bool {
    FROM_CLIENTS.contains(&method)
}

/// Returns `true` if a server may send this notification.
#[must_use]
pub fn server_may_send(method: &str) -> bool {
    FROM_SERVERS.contains(&method)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_sends_only_its_own_notifications() {
        for (method, client, server) in [
            ("notifications/initialized", true, false),
            ("notifications/roots/list_changed", true, false),
            ("notifications/cancelled", true, true),
            ("notifications/progress", true, true),
            ("notifications/tasks/status", true, true),
            ("notifications/tools/list_changed", false, true),
            ("notifications/message", false, true),
            ("notifications/unknown", false, false),
            ("tools/call", false, false),
            ("sampling/createMessage", false, false),
            ("", false, false),
        ] {
            assert_eq!((client_may_send(method), server_may_send(method)), (client, server), "{method}");
        }
    }
}
