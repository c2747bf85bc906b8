//! Putting back the keys of a repository's configuration by which git runs something.
//!
//! - It is done under git's own lock, so that no change of git's gets lost. A lock that is held for longer than git holds one
//!   is not waited for.

use std::{
    fs::{File, Permissions},
    hash::{BuildHasher, Hasher, RandomState},
    io::{self, Write},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    time::{Duration, Instant},
};

use rustix::{
    fs::{AtFlags, Mode, OFlags, openat, renameat, statat, unlinkat},
    io::Errno,
};

use super::Watcher;
use crate::autostart::{
    Finding,
    baseline::{above, content, last},
    content::Verdict,
    git::{self, Leads, Mended},
    walk::shown,
};

/// How many other names are tried for a lock that is held.
const OTHER_NAMES: usize = 3;
/// How long git's lock is waited for.
const PATIENCE: Duration = Duration::from_millis(200);
const WHEN: &str = "when you use git in this repository";

impl Watcher {
    /// Judges a configuration by what it was `before`, if there was one.
    pub(super) fn guard_config(
        &mut self,
        name: &str,
        dir: &OwnedFd,
        path: &str,
        before: Option<&[u8]>,
        now: Option<&[u8]>,
    ) {
        let Some(sandbox) = self.sandboxes.get(name) else { return };
        if sandbox.named.contains(path) {
            return;
        }
        let scratch = sandbox.journal.scratch();
        let inside = |path: &str| sandbox.around(path).next().is_some();
        let leads = Leads { inside: &inside, folder: above(path) };
        let mend = |now: Option<&[u8]>| {
            now.map_or(Mended::All { keys: vec![] }, |now| git::mend(before, now, &leads, &scratch))
        };
        let mut keys = match mend(now) {
            Mended::Fine => {
                self.watch_content(dir, path);
                return;
            }
            Mended::Keys { keys, .. } | Mended::All { keys } => keys,
        };
        if keys.is_empty() {
            keys.push("all of it".to_owned());
        }
        let finding = Finding::Restored { path: shown(path), keys: keys.clone() };
        // Before it is done, so that it is told also when nobody gets to say that it was.
        let _ = sandbox.journal.found(&finding);
        if let Err(error) = sandbox.journal.locked(path) {
            let reason = format!("`{}` has keys that are not put back: {error}", shown(path));
            return self.tell_once(path, "lock", reason);
        }
        let rewritten =
            rewrite(dir, last(path), || match mend(content(dir, last(path), git::LONGEST).as_deref()) {
                Mended::Fine => Rewrite::Nothing,
                Mended::Keys { text, .. } => Rewrite::With(text),
                Mended::All { .. } => before.map_or(Rewrite::Impossible, |text| Rewrite::With(text.to_vec())),
            });
        match rewritten {
            Ok(true) => {}
            Ok(false) | Err(_) => {
                self.move_away(dir, path, WHEN, &[name]);
                return;
            }
        }
        self.watch_content(dir, path);
        let Some(sandbox) = self.sandboxes.get_mut(name) else { return };
        if sandbox.told.insert(format!("{path}\0{}", keys.join("\0"))) {
            sandbox.tell(finding);
        }
    }
}

impl Watcher {
    /// The verdict on a configuration of which nobody knows what it was before.
    pub(super) fn config_verdict(&self, name: &str, path: &str, now: Option<&[u8]>) -> Verdict {
        let Some(sandbox) = self.sandboxes.get(name) else { return Verdict::Harmless };
        let inside = |path: &str| sandbox.around(path).next().is_some();
        let leads = Leads { inside: &inside, folder: above(path) };
        let mended = now.map(|now| git::mend(None, now, &leads, &sandbox.journal.scratch()));
        if mended == Some(Mended::Fine) { Verdict::Harmless } else { Verdict::Listed }
    }
}

/// What is to become of a file.
enum Rewrite {
    Nothing,
    With(Vec<u8>),
    Impossible,
}

fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Rewrites a file under its lock; whether that was possible.
fn rewrite(dir: &OwnedFd, name: &str, text: impl FnOnce() -> Rewrite) -> io::Result<bool> {
    let until = Instant::now() + PATIENCE;
    let mut other_names = std::iter::repeat_with(|| format!("{name}.{:016x}", random())).take(OTHER_NAMES);
    let mut lock = format!("{name}.lock");
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = loop {
        match openat(dir, lock.as_str(), flags, Mode::from_raw_mode(0o600)) {
            Ok(file) => break File::from(file),
            Err(Errno::EXIST) if Instant::now() < until => std::thread::sleep(Duration::from_millis(10)),
            // Nobody who plays by the rules has it. A name that nobody can know beforehand is free.
            Err(Errno::EXIST) => match other_names.next() {
                Some(name) => lock = name,
                None => return Ok(false),
            },
            Err(error) => return Err(error.into()),
        }
    };
    let written = match text() {
        Rewrite::Nothing => Ok(None),
        Rewrite::Impossible => Ok(Some(false)),
        Rewrite::With(text) => {
            let mode =
                statat(dir, name, AtFlags::SYMLINK_NOFOLLOW).map_or(0o644, |about| about.st_mode & 0o777);
            let written =
                file.write_all(&text).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
            written.and_then(|()| Ok(renameat(dir, lock.as_str(), dir, name)?)).map(|()| Some(true))
        }
    };
    if !matches!(written, Ok(Some(true))) {
        let _ = unlinkat(dir, lock.as_str(), AtFlags::empty());
    }
    Ok(written?.unwrap_or(true))
}
