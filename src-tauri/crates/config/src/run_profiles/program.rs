//! Finds the executable of a run, matches it against profiles, and finds its installation folders.

use super::ProgramPattern;
use super::profile::expanded;
use ironcurtain_paths::CanonicalPath;
use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// Maximum length of a script's first line, in bytes.
const FIRST_LINE: u64 = 256;

/// System folders that every run can see.
const SYSTEM: [&str; 7] = ["/usr", "/bin", "/sbin", "/lib", "/lib64", "/nix", "/gnu"];

/// A program and its executable file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundProgram {
    /// Name by which the program was started.
    pub name: String,
    /// Canonical path of the executable.
    pub real: PathBuf,
}

impl FoundProgram {
    /// Finds a program as a shell does, on `PATH` or by its path.
    #[must_use]
    pub fn find(program: &str, path: &str, cwd: &Path) -> Option<Self> {
        let named = if program.contains('/') {
            cwd.join(program)
        } else {
            std::env::split_paths(path).map(|folder| folder.join(program)).find(|file| file.is_file())?
        };
        let name = named.file_name()?.to_str()?.to_owned();
        Some(Self { name, real: named.canonicalize().ok()? })
    }

    /// Returns `true` if the profile's pattern matches this program.
    ///
    /// A program in the working directory never matches, because a project can contain a program with any name.
    pub(super) fn is_recognized(&self, pattern: &ProgramPattern, home: &CanonicalPath, cwd: &Path) -> bool {
        let is_in_project = self.real.starts_with(cwd) && !home.as_path().starts_with(cwd);
        !is_in_project
            && pattern.names.contains(&self.name)
            && pattern.folders.iter().any(|folder| self.folder(folder, home).is_some())
    }

    /// Returns the ancestor folder of the executable that matches the pattern.
    fn folder(&self, pattern: &str, home: &CanonicalPath) -> Option<PathBuf> {
        if pattern.starts_with('/') || pattern.starts_with("~/") {
            let folder = PathBuf::from(expanded(pattern, home));
            return self.real.starts_with(&folder).then_some(folder);
        }
        let wanted: Vec<&str> = pattern.split('/').collect();
        self.real.parent()?.ancestors().find(|folder| ends_with(folder, &wanted)).map(Path::to_path_buf)
    }

    /// Returns the files that the kernel opens to start the program: its executable and the interpreter. System files
    /// are omitted.
    ///
    /// These files must be mounted, because a run can request access to files only after it has started.
    pub(super) fn started_files(&self) -> Vec<PathBuf> {
        let interpreter = interpreter(&self.real, "").and_then(|file| file.canonicalize().ok());
        let mut all: Vec<PathBuf> = std::iter::once(self.real.clone()).chain(interpreter).collect();
        all.retain(|path| !SYSTEM.iter().any(|system| path.starts_with(system)));
        all
    }

    /// Returns the files and folders in which the program and its interpreter are installed, such as the package
    /// folder or the prefix. System folders are omitted.
    pub(super) fn install_tree(
        &self,
        pattern: &ProgramPattern,
        path: &str,
        home: &CanonicalPath,
    ) -> Vec<PathBuf> {
        let own = pattern.folders.iter().filter(|folder| folder.starts_with("~/"));
        let own = own.filter_map(|folder| self.folder(folder, home));
        // A `bin` folder contains many programs, so it is not this program's own.
        let own = own.filter(|folder| !folder.ends_with("bin"));
        let mut all: Vec<PathBuf> = own.chain(installed_in(&self.real, home)).collect();
        if let Some(interpreter) = interpreter(&self.real, path) {
            let real = interpreter.canonicalize();
            for file in real.into_iter().chain([interpreter]) {
                all.extend(installed_in(&file, home));
            }
        }
        all.retain(|path| !SYSTEM.iter().any(|system| path.starts_with(system)));
        all.sort();
        all.dedup();
        let outer = all.clone();
        all.retain(|path| !outer.iter().any(|other| other != path && path.starts_with(other)));
        all
    }
}

fn ends_with(folder: &Path, names: &[&str]) -> bool {
    let mut parts = folder.components().rev();
    names.iter().rev().all(|name| {
        let Some(Component::Normal(part)) = parts.next() else { return false };
        match (part.to_str(), name.strip_suffix('*')) {
            (Some(part), Some(start)) => part.starts_with(start),
            (part, _) => part == Some(name),
        }
    })
}

