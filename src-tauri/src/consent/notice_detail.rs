//! Setting for the level of detail in notifications.

/// Level of detail in notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoticeDetail {
    /// Notifications name the agent and the kind of action.
    #[default]
    Full,
    /// Notifications report only that a question is pending.
    Plain,
    /// Notifications are turned off.
    Off,
}

impl NoticeDetail {
    /// Returns `text` or `plain`, depending on the level, or `None` if notifications are off.
    pub(super) fn choose(self, text: String, plain: &str) -> Option<String> {
        match self {
            Self::Full => Some(text),
            Self::Plain => Some(plain.to_owned()),
            Self::Off => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifications_respect_the_detail_setting() {
        let shown = |detail: NoticeDetail| detail.choose("Cursor wants to push".into(), "Open it.");
        assert_eq!(shown(NoticeDetail::Full).as_deref(), Some("Cursor wants to push"));
        assert_eq!(shown(NoticeDetail::Plain).as_deref(), Some("Open it."));
        assert_eq!(shown(NoticeDetail::Off), None);
    }
}
