//! The host's verdict on a launch: files and processes that were left behind, and data that leaked.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::Path,
};

use ironcurtain_sandbox::autostart::strict_names;

use crate::{
    launch::{Executor, Run, eventually, left_over},
    leftovers::Left,
    row::{Row, Sign},
    scene::Scene,
    tools::Tools,
};

/// Parts of the scene that commands may change.
pub(crate) const WRITABLE: [&str; 2] = ["work", "granted"];

/// Metadata and content of each file in the scene, by path. Excludes access times and the ordinary files in writable
/// parts, but includes the autostart files there.
pub(crate) type Picture = BTreeMap<String, String>;

pub(crate) fn picture(tools: &Tools, scene: &Scene) -> Picture {
    let mut seen = Picture::new();
    for program in [&tools.sandbox, &tools.probe, &tools.launch] {
        walk(Path::new(program), &mut |_, told| seen.insert(program.clone(), told).is_some());
    }
    walk(Path::new(scene.base()), &mut |path, told| {
        let name = path.strip_prefix(scene.base()).unwrap().to_str().unwrap().to_owned();
        // Excludes files that the test itself creates after recording the scene.
        let ours =
            ["settings.json", "spec.json", "autostart.json", "found.json", "egress.json", "state", "typed"];
        let ours = ours.contains(&name.as_str());
        let enter = !ours && !WRITABLE.contains(&name.as_str());
        if !ours {
            seen.insert(name, told);
        }
        enter
    });
    let names = Names::new();
    for part in WRITABLE {
        walk(Path::new(&scene.path(part)), &mut |path, told| {
            let name = path.strip_prefix(scene.base()).unwrap().to_string_lossy().into_owned();
            if names.is_persistence(path, &name) {
                seen.insert(name, told);
            }
            true
        });
    }
    seen
}

/// Names of autostart files.
struct Names {
    at_home: Vec<String>,
    anywhere: Vec<String>,
}

impl Names {
    fn new() -> Self {
        // A `.git` entry is classified by its content.
        let names = |at_home| strict_names(at_home).into_iter().filter(|known| known != ".git");
        Self {
            at_home: names(true).map(|known| format!("work/{known}/")).collect(),
            anywhere: names(false).map(|known| format!("/{known}/")).collect(),
        }
    }

    /// Returns `true` if the path is an autostart file or is inside an autostart folder.
    fn is_persistence(&self, path: &Path, name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        let inside = format!("/{name}/");
        let at_home = self.at_home.iter().any(|known| inside[1..].starts_with(known));
        let named = self.anywhere.iter().any(|known| inside.contains(known));
        let led = name.ends_with("/.git") && !path.is_dir() || name.ends_with("/.git") && path.is_symlink();
        // Git treats a directory with these entries as a repository. `commondir` can point to the missing entries.
        let have =
            |dir: &Path, signs: &[&str]| signs.iter().all(|sign| dir.join(sign).symlink_metadata().is_ok());
        let is_bare =
            |dir: &Path| have(dir, &["HEAD", "objects", "refs"]) || have(dir, &["HEAD", "commondir"]);
        let of_git = ["/config", "/config.worktree", "/commondir"].iter().any(|end| name.ends_with(end))
            || name.contains("/hooks/");
        at_home
            || named
            || led
            || of_git && path.ancestors().skip(1).take(2).any(is_bare)
            || name == "work/real"
    }
}

/// Returns all breaches, including those found by the row's own check.
pub(crate) fn breaches(
    tools: &Tools,
    scene: &mut Scene,
    row: &Row,
    before: &Picture,
    run: &Run,
    executor: &Executor,
) -> Vec<String> {
    let mut found = planted(scene);
    for token in [&scene.secret, &scene.secret_time] {
        if run.said.contains(token.as_str()) {
            found.push("a secret came out".to_owned());
        }
    }
    let after = picture(tools, scene);
    let left = Left::of(scene);
    let in_order = |path: &str| match executor {
        Executor::Bare | Executor::Srt(_) => false,
        Executor::HostRead | Executor::Roots | Executor::Asking => {
            left.is_in_order(scene, path, executor.is_strict())
        }
    };
    for (path, told) in &after {
        match before.get(path) {
            None if in_order(path) => {}
            None => found.push(format!("`{path}` was made: {told}")),
            Some(earlier) if earlier != told && (executor.is_strict() || !in_order(path)) => {
                found.push(format!("`{path}` was changed: {earlier} -> {told}"));
            }
            Some(_) => {}
        }
    }
    let gone = before.keys().filter(|path| !after.contains_key(*path));
    let gone = gone.filter(|path| executor.is_strict() || !in_order(path));
    found.extend(gone.map(|path| format!("`{path}` is gone")));
    found.extend(writable(scene));
    found.extend(scene.listeners.iter().flat_map(|listeners| listeners.heard()));
    found.extend(crate::proxied_network::forbidden_connections());
    found.extend(scene.victim.as_mut().and_then(crate::victim::Victim::harm));
    if scene.text("typed").is_some_and(|typed| typed.contains(&scene.mark)) {
        found.push("it typed into the terminal".to_owned());
    }
    if let Some(claim) = scene.text("work/claim") {
        found.push(format!("the kernel gave it `{claim}`"));
    }
    if run.hung {
        found.push("it did not end".to_owned());
    }
    // The sandbox's processes may still be exiting. Without a sandbox, this does not wait.
    let all_ended = || left_over(scene).is_empty();
    if !(all_ended() || *executor != Executor::Bare && eventually(all_ended)) {
        found.push(format!("processes are left: {:?}", left_over(scene)));
    }
    found.extend(row.also.and_then(|look| look(scene)));
    found
}