/// Returns the part of an installation that an executable needs: the outermost `node_modules` folder, the program's
/// folder in `/opt`, the libraries in its prefix, or only the file.
fn installed_in(file: &Path, home: &CanonicalPath) -> Vec<PathBuf> {
    let modules = file.ancestors().filter(|folder| folder.ends_with("node_modules")).last();
    if let Some(modules) = modules {
        return vec![modules.to_path_buf()];
    }
    if let Ok(below) = file.strip_prefix("/opt")
        && let Some(Component::Normal(name)) = below.components().next()
    {
        return vec![Path::new("/opt").join(name)];
    }
    let alone = vec![file.to_path_buf()];
    let Some(bin) = file.parent().filter(|folder| folder.ends_with("bin")) else { return alone };
    let Some(prefix) = bin.parent() else { return alone };
    let libraries = libraries(prefix);
    let is_environment = prefix.join("pyvenv.cfg").is_file() || file.ends_with("volta-shim");
    if libraries.is_empty() && !is_environment {
        return alone;
    }
    // A shared prefix also contains other programs and data.
    let is_shared = home.as_path().starts_with(prefix) || prefix == home.as_path().join(".local");
    if is_shared { alone.into_iter().chain(libraries).collect() } else { vec![prefix.to_path_buf()] }
}

/// Returns the Node.js and Python library folders in a prefix.
fn libraries(prefix: &Path) -> Vec<PathBuf> {
    let entries = prefix.join("lib").read_dir().into_iter().flatten().flatten();
    let is_library = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        name == "node_modules" || name.to_str().is_some_and(|name| name.starts_with("python3"))
    };
    entries.filter(is_library).map(|entry| entry.path()).collect()
}

