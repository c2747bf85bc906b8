//! Opens a page in the user's browser.

use std::path::Path;
use std::process::{Command, Stdio};
use url::Url;

/// Paths of `xdg-open`, which opens a page in the user's browser.
const OPENERS: [&str; 2] = ["/usr/bin/xdg-open", "/usr/local/bin/xdg-open"];

/// Opens a login page in the user's browser. Returns `false` if `xdg-open` is missing or cannot be started.
#[must_use]
pub fn open_in_browser(page: &Url) -> bool {
    let Some(program) = OPENERS.into_iter().find(|program| Path::new(program).exists()) else { return false };
    let mut command = Command::new(program);
    command.arg(page.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut started) = command.spawn() else { return false };
    // `xdg-open` may not exit before the browser does.
    std::thread::spawn(move || started.wait());
    true
}
