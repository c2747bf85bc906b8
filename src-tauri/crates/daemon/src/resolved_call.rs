//! A call whose values are canonical as of now, and what the kernel must show for it.

use crate::consent::{Target, Wanted};
use crate::mounts::{FileWrites, Need, need};
use crate::resolve::{FoundPath, has_folder};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Access, Asked, Denial, Protected, ResolvedCall, Subject};
use std::collections::BTreeMap;
use std::mem::discriminant;

/// A call whose values are canonical as of now.
#[derive(Debug)]
pub struct LocatedCall {
    /// What is judged and sent.
    pub call: ResolvedCall,
    /// What was found at each of its paths.
    pub paths: Vec<FoundPath>,
}

impl LocatedCall {
    /// Every canonical path of the call, once.
    #[must_use]
    pub fn paths(&self) -> Vec<String> {
        let mut all: Vec<String> = self.paths.iter().map(|p| p.path.as_str().to_owned()).collect();
        all.dedup();
        all
    }

    /// Whether the call names this path, and a folder is there: a grant for a file says nothing of what lies in that.
    #[must_use]
    pub fn has_folder(&self, path: &CanonicalPath) -> bool {
        has_folder(&self.paths, path)
    }

    /// Whether at every path that it has in common with an earlier look stands what stood there then: a file is a file,
    /// a folder a folder, and what is missing is missing.
    pub(crate) fn stands_as(&self, before: &Self) -> bool {
        let is_same = |now: &FoundPath, then: &FoundPath| {
            now.argument != then.argument
                || now.path != then.path
                || discriminant(&now.target) == discriminant(&then.target)
        };
        self.paths.iter().all(|now| before.paths.iter().all(|then| is_same(now, then)))
    }

    /// The first path of the call that is in a map, or lies below one that is.
    pub(crate) fn first_of<'a>(
        &self,
        failed: &'a BTreeMap<CanonicalPath, String>,
    ) -> Option<(&'a CanonicalPath, &'a str)> {
        let concerns = |path: &CanonicalPath| self.paths.iter().any(|p| path.contains(&p.path));
        failed.iter().find(|(path, _)| concerns(path)).map(|(path, reason)| (path, reason.as_str()))
    }

    /// What a sandboxed server cannot be given without showing it something protected, too.
    #[must_use]
    pub fn uncovers(
        &self,
        sandbox: Option<&CanonicalPath>,
        writes: FileWrites,
        protected: &Protected,
    ) -> Option<Denial> {
        let opens =
            || self.opens(sandbox, writes, protected).map(|(folder, inside)| opens_too_much(&folder, inside));
        self.exposes(protected.paths()).map(exposes).or_else(opens)
    }

    /// A folder that holds a protected path cannot be shown without showing that too.
    fn exposes<'a>(&self, protected: &'a [CanonicalPath]) -> Option<(&CanonicalPath, &'a CanonicalPath)> {
        let is_folder = |p: &&FoundPath| Target::from(p.target) == Target::Folder;
        self.paths.iter().filter(is_folder).map(|p| &p.path).find_map(|folder| {
            let inside = protected.iter().find(|p| folder.strictly_contains(p) && p.as_path().exists())?;
            Some((folder, inside))
        })
    }

    /// To make or remove a name its folder must be open for the server, and with it whatever lies there.
    fn opens<'a>(
        &self,
        sandbox: Option<&CanonicalPath>,
        writes: FileWrites,
        protected: &'a Protected,
    ) -> Option<(CanonicalPath, &'a CanonicalPath)> {
        let open = self.needs(sandbox, writes).into_iter().filter(|n| n.writable).map(|n| n.path);
        open.into_iter().find_map(|folder| {
            // What does not exist yet could be made there.
            // To change what is kept itself is refused by the judge, who says why.
            let masked = protected.masked_in(&folder);
            let kept = protected.kept().iter().map(|kept| &kept.path);
            let kept = kept.filter(|p| folder.strictly_contains(p) && !masked.contains(p));
            let inside = protected.paths().iter().filter(|p| folder.contains(p)).chain(kept).next()?;
            Some((folder, inside))
        })
    }

    /// What the kernel must show for the whole call, beside the session sandbox.
    #[must_use]
    pub fn needs(&self, sandbox: Option<&CanonicalPath>, writes: FileWrites) -> Vec<Need> {
        let is_inside = |path: &CanonicalPath| sandbox.is_some_and(|sandbox| sandbox.contains(path));
        let paths = self.call.paths().filter(|(_, _, path)| !is_inside(path));
        let needs = paths.filter_map(|(role, argument, path)| {
            let value = self.paths.iter().find(|p| p.argument == argument && p.path == *path)?;
            need(role.access()?, path, value.target, writes, nearest_folder(path))
        });
        crate::mounts::united(needs)
    }

    /// What of an escalation is a path.
    pub(crate) fn wanted(&self, asked: &[Asked], writes: FileWrites) -> Vec<Wanted> {
        asked.iter().filter_map(|asked| self.wanted_path(asked, writes)).collect()
    }

    fn wanted_path(&self, asked: &Asked, writes: FileWrites) -> Option<Wanted> {
        let Subject::Path(path) = &asked.subject else { return None };
        let access: Access = asked.role?.access()?;
        let value = self.paths.iter().find(|p| *p.argument == *asked.argument && p.path == *path)?;
        let need = need(access, path, value.target, writes, nearest_folder(path));
        Some(Wanted { access, path: path.clone(), target: value.target.into(), need })
    }
}

fn opens_too_much(folder: &CanonicalPath, inside: &CanonicalPath) -> Denial {
    let reason = format!(
        "to make or remove a name in `{folder}` the whole folder must be open for the server, and it holds the protected `{inside}`; choose a folder in it"
    );
    Denial::protected(reason)
}

fn exposes((folder, inside): (&CanonicalPath, &CanonicalPath)) -> Denial {
    let reason = format!(
        "`{folder}` cannot be opened as a whole, because it holds the protected `{inside}`; name a folder or file in it"
    );
    Denial::protected(reason)
}

/// The nearest folder above a path that exists.
fn nearest_folder(path: &CanonicalPath) -> Option<CanonicalPath> {
    let mut above = path.parent();
    while let Some(folder) = above {
        if folder.as_path().is_dir() {
            return Some(folder);
        }
        above = folder.parent();
    }
    None
}
