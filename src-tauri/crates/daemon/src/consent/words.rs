//! Words for what stands at a path, and for how much would be written.

use super::Verb;
use ironcurtain_paths::PathKind;

/// The note beside a line: what is at its target now, or would be.
pub(super) fn note(verb: Verb, target: PathKind, amount: Option<&str>) -> String {
    let with = |said: String| match amount {
        Some(amount) => format!("{said}, {amount}"),
        None => said,
    };
    let makes = matches!(verb, Verb::Create | Verb::Write | Verb::Change | Verb::Overwrite);
    match target {
        PathKind::Missing if makes && amount.is_some() => with("new file".to_owned()),
        PathKind::Missing if makes => "new".to_owned(),
        PathKind::Missing => "nothing is there".to_owned(),
        PathKind::File { bytes } if verb == Verb::Overwrite => with(format!("{} are there now", size(bytes))),
        PathKind::File { bytes } if verb == Verb::Change => with(size(bytes)),
        PathKind::File { bytes } => size(bytes),
        PathKind::Folder if matches!(verb, Verb::Delete | Verb::Move) => {
            "folder, with everything in it".to_owned()
        }
        PathKind::Folder => "folder".to_owned(),
        PathKind::Special => "device, socket or pipe".to_owned(),
    }
}

/// A size in words.
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
    fn what_is_there_is_said_for_every_verb() {
        let of = |target, verb| note(verb, target, None);
        assert_eq!(of(PathKind::File { bytes: 12_000 }, Verb::Read), "12 kB");
        assert_eq!(of(PathKind::File { bytes: 12_000 }, Verb::Overwrite), "12 kB are there now");
        assert_eq!(of(PathKind::Folder, Verb::Delete), "folder, with everything in it");
        assert_eq!(of(PathKind::Missing, Verb::Read), "nothing is there");
        assert_eq!(of(PathKind::Missing, Verb::Delete), "nothing is there");
        assert_eq!(of(PathKind::Missing, Verb::Create), "new");
        assert_eq!(note(Verb::Write, PathKind::Missing, Some("3 bytes")), "new file, 3 bytes");
        assert_eq!(
            note(Verb::Change, PathKind::File { bytes: 9 }, Some("+3 -1 lines")),
            "9 bytes, +3 -1 lines"
        );
    }

    #[test]
    fn sizes_read_like_sizes() {
        let words: Vec<_> = [0, 1, 999, 1000, 1500, 12_345, 9_999_999, 3_000_000_000].map(size).into();
        assert_eq!(words, ["0 bytes", "1 byte", "999 bytes", "1 kB", "1.5 kB", "12 kB", "9.9 MB", "3 GB"]);
    }
}
