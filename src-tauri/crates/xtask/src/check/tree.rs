//! Parses a crate's source into a tree of modules with the tokens of each file.
//!
//! - Only code that is compiled outside tests is included. Items under `#[cfg(test)]` and their files are skipped.
//! - Module files must be at the default paths. `#[path]` is not supported.

mod imports;
mod words;

pub(crate) use words::{TokenKind, Word};

use crate::parts;
use anyhow::{Context, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Path of a module from the crate root, whose own path is empty.
pub(crate) type ModulePath = Vec<String>;

/// Program or library of the workspace.
#[derive(Debug)]
pub(crate) struct Tree {
    /// Name of the package, or of the program if the package has several.
    pub(crate) name: String,
    modules: BTreeMap<ModulePath, Module>,
}

/// Module in its own file, or inline in its parent's.
#[derive(Debug)]
struct Module {
    file: PathBuf,
    words: Vec<Word>,
    imports: Vec<imports::Import>,
}

/// Module or item that a path refers to.
#[derive(Debug)]
struct Target {
    module: ModulePath,
    /// `true` if the target is the module itself.
    whole: bool,
}

/// Import between modules: `from` uses an item of `to`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Arrow {
    pub(crate) from: ModulePath,
    pub(crate) to: ModulePath,
    /// File and line of the first such import.
    pub(crate) seen: String,
}

impl Tree {
    /// Parses the crate with this root file.
    pub(crate) fn read(name: &str, root: &Path) -> anyhow::Result<Self> {
        let mut tree = Self { name: name.to_owned(), modules: BTreeMap::new() };
        let folder = root.parent().context("the crate's root file has no parent folder")?;
        tree.add_file(Vec::new(), root, folder)?;
        Ok(tree)
    }

    /// Returns the names of the crate's top-level modules.
    pub(crate) fn rooms(&self) -> impl Iterator<Item = &str> {
        self.modules.keys().filter_map(|path| match path.as_slice() {
            [room] => Some(room.as_str()),
            _ => None,
        })
    }

    /// Returns the paths of all modules.
    pub(crate) fn module_paths(&self) -> impl Iterator<Item = &ModulePath> {
        self.modules.keys()
    }

    /// Returns all `pub` types, even those in private modules, with their module's path.
    pub(crate) fn public_types(&self) -> impl Iterator<Item = (&str, String)> {
        self.modules.iter().flat_map(|(path, module)| {
            let at: String = path.iter().map(|name| format!("::{name}")).collect();
            words::public_types(&module.words).into_iter().map(move |name| (name, at.clone()))
        })
    }

