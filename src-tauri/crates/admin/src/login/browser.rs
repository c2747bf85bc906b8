//! Opens a page in the user's browser.

use std::path::Path;
use std::process::{Command, Stdio};
use url::Url;

/// Programs that open a page in the user's browser. They use the desktop's portal if there is one.
const OPENERS: [&str; 2] = ["/usr/bin/xdg-open", "/usr/local/bin/xdg-open"];

/// Opens a login page in the user's browser. Returns `false` if no program could be started to open it.
#[must_use]
pub fn open_in_browser(page: &Url) -> bool {
    let Some(program) = OPENERS.into_iter().find(|program| Path::new(program).exists()) else { return false };
    let mut command = Command::new(program);
    command.arg(page.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut started) = command.spawn() else { return false };
    // The program may run as long as the browser.
    std::thread::spawn(move || started.wait());
    true
}