/// Returns the interpreter named in a script's first line.
fn interpreter(script: &Path, path: &str) -> Option<PathBuf> {
    let mut start = Vec::new();
    File::open(script).ok()?.take(FIRST_LINE).read_to_end(&mut start).ok()?;
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split_ascii_whitespace();
    let program = words.next()?;
    if !program.ends_with("/env") {
        return Some(program.into());
    }
    let name = words.find(|word| !word.starts_with('-') && !word.contains('='))?;
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Scene {
        _dir: tempfile::TempDir,
        home: CanonicalPath,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let home = dir.path().canonicalize().unwrap();
            Self { _dir: dir, home: CanonicalPath::assume_canonical(home.to_str().unwrap()).unwrap() }
        }

        fn at(&self, below: &str) -> PathBuf {
            self.home.as_path().join(below)
        }

        fn put(&self, below: &str, text: &str) {
            std::fs::create_dir_all(self.at(below).parent().unwrap()).unwrap();
            std::fs::write(self.at(below), text).unwrap();
        }

        fn link(&self, target: &str, at: &str) {
            std::fs::create_dir_all(self.at(at).parent().unwrap()).unwrap();
            symlink(self.at(target), self.at(at)).unwrap();
        }

        fn program(&self, below: &str) -> FoundProgram {
            FoundProgram::find(self.at(below).to_str().unwrap(), "", Path::new("/")).unwrap()
        }

        /// Returns the installation paths relative to the home directory.
        fn tree(&self, program: &str, path: &str, folders: &[&str]) -> Vec<String> {
            let tree = self.program(program).install_tree(
                &pattern("x", folders),
                self.at(path).to_str().unwrap(),
                &self.home,
            );
            let below = |path: PathBuf| path.strip_prefix(self.home.as_path()).unwrap().to_owned();
            tree.into_iter().map(|path| below(path).to_str().unwrap().to_owned()).collect()
        }
    }

    fn pattern(name: &str, folders: &[&str]) -> ProgramPattern {
        let folders = folders.iter().map(|folder| (*folder).to_owned()).collect();
        ProgramPattern { names: vec![name.to_owned()], folders }
    }

    #[test]
    fn a_program_is_recognized_by_name_and_real_folder() {
        let scene = Scene::new();
        scene.put("n/lib/node_modules/@a/agent-linux/bin/agent", "");
        scene.link("n/lib/node_modules/@a/agent-linux/bin/agent", "n/bin/agent");
        scene.put(".local/share/agent/versions/2", "");
        scene.link(".local/share/agent/versions/2", ".local/bin/agent");
        scene.put("other/agent", "");
        let agent = pattern("agent", &["node_modules/@a/agent*", "~/.local/share/agent"]);
        let is = |program: &str, cwd: &str| {
            scene.program(program).is_recognized(&agent, &scene.home, &scene.at(cwd))
        };
        assert!(is("n/bin/agent", "project") && is(".local/bin/agent", "project"));
        assert!(!is("other/agent", "project"), "the name alone does not suffice");
        assert!(!is(".local/share/agent/versions/2", "project"), "nor the folder alone");
        // A project may contain a program with any name, but the home directory is not a project.
        assert!(!is("n/bin/agent", "n") && is("n/bin/agent", ""));
    }

    #[test]
    fn a_program_is_found_on_the_path_of_the_run() {
        let sh = Path::new("/bin/sh").canonicalize().unwrap();
        let found = |program: &str, path: &str, cwd: &str| FoundProgram::find(program, path, Path::new(cwd));
        let expected = Some(FoundProgram { name: "sh".into(), real: sh });
        assert_eq!(found("sh", "/nonexistent:/bin", "/"), expected);
        assert_eq!(found("./sh", "", "/bin"), expected);
        assert_eq!(found("sh", "/nonexistent", "/bin"), None);
    }

    #[test]
    fn the_install_tree_follows_how_a_program_was_installed() {
        let scene = Scene::new();
        let node = "#!/usr/bin/env node\n";
        // nvm: both the package and the interpreter are in the version's folder.
        scene.put(".nvm/v22/lib/node_modules/a/cli.js", node);
        scene.put(".nvm/v22/bin/node", "");
        scene.link(".nvm/v22/lib/node_modules/a/cli.js", ".nvm/v22/bin/a");
        assert_eq!(scene.tree(".nvm/v22/bin/a", ".nvm/v22/bin", &[]), [".nvm/v22"]);
        // npm's prefix `~/.local` also contains other programs.
        scene.put(".local/lib/node_modules/a/cli.js", node);
        scene.put(".local/bin/node", "");
        assert_eq!(
            scene.tree(".local/lib/node_modules/a/cli.js", ".local/bin", &[]),
            [".local/bin/node", ".local/lib/node_modules"]
        );
        // uv: the virtual environment, and the Python installation to which its symlink leads.
        scene.put("uv/python/cpython-3.12/bin/python3.12", "");
        scene.put("uv/python/cpython-3.12/lib/python3.12/os.py", "");
        scene.put("uv/tools/t/pyvenv.cfg", "");
        scene.link("uv/python/cpython-3.12/bin/python3.12", "uv/tools/t/bin/python");
        scene.put("uv/tools/t/bin/t", &format!("#!{}\n", scene.at("uv/tools/t/bin/python").display()));
        scene.link("uv/tools/t/bin/t", ".local/bin/t");
        assert_eq!(scene.tree(".local/bin/t", "", &[]), ["uv/python/cpython-3.12", "uv/tools/t"]);
        // Cargo installs a single file. Volta's folder contains everything that Volta manages.
        scene.put(".cargo/bin/c", "");
        assert_eq!(scene.tree(".cargo/bin/c", "", &[]), [".cargo/bin/c"]);
        scene.put(".volta/bin/volta-shim", "");
        scene.link(".volta/bin/volta-shim", ".volta/bin/v");
        assert_eq!(scene.tree(".volta/bin/v", "", &[]), [".volta"]);
        // Folder that a native installer creates.
        scene.put(".local/share/agent/versions/2", "");
        assert_eq!(
            scene.tree(".local/share/agent/versions/2", "", &["~/.local/share/agent"]),
            [".local/share/agent"]
        );
        let sh = FoundProgram::find("sh", "/bin", Path::new("/")).unwrap();
        assert_eq!(sh.install_tree(&pattern("sh", &[]), "", &scene.home), Vec::<PathBuf>::new());
        let opt = FoundProgram { name: "x".into(), real: "/opt/x/bin/x".into() };
        assert_eq!(opt.install_tree(&pattern("x", &[]), "", &scene.home), [PathBuf::from("/opt/x")]);
    }
}
