//! Temporary user with a repository.

use super::*;

/// Home directory that contains the `repo` repository.
pub(super) struct TestUser {
    dir: tempfile::TempDir,
}

impl TestUser {
    pub(super) fn new() -> Self {
        let user = Self { dir: tempfile::tempdir().unwrap() };
        user.git(&["init", "-q", "-b", "main", "repo"]);
        user
    }

    pub(super) fn path(&self, below: &str) -> CanonicalPath {
        let mut path = self.dir.path().canonicalize().unwrap();
        if !below.is_empty() {
            path = path.join(below);
        }
        CanonicalPath::assume_canonical(path.to_str().unwrap()).unwrap()
    }

    pub(super) fn file(&self, below: &str, content: &str) {
        let at = self.path(below);
        std::fs::create_dir_all(at.parent().unwrap().as_path()).unwrap();
        if at.as_path().is_symlink() {
            std::fs::remove_file(at.as_path()).unwrap();
        }
        std::fs::write(at.as_path(), content).unwrap();
    }

    pub(super) fn program(&self, below: &str, script: &str) {
        self.file(below, script);
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(self.path(below).as_path(), mode).unwrap();
    }

    pub(super) fn link(&self, below: &str, to: &str) {
        let at = self.path(below);
        std::fs::create_dir_all(at.parent().unwrap().as_path()).unwrap();
        let _ = std::fs::remove_file(at.as_path());
        std::os::unix::fs::symlink(to, at.as_path()).unwrap();
    }

    /// Runs git as the user and returns its output.
    pub(super) fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(arguments).current_dir(self.dir.path()).env("HOME", self.dir.path().canonicalize().unwrap());
        let output = git.env_remove("XDG_CONFIG_HOME").output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(super) fn commit(&self, repository: &str) {
        let author = ["-c", "user.name=x", "-c", "user.email=x"];
        let commit = ["commit", "-q", "--allow-empty", "-m", "x"];
        self.git(&[&["-C", repository], &author[..], &commit[..]].concat());
    }

    pub(super) fn config(&self, content: &str) {
        self.file("repo/.git/config", &format!("[core]\n\trepositoryformatversion = 0\n{content}"));
    }

    pub(super) fn question(&self, folder: &str, remote_use: RemoteUse, raw: Option<&str>) -> RemoteQuery {
        let values = vec![(0, raw.map(address::to_send))];
        RemoteQuery { repositories: vec![self.path(folder)], remote_use, values }
    }

    pub(super) fn ask(
        &self,
        folder: &str,
        remote_use: RemoteUse,
        raw: Option<&str>,
        in_sandbox: bool,
    ) -> Vec<String> {
        let user = self.path("");
        self.ask_where(folder, remote_use, raw, in_sandbox, &|path| user.contains(path))
    }

    pub(super) fn ask_where(
        &self,
        folder: &str,
        remote_use: RemoteUse,
        raw: Option<&str>,
        in_sandbox: bool,
        may_access: &dyn Fn(&CanonicalPath) -> bool,
    ) -> Vec<String> {
        let git = GitContext { home: self.path(""), in_sandbox };
        let answer = self.question(folder, remote_use, raw).resolve_addresses(&git, may_access);
        match answer.as_slice() {
            [(0, Fact::Remotes(all))] => all.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn fetch(&self, raw: Option<&str>) -> Vec<String> {
        self.ask("repo", RemoteUse::Fetch, raw, false)
    }

    pub(super) fn push(&self, raw: Option<&str>) -> Vec<String> {
        self.ask("repo", RemoteUse::Push, raw, false)
    }

    #[track_caller]
    pub(super) fn is_unknown(&self, why: &str) {
        let began = Instant::now();
        for (remote_use, raw) in [
            (RemoteUse::Push, Some("origin")),
            (RemoteUse::Fetch, None),
            (RemoteUse::Push, Some("https://a.example/x")),
        ] {
            let all = self.ask("repo", remote_use, raw, true);
            assert_eq!(all, [format!("(unknown: {why})")]);
        }
        assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    }
}
