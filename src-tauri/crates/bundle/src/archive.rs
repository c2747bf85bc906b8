//! Reads and writes the gzip-compressed tar archive that contains a bundle.
//!
//! - Accepts only directories and regular files with plain relative names. Nothing is extracted to disk.
//! - Limits the size before and after decompression, so a decompression bomb cannot exhaust memory.

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use std::collections::BTreeMap;
use std::io::{self, Read};
use tar::{Archive, Builder, Header};

/// Maximum size of a compressed bundle: 32 MiB.
pub const MAX_BUNDLE_LEN: usize = 32 * 1024 * 1024;

/// Maximum size of the decompressed archive: 64 MiB.
const MAX_CONTENT_LEN: u64 = 64 * 1024 * 1024;

/// Maximum number of files in a bundle.
const MAX_FILES: usize = 1000;

/// Content of each file in a bundle, keyed by its name without a leading slash.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// Error returned for an archive that is refused.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The data is not a gzip-compressed tar archive, or it is truncated.
    #[error("it is not a gzip-compressed tar archive: {0}")]
    Format(#[from] io::Error),
    /// The compressed archive is too large.
    #[error("it is larger than {} MiB", MAX_BUNDLE_LEN / 1024 / 1024)]
    TooLarge,
    /// The decompressed content is too large.
    #[error("its content is larger than {} MiB", MAX_CONTENT_LEN / 1024 / 1024)]
    ContentTooLarge,
    /// The archive has too many files.
    #[error("it has more than {} files", MAX_FILES)]
    TooManyFiles,
    /// An entry's name points outside the archive or is not normalized.
    #[error("the file name `{0}` is not allowed")]
    Name(String),
    /// An entry is neither a regular file nor a directory.
    #[error("`{0}` is not a regular file")]
    Kind(String),
    /// Two entries have the same name.
    #[error("`{0}` appears more than once")]
    Duplicate(String),
}

/// Reads all files in an archive.
pub(crate) fn read(bytes: &[u8]) -> Result<Files, ArchiveError> {
    if bytes.len() > MAX_BUNDLE_LEN {
        Err(ArchiveError::TooLarge)
    } else {
        read_up_to(MAX_CONTENT_LEN, bytes)
    }
}

fn read_up_to(limit: u64, bytes: &[u8]) -> Result<Files, ArchiveError> {
    // One extra byte distinguishes content that exceeds the limit from content that reaches it.
    let mut content = GzDecoder::new(bytes).take(limit + 1);
    let files = entries(&mut content);
    // Reading to the end verifies gzip's checksum.
    let rest = io::copy(&mut content, &mut io::sink());
    if content.limit() == 0 {
        return Err(ArchiveError::ContentTooLarge);
    }
    rest?;
    files
}

fn entries(content: &mut impl Read) -> Result<Files, ArchiveError> {
    let mut files = Files::new();
    for (count, entry) in Archive::new(content).entries()?.enumerate() {
        let mut entry = entry?;
        if count >= MAX_FILES {
            return Err(ArchiveError::TooManyFiles);
        }
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        if !kind.is_file() {
            return Err(ArchiveError::Kind(name));
        }
        let Some(normalized) = normalize_name(&name) else { return Err(ArchiveError::Name(name)) };
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes)?;
        if files.insert(normalized.to_owned(), bytes).is_some() {
            return Err(ArchiveError::Duplicate(name));
        }
    }
    Ok(files)
}

/// Returns the name without a leading `/` or `./`, or `None` if the name is not allowed.
pub(crate) fn normalize_name(name: &str) -> Option<&str> {
    let normalized = name.strip_prefix("./").or_else(|| name.strip_prefix('/')).unwrap_or(name);
    let is_normal = |part: &str| !matches!(part, "" | "." | "..");
    let is_printable = |c: char| !c.is_control() && c != '\\' && c != char::REPLACEMENT_CHARACTER;
    (normalized.split('/').all(is_normal) && normalized.chars().all(is_printable)).then_some(normalized)
}

