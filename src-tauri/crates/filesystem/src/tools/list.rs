//! `list_directory` and `list_directory_with_sizes`.

use cap_std::fs::Dir;

use super::Call;
use super::arguments::Arguments;
use super::collate;
use crate::error::ToolError;
use crate::resolved_path::ResolvedPath;

/// Entry of a directory.
pub(super) struct FolderEntry {
    /// Name for display, with invalid UTF-8 replaced.
    pub(super) name: String,
    /// Name as stored on disk.
    pub(super) file_name: std::ffi::OsString,
    /// `true` for a directory, but not for a symlink to one.
    pub(super) is_directory: bool,
    /// `true` for a symlink.
    pub(super) is_link: bool,
}

/// Returns the entries of a directory, sorted by the bytes of their names.
pub(super) fn entries(directory: &Dir) -> std::io::Result<Vec<FolderEntry>> {
    let mut entries = Vec::new();
    for entry in directory.entries()? {
        let entry = entry?;
        let kind = entry.file_type()?;
        let file_name = entry.file_name();
        entries.push(FolderEntry {
            name: file_name.to_string_lossy().into_owned(),
            file_name,
            is_directory: kind.is_dir(),
            is_link: kind.is_symlink(),
        });
    }
    entries.sort_by(|left, right| left.file_name.cmp(&right.file_name));
    Ok(entries)
}

/// Opens a directory for listing.
pub(super) fn open(resolved: &ResolvedPath) -> Result<Dir, ToolError> {
    resolved.open_dir().map_err(|error| ToolError::io(error, "scandir", resolved.path()))
}

pub(super) fn names(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let resolved = call.resolve(arguments.string("path")?)?;
    let line = |entry: FolderEntry| format!("{} {}", mark(entry.is_directory), entry.name);
    Ok(listed(&resolved)?.into_iter().map(line).collect::<Vec<_>>().join("\n"))
}

pub(super) fn sizes(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let by_size = arguments.choice("sortBy", ["name", "size"])? == "size";
    let resolved = call.resolve(path)?;
    let mut sized = Vec::new();
    for entry in listed(&resolved)? {
        call.check()?;
        let size = size(&entry, &resolved, call);
        sized.push((entry, size));
    }
    let files = sized.iter().filter(|(entry, _)| !entry.is_directory).count();
    let directories = sized.len().saturating_sub(files);
    let total = sized
        .iter()
        .filter(|(entry, _)| !entry.is_directory)
        .fold(0_u64, |total, (_, size)| total.saturating_add(*size));
    if by_size {
        sized.sort_by_key(|(_, size)| std::cmp::Reverse(*size));
    } else {
        sized.sort_by(|(left, _), (right, _)| collate::compare(&left.name, &right.name));
    }
    let mut lines: Vec<String> = sized.iter().map(|(entry, size)| sized_line(entry, *size)).collect();
    lines.push(String::new());
    lines.push(format!("Total: {files} files, {directories} directories"));
    lines.push(format!("Combined size: {}", format_size(total)));
    Ok(lines.join("\n"))
}

fn listed(resolved: &ResolvedPath) -> Result<Vec<FolderEntry>, ToolError> {
    entries(&open(resolved)?).map_err(|error| ToolError::io(error, "scandir", resolved.path()))
}

/// Returns the size of an entry in bytes, or 0 if it is unavailable, for example for a symlink that leads outside.
fn size(entry: &FolderEntry, resolved: &ResolvedPath, call: &Call<'_>) -> u64 {
    if entry.is_link {
        let target = resolved.path().join(&entry.file_name);
        let target = target.to_str().and_then(|target| call.resolve(target).ok());
        return target.and_then(|target| target.metadata().ok()).map_or(0, |metadata| metadata.len());
    }
    let below = resolved.relative().join(&entry.file_name);
    resolved.directory().symlink_metadata(below).map_or(0, |metadata| metadata.len())
}

fn sized_line(entry: &FolderEntry, size: u64) -> String {
    let mark = mark(entry.is_directory);
    let units = entry.name.encode_utf16().count();
    let padding = " ".repeat(30_usize.saturating_sub(units));
    let size = if entry.is_directory { String::new() } else { format!("{:>10}", format_size(size)) };
    format!("{mark} {}{padding} {size}", entry.name)
}

fn mark(is_directory: bool) -> &'static str {
    if is_directory { "[DIR]" } else { "[FILE]" }
}

#[expect(clippy::cast_precision_loss, reason = "two digits after the point are shown")]
fn format_size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut units = UNITS.iter();
    let mut unit = units.next();
    while size >= 1024.0 {
        let Some(larger) = units.next() else { break };
        unit = Some(larger);
        size /= 1024.0;
    }
    format!("{size:.2} {}", unit.unwrap_or(&"KB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_use_units_of_1024() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KB"),
            (1536, "1.50 KB"),
            (1 << 20, "1.00 MB"),
            (1 << 30, "1.00 GB"),
            (5 << 40, "5.00 TB"),
            (1 << 51, "2048.00 TB"),
        ] {
            assert_eq!(format_size(bytes), text);
        }
    }
}
