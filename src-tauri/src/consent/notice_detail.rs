//! The detail of notifications: the person's choice.

/// The detail of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum NoticeDetail {
    /// Who asks, and for what kind of thing.
    #[default]
    Full,
    /// The fact that something waits, and nothing of it.
    Plain,
    /// Nothing is shown.
    Off,
}

impl NoticeDetail {
    /// The words to show in the place of these.
    pub(super) fn of(self, text: String, plain: &str) -> Option<String> {
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
    fn a_notification_says_as_much_as_the_person_wants() {
        let shown = |detail: NoticeDetail| detail.of("Cursor wants to push".into(), "Open it.");
        assert_eq!(shown(NoticeDetail::Full).as_deref(), Some("Cursor wants to push"));
        assert_eq!(shown(NoticeDetail::Plain).as_deref(), Some("Open it."));
        assert_eq!(shown(NoticeDetail::Off), None);
    }
}
