//! Starts the app at login, through an XDG autostart entry.

use directories::BaseDirs;
use std::io;
use std::path::{Path, PathBuf};

const NAME: &str = "io.github.ironcurtain-desktop.desktop";

/// Returns `true` if the app starts at login.
pub(crate) fn is_on() -> bool {
    entry().is_some_and(|entry| entry.exists())
}

/// Adds or removes the autostart entry.
///
/// # Errors
/// Returns an error if the entry cannot be written or removed.
pub(crate) fn turn(on: bool) -> io::Result<()> {
    let entry = entry().ok_or(io::ErrorKind::NotFound)?;
    if on {
        std::fs::create_dir_all(entry.parent().unwrap_or(Path::new("/")))?;
        return std::fs::write(&entry, text(&std::env::current_exe()?));
    }
    match std::fs::remove_file(&entry) {
        Err(problem) if problem.kind() != io::ErrorKind::NotFound => Err(problem),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn entry() -> Option<PathBuf> {
    Some(BaseDirs::new()?.config_dir().join("autostart").join(NAME))
}

fn text(program: &Path) -> String {
    format!(
        "[Desktop Entry]\nType=Application\nName=IronCurtain\nExec={} --background\nX-GNOME-Autostart-enabled=true\n",
        quoted(&program.display().to_string())
    )
}

/// Quotes an argument for the `Exec` key, first as part of a command line, then as a string value of the desktop
/// entry.
fn quoted(argument: &str) -> String {
    let mut quoted = String::from("\"");
    for c in argument.chars() {
        match c {
            '"' | '`' | '$' => quoted.extend(['\\', '\\', c]),
            '\\' => quoted.push_str("\\\\\\\\"),
            '%' => quoted.push_str("%%"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_entry_starts_this_program_in_the_background() {
        assert_eq!(
            text(Path::new("/opt/Iron Curtain/100%/ironcurtain-desktop")),
            "[Desktop Entry]\nType=Application\nName=IronCurtain\n\
             Exec=\"/opt/Iron Curtain/100%%/ironcurtain-desktop\" --background\nX-GNOME-Autostart-enabled=true\n"
        );
        assert_eq!(quoted("a$b\\c"), "\"a\\\\$b\\\\\\\\c\"");
    }
}