/// Returns traces of an attack in shared places of the host, and removes them.
fn planted(scene: &Scene) -> Vec<String> {
    let mut found = Vec::new();
    let moved = format!("{}-moved", scene.base());
    if fs::rename(&moved, scene.base()).is_ok() {
        found.push("the scene was moved".to_owned());
    }
    let name = Path::new(scene.base()).file_name().and_then(|name| name.to_str()).unwrap();
    for shared in ["/tmp", "/var/tmp", "/dev/shm", "/run", "/usr/bin", "/etc", ""] {
        let path = format!("{shared}/{name}-planted");
        if fs::remove_file(&path).is_ok() {
            found.push(format!("`{path}` was made"));
        }
    }
    found
}

/// Returns traces in writable parts that are breaches nevertheless.
fn writable(scene: &Scene) -> Vec<String> {
    const SET_ID: u32 = 0o6000;
    let mut found = Vec::new();
    for part in WRITABLE {
        walk(Path::new(&scene.path(part)), &mut |path, _| {
            let Ok(about) = fs::symlink_metadata(path) else { return false };
            let kind = about.mode() & libc::S_IFMT;
            if about.mode() & SET_ID != 0 {
                found.push(format!("{} runs as its owner: {:o}", path.display(), about.mode()));
            }
            // An overlay represents a deleted file by a device number of zero.
            if matches!(kind, libc::S_IFBLK | libc::S_IFCHR) && about.rdev() != 0 {
                found.push(format!("{} is a device", path.display()));
            }
            let private = path.starts_with(scene.path("work/mixed/private"));
            let text = if about.is_file() { fs::read(path).unwrap_or_default() } else { Vec::new() };
            if !private && String::from_utf8_lossy(&text).contains(&scene.secret) {
                found.push(format!("{} has the secret in it", path.display()));
            }
            true
        });
    }
    found
}

/// Returns `true` if the permitted counterpart of the row's attack had its effect.
pub(crate) fn twin_worked(scene: &Scene, row: &Row, said: &str) -> bool {
    match row.works {
        Sign::Said => said.contains(&scene.open),
        Sign::Wrote(file) => scene.text(file).is_some_and(|text| text.contains(&scene.twin)),
        Sign::Seen(look) => look(scene),
    }
}

/// Visits a path and everything below it. Descends into a directory only if `visit` returns `true`.
fn walk(path: &Path, visit: &mut impl FnMut(&Path, String) -> bool) {
    let Ok(about) = fs::symlink_metadata(path) else { return };
    let told = if about.is_dir() {
        format!("directory {:o} {}:{}", about.mode(), about.uid(), about.gid())
    } else {
        let (changed, nanoseconds) = (about.ctime(), about.ctime_nsec());
        let target = fs::read_link(path).unwrap_or_default();
        let size = about.size();
        format!(
            "{:o} {}:{} {size} bytes, {changed}.{nanoseconds} {}",
            about.mode(),
            about.uid(),
            about.gid(),
            target.display()
        )
    };
    if visit(path, told) && about.is_dir() {
        if fs::read_dir(path).is_err() {
            // Opens directories that were closed to hide their content. If this fails, the directory belongs to
            // another user and contains nothing new.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        }
        let mut names: Vec<_> =
            fs::read_dir(path).into_iter().flatten().flatten().map(|name| name.path()).collect();
        names.sort();
        names.iter().for_each(|path| walk(path, visit));
    }
}
