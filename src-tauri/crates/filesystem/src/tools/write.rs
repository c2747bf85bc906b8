//! `write_file` and `create_directory`.

use super::Call;
use super::arguments::Arguments;
use crate::error::ToolError;
use crate::files;

pub(super) fn file(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let content = arguments.string("content")?;
    files::write(&call.resolve(path)?, content.as_bytes())?;
    Ok(format!("Successfully wrote to {path}"))
}

pub(super) fn directory(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let resolved = call.resolve(path)?;
    match resolved.metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) | Err(_) => resolved
            .directory()
            .create_dir_all(resolved.relative())
            .map_err(|error| ToolError::io(error, "mkdir", resolved.path()))?,
    }
    Ok(format!("Successfully created directory {path}"))
}
