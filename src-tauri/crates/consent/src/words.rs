//! Phrases for a path's target and for the amount of content that would be written.

use super::Verb;
use ironcurtain_paths::PathKind;

/// Phrase for the amount of content that would be written or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Amount {
    /// Size of the new content, such as "101 bytes".
    Size(String),
    /// Number of changed lines, such as "300 of 301 lines are removed".
    Lines(String),
}

/// Returns an effect line's note. The note describes the target before or after the call.
pub(super) fn note(verb: Verb, target: PathKind, amount: Option<&Amount>) -> String {
    let makes = matches!(verb, Verb::Create | Verb::Write | Verb::Change | Verb::Overwrite | Verb::Plant);
    match (target, amount) {
        (PathKind::Missing, Some(Amount::Size(words) | Amount::Lines(words))) if makes => {
            format!("new file, {words}")
        }
        (PathKind::Missing, _) if makes => "new".to_owned(),
        (PathKind::Missing, _) => "does not exist".to_owned(),
        (PathKind::File { .. }, Some(Amount::Lines(words))) if makes => words.clone(),
        (PathKind::File { bytes }, Some(Amount::Size(words))) if makes => {
            format!("replaces {} with {words}", size(bytes))
        }
        (PathKind::File { bytes }, _) if matches!(verb, Verb::Overwrite | Verb::Plant) => {
            format!("replaces {}", size(bytes))
        }
        (PathKind::File { bytes }, _) => size(bytes),
        (PathKind::Folder, _) if matches!(verb, Verb::Delete | Verb::Move) => {
            "folder, with everything in it".to_owned()
        }
        (PathKind::Folder, _) => "folder".to_owned(),
        (PathKind::Special, _) => "device, socket or pipe".to_owned(),
    }
}

/// Formats a number of bytes.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    for (unit, of) in UNITS {
        if bytes >= of {
            let tenths = bytes.saturating_mul(10) / of;
            return if tenths < 100 && !tenths.is_multiple_of(10) {
                format!("{}.{} {unit}", tenths / 10, tenths % 10)
            } else {
                format!("{} {unit}", tenths / 10)
            };
        }
    }
    if bytes == 1 { "1 byte".to_owned() } else { format!("{bytes} bytes") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verb_has_a_note_about_its_target() {
        let of = |target, verb| note(verb, target, None);
        assert_eq!(of(PathKind::File { bytes: 12_000 }, Verb::Read), "12 kB");
        assert_eq!(of(PathKind::File { bytes: 12_000 }, Verb::Overwrite), "replaces 12 kB");
        assert_eq!(of(PathKind::Folder, Verb::Delete), "folder, with everything in it");
        assert_eq!(of(PathKind::Missing, Verb::Read), "does not exist");
        assert_eq!(of(PathKind::Missing, Verb::Delete), "does not exist");
        assert_eq!(of(PathKind::Missing, Verb::Create), "new");
        assert_eq!(
            note(Verb::Write, PathKind::Missing, Some(&Amount::Size("3 bytes".into()))),
            "new file, 3 bytes"
        );
        let there = PathKind::File { bytes: 9 };
        assert_eq!(
            note(Verb::Overwrite, there, Some(&Amount::Size("3 bytes".into()))),
            "replaces 9 bytes with 3 bytes"
        );
        let lines = Amount::Lines("1 of 3 lines is removed".into());
        assert_eq!(note(Verb::Change, there, Some(&lines)), "1 of 3 lines is removed");
    }

    #[test]
    fn sizes_are_formatted_with_units() {
        let words: Vec<_> = [0, 1, 999, 1000, 1500, 12_345, 9_999_999, 3_000_000_000].map(size).into();
        assert_eq!(words, ["0 bytes", "1 byte", "999 bytes", "1 kB", "1.5 kB", "12 kB", "9.9 MB", "3 GB"]);
    }
}
