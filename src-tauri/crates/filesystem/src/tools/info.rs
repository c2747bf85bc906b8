//! `get_file_info`: returns the metadata of a file or directory.

use std::time::SystemTime;

use cap_std::fs::Metadata;
use chrono::{DateTime, Utc};

use super::Call;
use super::arguments::Arguments;
use crate::error::ToolError;

pub(super) fn file(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let resolved = call.resolve(arguments.string("path")?)?;
    let metadata = resolved.metadata().map_err(|error| ToolError::io(error, "stat", resolved.path()))?;
    let time = |time: std::io::Result<cap_std::time::SystemTime>| {
        date(time.map_or(SystemTime::UNIX_EPOCH, cap_std::time::SystemTime::into_std))
    };
    Ok(format!(
        "size: {}\ncreated: {}\nmodified: {}\naccessed: {}\nisDirectory: {}\nisFile: {}\npermissions: {}",
        metadata.len(),
        time(metadata.created()),
        time(metadata.modified()),
        time(metadata.accessed()),
        metadata.is_dir(),
        metadata.is_file(),
        permissions(&metadata),
    ))
}

/// Formats a time like JavaScript's `Date`, but always in UTC.
fn date(time: SystemTime) -> String {
    DateTime::<Utc>::from(time)
        .format("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)")
        .to_string()
}

#[cfg(unix)]
fn permissions(metadata: &Metadata) -> String {
    use cap_std::fs::PermissionsExt as _;
    format!("{:03o}", metadata.permissions().mode() & 0o777)
}

#[cfg(not(unix))]
fn permissions(metadata: &Metadata) -> String {
    if metadata.permissions().readonly() { "444" } else { "666" }.to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_formatted_like_javascript() {
        let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(1_772_960_461));
        assert_eq!(
            date(time.expect("a time")),
            "Sun Mar 08 2026 09:01:01 GMT+0000 (Coordinated Universal Time)"
        );
    }
}
