//! `write_file` and `create_directory`.

use super::Call;
use super::arguments::Arguments;
use crate::error::ToolError;
use crate::files;

pub(super) fn file(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.text("path")?;
    let content = arguments.text("content")?;
    files::write(&call.resolve(path)?, content.as_bytes())?;
    Ok(format!("Successfully wrote to {path}"))
}

pub(super) fn directory(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.text("path")?;
    let place = call.resolve(path)?;
    match place.metadata() {
        Ok(metadata) if metadata.is_dir() => {}
        Ok(_) | Err(_) => place
            .directory()
            .create_dir_all(place.below())
            .map_err(|error| ToolError::io(error, "mkdir", place.path()))?,
    }
    Ok(format!("Successfully created directory {path}"))
}