    /// Returns the tokens of all modules, with the modules' files.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&Path, &[Word])> {
        self.modules.values().map(|module| (module.file.as_path(), module.words.as_slice()))
    }

    /// Returns the imports between modules of this crate, one per pair of modules.
    pub(crate) fn arrows(&self) -> Vec<Arrow> {
        let mut arrows: BTreeMap<(&ModulePath, ModulePath), usize> = BTreeMap::new();
        for (path, module) in &self.modules {
            for (to, line) in self.named_in(path, module) {
                if to != *path {
                    arrows.entry((path, to)).or_insert(line);
                }
            }
        }
        let root = parts::root();
        let arrow = |((from, to), line): ((&ModulePath, ModulePath), usize)| {
            let file = self.modules.get(from).map(|module| module.file.as_path()).unwrap_or(&root);
            let file = file.strip_prefix(&root).unwrap_or(file);
            Arrow { from: from.clone(), to, seen: format!("{}:{line}", file.display()) }
        };
        arrows.into_iter().map(arrow).collect()
    }

    /// Adds the module at `path`, whose children's files are in `folder`.
    fn add_file(&mut self, path: ModulePath, file: &Path, folder: &Path) -> anyhow::Result<()> {
        let text =
            std::fs::read_to_string(file).with_context(|| format!("failed to read `{}`", file.display()))?;
        let words = words::outside_tests(&text).with_context(|| file.display().to_string())?;
        self.add_words(path, file, folder, words)
    }

    fn add_words(
        &mut self,
        path: ModulePath,
        file: &Path,
        folder: &Path,
        words: Vec<Word>,
    ) -> anyhow::Result<()> {
        let (words, children) = words::without_modules(words);
        let imports = imports::read(&words);
        self.modules.insert(path.clone(), Module { file: file.into(), words, imports });
        for child in children {
            let path = [path.as_slice(), std::slice::from_ref(&child.name)].concat();
            let within = folder.join(&child.name);
            if let Some(words) = child.words {
                self.add_words(path, file, &within, words)?;
                continue;
            }
            let files = [folder.join(format!("{}.rs", child.name)), within.join("mod.rs")];
            let Some(file) = files.iter().find(|file| file.is_file()) else {
                bail!("`{}` has no file for `mod {}`", file.display(), child.name);
            };
            self.add_file(path, file, &within)?;
        }
        Ok(())
    }

    /// Returns the modules whose items a module uses, each with the line of the use.
    ///
    /// Re-exports (`pub use child::Thing`) are ignored, because a module that uses one imports the module that defines
    /// the item.
    fn named_in(&self, path: &[String], module: &Module) -> BTreeSet<(ModulePath, usize)> {
        let mut named = BTreeSet::new();
        for import in &module.imports {
            let passed_on = import.public && !words::has_ident(&module.words, &import.name);
            let target = self.defining(path, &import.path, &mut Vec::new());
            // An imported module is counted when a path uses one of its items.
            let used = target.filter(|target| !passed_on && (!target.whole || import.name == "*"));
            named.extend(used.map(|target| (target.module, import.line)));
        }
        for (segments, line) in words::paths(&module.words) {
            let target = self.defining(path, &segments, &mut Vec::new());
            named.extend(target.map(|target| (target.module, line)));
        }
        named
    }

    /// Returns the module of this crate that defines the item at a path, as seen from the module `from`.
    fn defining(&self, from: &[String], segments: &[String], asked: &mut Vec<ModulePath>) -> Option<Target> {
        let whole = [from, &["::".to_owned()], segments].concat();
        if asked.contains(&whole) {
            return None;
        }
        asked.push(whole);
        let (first, rest) = segments.split_first()?;
        match first.as_str() {
            "crate" => self.below(Vec::new(), rest, asked),
            "self" => self.below(from.to_vec(), rest, asked),
            "super" => self.below(from.split_last()?.1.to_vec(), rest, asked),
            // A single segment may be a local name, whereas `use` and longer paths are unambiguous.
            _ if segments.len() == 1 => None,
            _ => {
                let child = [from, std::slice::from_ref(first)].concat();
                if self.modules.contains_key(&child) {
                    return self.below(child, rest, asked);
                }
                self.imported(from, first, rest, asked)
            }
        }
    }

    /// Resolves the path `segments` relative to the module `at`.
    fn below(&self, at: ModulePath, segments: &[String], asked: &mut Vec<ModulePath>) -> Option<Target> {
        let module = self.modules.get(&at)?;
        let Some((first, rest)) = segments.split_first() else {
            return Some(Target { module: at, whole: true });
        };
        if first == "super" {
            return self.below(at.split_last()?.1.to_vec(), rest, asked);
        }
        let child = [at.as_slice(), std::slice::from_ref(first)].concat();
        if self.modules.contains_key(&child) {
            return self.below(child, rest, asked);
        }
        if words::defines(&module.words, first) {
            return Some(Target { module: at, whole: false });
        }
        let passed_on = module.imports.iter().any(|import| import.name == *first);
        if passed_on {
            return self.imported(&at, first, rest, asked);
        }
        let stars = module.imports.iter().filter(|import| import.name == "*");
        for star in stars {
            let path = [star.path.as_slice(), segments].concat();
            if let Some(found) = self.defining(&at, &path, asked) {
                return Some(found);
            }
        }
        // The name may be defined by a macro.
        Some(Target { module: at, whole: false })
    }

    /// Resolves a name that a `use` in the module `at` introduces.
    fn imported(
        &self,
        at: &[String],
        name: &str,
        rest: &[String],
        asked: &mut Vec<ModulePath>,
    ) -> Option<Target> {
        let import = self.modules.get(at)?.imports.iter().find(|import| import.name == name)?;
        if import.path.first().is_some_and(|first| first == name) {
            // The path refers to another crate, as in `use serde::{self, ...}`.
            return None;
        }
        self.defining(at, &[import.path.as_slice(), rest].concat(), asked)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Creates a crate from these files, the first of which is its root.
    pub(crate) fn small(files: &[(&str, &str)]) -> Tree {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let file = folder.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        Tree::read("small", &folder.path().join(files[0].0)).unwrap()
    }

    fn arrows(files: &[(&str, &str)]) -> Vec<String> {
        let shown = |arrow: Arrow| {
            let line = arrow.seen.rsplit(':').next().unwrap().to_owned();
            format!("{} -> {} in line {line}", arrow.from.join("::"), arrow.to.join("::"))
        };
        small(files).arrows().into_iter().map(shown).collect()
    }

    #[test]
    fn naming_an_item_imports_its_defining_module() {
        let files = [
            ("main.rs", "mod a; mod b;\nuse b::Thing;\nfn main() { a::run(Thing) }"),
            (
                "a.rs",
                "use crate::b::{self, Thing};\nuse std::fs::File;\npub fn run(thing: Thing) { b::inner::go() }",
            ),
            ("b/mod.rs", "pub mod inner;\npub(crate) use inner::Thing;"),
            ("b/inner.rs", "use serde::{self, Value};\npub struct Thing; pub fn go() { serde::x() }"),
        ];
        let expected = [" -> a in line 3", " -> b::inner in line 2", "a -> b::inner in line 1"];
        assert_eq!(arrows(&files), expected);
    }

    #[test]
    fn reexport_that_is_used_is_an_import() {
        let used = [
            ("lib.rs", "mod a;"),
            ("a.rs", "mod c; pub use c::C;\npub fn f() -> C { C }"),
            ("a/c.rs", "pub struct C;"),
        ];
        assert_eq!(arrows(&used), ["a -> a::c in line 1"]);
        let stars = [
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod c; pub use c::*;"),
            ("a/c.rs", "pub struct C;"),
            ("b.rs", "use crate::a::C;"),
        ];
        assert_eq!(arrows(&stars), ["b -> a::c in line 1"]);
    }

    #[test]
    fn missing_module_file_is_reported() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("lib.rs");
        std::fs::write(&root, "mod lost;").unwrap();
        let problem = Tree::read("small", &root).unwrap_err().to_string();
        assert_eq!(problem, format!("`{}` has no file for `mod lost`", root.display()));
    }
}