/// Writes an archive. The output is deterministic.
pub(crate) fn write(files: &Files) -> io::Result<Vec<u8>> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    for (name, bytes) in files {
        let mut header = Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes.as_slice())?;
    }
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use tar::EntryType;

    fn compressed(tar: &[u8]) -> Vec<u8> {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(tar).unwrap();
        gzip.finish().unwrap()
    }

    /// Creates an archive with the given entries without checking their names.
    fn archive(entries: &[(&str, EntryType, &[u8])]) -> Vec<u8> {
        let mut tar = Builder::new(Vec::new());
        for (name, kind, bytes) in entries {
            let mut header = Header::new_gnu();
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_entry_type(*kind);
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            header.set_cksum();
            tar.append(&header, *bytes).unwrap();
        }
        compressed(&tar.into_inner().unwrap())
    }

    fn refused(entries: &[(&str, EntryType, &[u8])]) -> String {
        read(&archive(entries)).unwrap_err().to_string()
    }

    #[test]
    fn files_are_read_and_written() {
        let found = read(&archive(&[
            ("a", EntryType::Directory, b""),
            ("./a/data.json", EntryType::Regular, b"{}"),
            ("/.manifest", EntryType::Regular, b"1"),
        ]));
        let files = found.unwrap();
        assert_eq!(files.keys().collect::<Vec<_>>(), [".manifest", "a/data.json"]);
        let written = write(&files).unwrap();
        assert_eq!(read(&written).unwrap(), files);
        assert_eq!(write(&files).unwrap(), written);
    }

    #[test]
    fn names_that_leave_the_archive_are_refused() {
        for name in ["../x", "a/../x", "a//x", "a/./x", "//x", "a\\x", "a/..", "a\nb"] {
            let expected = format!("the file name `{name}` is not allowed");
            assert_eq!(refused(&[(name, EntryType::Regular, b"")]), expected);
        }
    }

    #[test]
    fn links_devices_and_duplicates_are_refused() {
        for kind in [EntryType::Symlink, EntryType::Link, EntryType::Char, EntryType::Fifo] {
            assert_eq!(refused(&[("x", kind, b"")]), "`x` is not a regular file");
        }
        let twice = refused(&[("x", EntryType::Regular, b"1"), ("/x", EntryType::Regular, b"2")]);
        assert_eq!(twice, "`/x` appears more than once");
    }

    #[test]
    fn large_archives_are_refused() {
        let bomb = archive(&[("x", EntryType::Regular, &[0; 100_000])]);
        assert!(bomb.len() < 2_000);
        assert!(matches!(read_up_to(50_000, &bomb), Err(ArchiveError::ContentTooLarge)));
        assert_eq!(read_up_to(200_000, &bomb).unwrap().len(), 1);
        // Zeros mark the end of a tar archive, but count towards the limit.
        let padding = compressed(&[0; 100_000]);
        assert!(matches!(read_up_to(50_000, &padding), Err(ArchiveError::ContentTooLarge)));
        assert_eq!(read_up_to(200_000, &padding).unwrap(), Files::new());
        assert!(matches!(read(&vec![0; MAX_BUNDLE_LEN + 1]), Err(ArchiveError::TooLarge)));
        let names: Vec<String> = (0..=MAX_FILES).map(|n| n.to_string()).collect();
        let many: Vec<_> = names.iter().map(|name| (name.as_str(), EntryType::Regular, &b""[..])).collect();
        assert!(matches!(read(&archive(&many)), Err(ArchiveError::TooManyFiles)));
        assert_eq!(read(&archive(&many[..MAX_FILES])).unwrap().len(), MAX_FILES);
    }

    #[test]
    fn damaged_archives_are_refused() {
        let good = archive(&[("x", EntryType::Regular, b"content")]);
        assert!(read(&good).is_ok());
        let mut changed = good.clone();
        *changed.last_mut().unwrap() ^= 1;
        for bad in [&good[..good.len() / 2], b"", b"not gzip", &changed] {
            assert!(matches!(read(bad), Err(ArchiveError::Format(_))), "{bad:?}");
        }
    }
}
