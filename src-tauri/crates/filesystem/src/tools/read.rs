//! `read_text_file`, its older name `read_file`, and `read_multiple_files`.
//!
//! - `head` and `tail` read only the part that they need, so the file can be of any size.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use super::Call;
use super::arguments::Arguments;
use crate::error::ToolError;
use crate::files::{self, TEXT_LIMIT};
use crate::resolved_path::ResolvedPath;

const CHUNK: usize = 64 * 1024;

pub(super) fn text(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let path = arguments.string("path")?;
    let wanted = |lines: &f64| *lines != 0.0;
    let tail = arguments.number("tail")?.filter(wanted);
    let head = arguments.number("head")?.filter(wanted);
    let resolved = call.resolve(path)?;
    match (head, tail) {
        (None, None) => files::read_text(&resolved),
        (Some(lines), None) => head_of(&resolved, lines, call),
        (None, Some(lines)) => tail_of(&resolved, lines, call),
        (Some(_), Some(_)) => Err(ToolError::HeadAndTail),
    }
}

pub(super) fn multiple(arguments: &Arguments<'_>, call: &Call<'_>) -> Result<String, ToolError> {
    let paths = arguments.strings("paths")?;
    if paths.is_empty() {
        let reason = "Too small: expected array to have >=1 items at paths";
        return Err(arguments.refuse(reason.to_owned()));
    }
    let mut answer = String::new();
    for (index, path) in paths.iter().enumerate() {
        call.check()?;
        if index > 0 {
            answer.push_str("\n---\n");
        }
        match call.resolve(path).and_then(|resolved| files::read_text(&resolved)) {
            Ok(content) => answer.extend([path, ":\n", &content, "\n"]),
            Err(error) => answer.extend([path, ": Error - ", &error.to_string()]),
        }
        if !fits(answer.len()) {
            return Err(too_large("the files together", "read fewer files at once"));
        }
    }
    Ok(answer)
}

/// Returns the first lines, without a final line feed.
fn head_of(resolved: &ResolvedPath, lines: f64, call: &Call<'_>) -> Result<String, ToolError> {
    let mut file = files::open(resolved)?;
    let mut left = count(lines);
    let mut text = Vec::new();
    let mut chunk = vec![0; CHUNK];
    while left > 0 {
        call.check()?;
        let read = fill(&mut file, &mut chunk, resolved)?;
        if read.is_empty() {
            // A final line feed does not start another line.
            text.pop_if(|last| *last == b'\n');
            break;
        }
        for line in read.split_inclusive(|byte| *byte == b'\n') {
            text.extend_from_slice(line);
            if line.ends_with(b"\n") {
                left = left.saturating_sub(1);
            }
            if left == 0 {
                text.pop();
                break;
            }
        }
        if !fits(text.len()) {
            return Err(too_large(&resolved.path().display().to_string(), "read fewer lines"));
        }
    }
    Ok(files::to_text(text))
}

/// Returns the last lines. As in the reference server, text after the last line feed counts as a line even if it is
/// empty.
fn tail_of(resolved: &ResolvedPath, lines: f64, call: &Call<'_>) -> Result<String, ToolError> {
    let mut file = files::open(resolved)?;
    let wanted = count(lines);
    let fail = |error| ToolError::io(error, "read", resolved.path());
    let mut position = file.metadata().map_err(fail)?.len();
    let mut chunks: Vec<Vec<u8>> = Vec::new();
    let (mut size, mut found) = (0_usize, 0_u64);
    while position > 0 && found < wanted {
        call.check()?;
        let length = position.min(CHUNK as u64);
        position = position.saturating_sub(length);
        file.seek(SeekFrom::Start(position)).map_err(fail)?;
        let mut chunk = vec![0; usize::try_from(length).unwrap_or(CHUNK)];
        file.read_exact(&mut chunk).map_err(fail)?;
        found = found.saturating_add(chunk.iter().filter(|byte| **byte == b'\n').count() as u64);
        size = size.saturating_add(chunk.len());
        chunks.push(chunk);
        if !fits(size) {
            return Err(too_large(&resolved.path().display().to_string(), "read fewer lines"));
        }
    }
    chunks.reverse();
    let text = files::to_text(chunks.concat()).replace("\r\n", "\n");
    let all: Vec<&str> = text.split('\n').collect();
    let skipped = all.len().saturating_sub(usize::try_from(wanted).unwrap_or(usize::MAX));
    Ok(all.get(skipped..).unwrap_or_default().join("\n"))
}

fn fill<'b>(file: &mut File, buffer: &'b mut [u8], resolved: &ResolvedPath) -> Result<&'b [u8], ToolError> {
    loop {
        match file.read(buffer) {
            Ok(read) => return Ok(buffer.get(..read).unwrap_or_default()),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(ToolError::io(error, "read", resolved.path())),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating; a negative number of lines means none"
)]
fn count(lines: f64) -> u64 {
    lines.ceil() as u64
}

fn fits(length: usize) -> bool {
    u64::try_from(length).is_ok_and(|length| length <= TEXT_LIMIT)
}

fn too_large(what: &str, advice: &'static str) -> ToolError {
    ToolError::TooLarge { what: what.to_owned(), limit: TEXT_LIMIT, advice }
}
