//! Finds a program's cache folder in `~/.cache`.

use ironcurtain_paths::CanonicalPath;

/// Returns the folder in `~/.cache` that contains all paths. Returns `None` if the paths are not all in the same
/// folder.
#[must_use]
pub fn cache_around<'a>(
    home: &CanonicalPath,
    mut paths: impl Iterator<Item = &'a CanonicalPath>,
) -> Option<CanonicalPath> {
    let first = cache_of(home, paths.next()?)?;
    paths.all(|path| cache_of(home, path).as_ref() == Some(&first)).then_some(first)
}

fn cache_of(home: &CanonicalPath, path: &CanonicalPath) -> Option<CanonicalPath> {
    let caches = format!("{home}/.cache/");
    let (name, _) = path.as_str().strip_prefix(&caches)?.split_once('/')?;
    CanonicalPath::assume_canonical(&format!("{caches}{name}")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_a_folder_in_the_users_cache() {
        let at = |path: &str| CanonicalPath::assume_canonical(path).unwrap();
        let around = |paths: &[&str]| {
            let paths: Vec<CanonicalPath> = paths.iter().map(|path| at(path)).collect();
            cache_around(&at("/home/u"), paths.iter())
        };
        let browsers = at("/home/u/.cache/browsers");
        assert_eq!(around(&["/home/u/.cache/browsers/chromium/chrome"]), Some(browsers.clone()));
        assert_eq!(around(&["/home/u/.cache/browsers/a", "/home/u/.cache/browsers/b"]), Some(browsers));
        for none in [
            &["/home/u/.cache/browsers"][..],
            &["/home/u/notes/a"],
            &["/home/v/.cache/browsers/a"],
            &["/home/u/.cache/browsers/a", "/home/u/.cache/models/b"],
            &[],
        ] {
            assert_eq!(around(none), None, "{none:?}");
        }
    }
}
