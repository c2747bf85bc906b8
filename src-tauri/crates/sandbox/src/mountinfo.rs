//! Parser for the kernel's mount table, `/proc/PID/mountinfo`.

use std::{collections::BTreeMap, ffi::OsString, os::unix::ffi::OsStringExt};

/// All mounts of a namespace, by id.
#[derive(Debug)]
pub(crate) struct MountInfo(BTreeMap<u64, MountEntry>);

/// One mount of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MountEntry {
    pub(crate) parent: u64,
    /// Device of the file system, as `major:minor`.
    pub(crate) device: String,
    /// Mounted directory of the file system, `/` for the whole file system.
    pub(crate) root: OsString,
    pub(crate) point: OsString,
}

impl MountInfo {
    /// Parses the table. Invalid lines are skipped.
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(text.split(|byte| *byte == b'\n').filter_map(line).collect())
    }

    pub(crate) fn get(&self, id: u64) -> Option<&MountEntry> {
        self.0.get(&id)
    }

    /// Returns the id of the topmost mount at each mount point.
    pub(crate) fn by_point(&self) -> BTreeMap<OsString, u64> {
        let mut points = BTreeMap::new();
        for (id, entry) in &self.0 {
            let covers = |other: &u64| self.get(*other).is_some_and(|other| other.parent == *id);
            if !points.get(&entry.point).is_some_and(covers) {
                points.insert(entry.point.clone(), *id);
            }
        }
        points
    }

    /// Returns the mount points of the mount `id` and of all mounts below it, deepest first.
    pub(crate) fn subtree(&self, id: u64) -> Vec<OsString> {
        let mut ids = vec![id];
        let mut next = 0;
        while let Some(&above) = ids.get(next) {
            let below = self.0.iter().filter(|(id, entry)| entry.parent == above && !ids.contains(id));
            let below: Vec<u64> = below.map(|(id, _)| *id).collect();
            ids.extend(below);
            next += 1;
        }
        ids.iter().rev().filter_map(|id| Some(self.get(*id)?.point.clone())).collect()
    }
}

fn line(line: &[u8]) -> Option<(u64, MountEntry)> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut number = || str::from_utf8(fields.next()?).ok()?.parse().ok();
    let (id, parent) = (number()?, number()?);
    let device = str::from_utf8(fields.next()?).ok()?.to_owned();
    let (root, point) = (unescape(fields.next()?)?, unescape(fields.next()?)?);
    Some((id, MountEntry { parent, device, root, point }))
}

/// Decodes a field. The kernel writes spaces, tabs, newlines and backslashes as octal escapes.
fn unescape(field: &[u8]) -> Option<OsString> {
    let mut parts = field.split(|byte| *byte == b'\\');
    let mut plain = parts.next()?.to_owned();
    for part in parts {
        let (digits, rest) = part.split_at_checked(3)?;
        plain.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 8).ok()?);
        plain.extend(rest);
    }
    Some(OsString::from_vec(plain))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    const TABLE: &[u8] = b"\
10 9 0:21 / / ro - tmpfs tmpfs rw
11 10 0:22 / /home/a\\040b ro,nosuid - ext4 /dev/vda rw
12 11 0:22 / /home/a\\040b/c rw - ext4 /dev/vda rw
13 12 0:22 / /home/a\\040b/c rw - ext4 /dev/vda rw
14 10 0:23 / /tmp rw - tmpfs tmpfs rw
nonsense
";

    #[test]
    fn escaped_names_are_decoded() {
        let table = MountInfo::parse(TABLE);
        let expected =
            MountEntry { parent: 10, device: "0:22".into(), root: "/".into(), point: "/home/a b".into() };
        assert_eq!(table.get(11), Some(&expected));
        assert_eq!(table.get(15), None);
        assert_eq!(unescape(b"a\\134b\\012"), Some("a\\b\n".into()));
    }

    #[test]
    fn subtree_lists_leaves_first() {
        let table = MountInfo::parse(TABLE);
        assert_eq!(table.subtree(11), ["/home/a b/c", "/home/a b/c", "/home/a b"]);
        assert_eq!(table.subtree(14), ["/tmp"]);
        assert_eq!(table.subtree(99), Vec::<OsString>::new());
    }

    #[test]
    fn by_point_returns_topmost_mount() {
        let points = MountInfo::parse(TABLE).by_point();
        assert_eq!(points.get(OsStr::new("/home/a b/c")), Some(&13));
        assert_eq!(points.get(OsStr::new("/")), Some(&10));
    }
}
