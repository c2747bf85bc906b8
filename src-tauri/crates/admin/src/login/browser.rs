//! Opens a page in the user's browser.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::Command;
use url::Url;

/// Paths of `xdg-open`, which opens a page in the user's browser.
const OPENERS: [&str; 2] = ["/usr/bin/xdg-open", "/usr/local/bin/xdg-open"];

/// Time within which `xdg-open` reports that it found no browser. If it still runs after that, it is assumed to have
/// become the browser.
const FAILURE_TIME: Duration = Duration::from_secs(2);

/// Opens a login page in the user's browser. Returns `false` if `xdg-open` is missing or reports within two seconds that it
/// cannot open the page.
pub async fn open_in_browser(page: &Url) -> bool {
    let program = OPENERS.into_iter().find(|program| Path::new(program).exists());
    match program {
        Some(program) => open_with(Path::new(program), page).await,
        None => false,
    }
}

async fn open_with(program: &Path, page: &Url) -> bool {
    let mut command = Command::new(program);
    command.arg(page.as_str()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut started) = command.spawn() else { return false };
    match tokio::time::timeout(FAILURE_TIME, started.wait()).await {
        Ok(status) => status.is_ok_and(|status| status.success()),
        Err(_) => {
            tokio::spawn(async move { started.wait().await });
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_opener_that_fails_or_does_not_exist_opened_nothing() {
        let page = Url::parse("https://auth.example/authorize").unwrap();
        for (program, opened) in
            [("/bin/true", true), ("/bin/false", false), ("/nonexistent/xdg-open", false)]
        {
            assert_eq!(open_with(Path::new(program), &page).await, opened, "{program}");
        }
    }
}
