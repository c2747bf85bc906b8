//! From a client's `tools/call` to a call that can be judged, and what the kernel must show for it.

use crate::consent::{Target, Wanted};
use crate::law::Law;
use crate::mounts::{FileWrites, Need, need};
use crate::wire::{Fields, NoDoubles};
use ironcurtain_paths::{CanonicalPath, Resolver};
use ironcurtain_policy::{Access, Asked, Denial, Fact, ResolvedCall, Subject};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The parameters of a `tools/call`.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) tool: String,
    pub(super) arguments: Arc<Map<String, Value>>,
    params: Fields,
    raw_arguments: Fields,
}

/// A call whose paths are canonical as of now.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) call: ResolvedCall,
    paths: Vec<PathValue>,
}

/// One path value: what the client wrote, and where it leads.
#[derive(Debug)]
struct PathValue {
    argument: String,
    raw: String,
    path: CanonicalPath,
    target: Target,
}

impl ToolCall {
    /// Reads the parameters; the error is for the client.
    pub(super) fn read(params: Option<&RawValue>) -> Result<Self, String> {
        let params: Fields = parse(params.ok_or("`params` is missing")?, "params")?;
        let tool = params.get("name").ok_or("`params.name` is missing")?;
        let tool: String = parse(tool, "params.name")?;
        let raw_arguments: Fields = match params.get("arguments") {
            None => Fields::default(),
            Some(raw) if raw.get() == "null" => Fields::default(),
            Some(raw) => parse(raw, "params.arguments")?,
        };
        let mut arguments = Map::new();
        for (name, raw) in raw_arguments.iter() {
            let NoDoubles = parse(raw, name)?;
            arguments.insert(name.to_owned(), parse(raw, name)?);
        }
        Ok(Self { tool, arguments: arguments.into(), params, raw_arguments })
    }

    /// Resolves every path and puts the canonical ones in place.
    pub(super) fn prepare(&self, server: &str, law: &Law, resolver: &Resolver) -> Result<Prepared, Denial> {
        let plan = law.annotations.plan(server, &self.tool, &self.arguments)?;
        let mut facts = Vec::new();
        let mut paths = Vec::new();
        for value in plan.values() {
            let (true, Some(raw)) = (value.is_path(), &value.raw) else {
                facts.push(Fact::Plain);
                continue;
            };
            let found = resolver.resolve(raw).map_err(|e| Denial::unresolvable(&value.argument, &e))?;
            if cannot_be(&found.path) {
                return Err(too_long(&value.argument));
            }
            facts.push(Fact::Path(found.path.clone()));
            paths.push(PathValue {
                argument: value.argument.to_string(),
                raw: raw.clone(),
                path: found.path,
                target: found.target.into(),
            });
        }
        Ok(Prepared { call: plan.with_facts(facts)?, paths })
    }

    /// The parameters to forward: what was judged is what is sent, and everything else is as the client wrote it.
    pub(super) fn forwarded(&self, call: &ResolvedCall) -> Result<Box<RawValue>, serde_json::Error> {
        let mut arguments = self.raw_arguments.clone();
        for (name, value) in call.transport_arguments() {
            if self.arguments.get(name) != Some(value) {
                arguments.set(name, to_raw_value(value)?);
            }
        }
        let mut params = self.params.clone();
        params.set("arguments", to_raw_value(&arguments)?);
        to_raw_value(&params)
    }
}

impl Prepared {
    /// Every canonical path of the call, once.
    pub(super) fn paths(&self) -> Vec<String> {
        let mut all: Vec<String> = self.paths.iter().map(|p| p.path.as_str().to_owned()).collect();
        all.dedup();
        all
    }

    /// The first path of the call that is in a map, or lies below one that is.
    pub(super) fn first_of<'a>(
        &self,
        failed: &'a BTreeMap<CanonicalPath, String>,
    ) -> Option<(&'a CanonicalPath, &'a str)> {
        let concerns = |path: &CanonicalPath| self.paths.iter().any(|p| path.contains(&p.path));
        failed.iter().find(|(path, _)| concerns(path)).map(|(path, reason)| (path, reason.as_str()))
    }

    /// A folder that holds a protected path cannot be shown without showing that too.
    pub(super) fn exposes<'a>(
        &self,
        protected: &'a [CanonicalPath],
    ) -> Option<(&CanonicalPath, &'a CanonicalPath)> {
        let folders = self.paths.iter().filter(|p| p.target == Target::Folder).map(|p| &p.path);
        folders.into_iter().find_map(|folder| {
            let inside = protected.iter().find(|p| folder.strictly_contains(p) && p.as_path().exists())?;
            Some((folder, inside))
        })
    }

    /// To make or remove a name its folder must be open for the server, and with it whatever lies there.
    pub(super) fn opens<'a>(
        &self,
        sandbox: &CanonicalPath,
        writes: FileWrites,
        protected: &'a [CanonicalPath],
    ) -> Option<(CanonicalPath, &'a CanonicalPath)> {
        let open = self.needs(sandbox, writes).into_iter().filter(|n| n.writable).map(|n| n.path);
        open.into_iter().find_map(|folder| {
            // What does not exist yet could be made there.
            let inside = protected.iter().find(|p| folder.contains(p))?;
            Some((folder, inside))
        })
    }

    /// What the kernel must show for the whole call, beside the session sandbox.
    pub(super) fn needs(&self, sandbox: &CanonicalPath, writes: FileWrites) -> Vec<Need> {
        let paths = self.call.paths().filter(|(_, _, path)| !sandbox.contains(path));
        let needs = paths.filter_map(|(role, argument, path)| {
            let value = self.paths.iter().find(|p| p.argument == argument && p.path == *path)?;
            need(role.access()?, path, value.target, writes, nearest_folder(path))
        });
        crate::mounts::united(needs)
    }

    /// What of an escalation is a path, with what the client wrote for it.
    pub(super) fn wanted(&self, asked: &[Asked], writes: FileWrites) -> Vec<(Wanted, String)> {
        asked.iter().filter_map(|asked| self.wanted_path(asked, writes)).collect()
    }

    fn wanted_path(&self, asked: &Asked, writes: FileWrites) -> Option<(Wanted, String)> {
        let Subject::Path(path) = &asked.subject else { return None };
        let access: Access = asked.role?.access()?;
        let value = self.paths.iter().find(|p| asked.argument == *p.argument && p.path == *path)?;
        let need = need(access, path, value.target, writes, nearest_folder(path));
        Some((Wanted { access, path: path.clone(), target: value.target, need }, value.raw.clone()))
    }
}

/// Whether a path is longer than Linux allows (`NAME_MAX`, `PATH_MAX`): nobody needs to be asked about it.
fn cannot_be(path: &CanonicalPath) -> bool {
    path.as_str().len() > 4095 || path.components().any(|name| name.len() > 255)
}

fn too_long(argument: &str) -> Denial {
    Denial {
        rule: "structural-invalid-argument".into(),
        reason: format!("the path in `{argument}` is longer than a path can be").into(),
    }
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

fn parse<T: serde::de::DeserializeOwned>(raw: &RawValue, name: &str) -> Result<T, String> {
    serde_json::from_str(raw.get()).map_err(|e| format!("`{name}`: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::Home;

    fn world() -> (tempfile::TempDir, Law, Resolver) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("person/docs/sub")).unwrap();
        std::fs::create_dir_all(base.join("person/.ssh")).unwrap();
        std::fs::write(base.join("person/docs/a.txt"), "abc").unwrap();
        std::os::unix::fs::symlink("docs/a.txt", base.join("person/link")).unwrap();
        let home = Home::under(&base.join("ic"), &base.join("person"));
        home.prepare().unwrap();
        let law = Law::load(&home).unwrap();
        let resolver = Resolver::new(law.home.clone(), law.home.clone());
        (dir, law, resolver)
    }

    fn call(json: &str) -> ToolCall {
        ToolCall::read(Some(&RawValue::from_string(json.to_owned()).unwrap())).unwrap()
    }

    #[test]
    fn what_was_judged_is_what_is_sent_and_the_rest_is_untouched() {
        let (_dir, law, resolver) = world();
        let call = call(
            r#"{"_meta":{"progressToken":1},"name":"read_text_file","arguments":{"head":2.0,"path":"~/link"},"x":[1]}"#,
        );
        let prepared = call.prepare("filesystem", &law, &resolver).unwrap();
        let sent = call.forwarded(&prepared.call).unwrap();
        let path = law.home.join("docs/a.txt").unwrap();
        let expected = format!(
            r#"{{"_meta":{{"progressToken":1}},"name":"read_text_file","arguments":{{"head":2.0,"path":"{path}"}},"x":[1]}}"#
        );
        assert_eq!(sent.get(), expected);
        assert_eq!(prepared.paths(), [path.as_str()]);
        let sandbox = CanonicalPath::assume_canonical("/s").unwrap();
        assert_eq!(
            prepared.needs(&sandbox, FileWrites::InPlace),
            [Need { path: path.clone(), writable: false }]
        );
        assert_eq!(prepared.needs(&law.home, FileWrites::InPlace), []);
    }

    #[test]
    fn a_new_file_needs_the_nearest_folder_that_exists() {
        let (_dir, law, resolver) = world();
        let call = call(r#"{"name":"write_file","arguments":{"path":"~/docs/x/y/z","content":""}}"#);
        let prepared = call.prepare("filesystem", &law, &resolver).unwrap();
        let needs = prepared.needs(&CanonicalPath::assume_canonical("/s").unwrap(), FileWrites::InPlace);
        assert_eq!(needs, [Need { path: law.home.join("docs").unwrap(), writable: true }]);
    }

    #[test]
    fn a_new_name_beside_credentials_would_open_them() {
        let (_dir, law, resolver) = world();
        let opens = |tool: &str, path: &str| {
            let call = call(&format!(r#"{{"name":"{tool}","arguments":{{"path":"{path}","content":""}}}}"#));
            let prepared = call.prepare("filesystem", &law, &resolver).unwrap();
            let sandbox = CanonicalPath::assume_canonical("/s").unwrap();
            prepared.opens(&sandbox, FileWrites::InPlace, law.protected.paths()).map(|(folder, _)| folder)
        };
        assert_eq!(opens("write_file", "~/new.txt"), Some(law.home.clone()));
        assert_eq!(opens("write_file", "~/docs/new.txt"), None);
        assert_eq!(opens("write_file", "~/docs/a.txt"), None);
    }

    #[test]
    fn a_folder_that_holds_credentials_is_found() {
        let (_dir, law, resolver) = world();
        let exposes = |json: &str| {
            let prepared = call(json).prepare("filesystem", &law, &resolver).unwrap();
            prepared.exposes(law.protected.paths()).map(|(_, inside)| inside.clone())
        };
        let home = exposes(r#"{"name":"list_directory","arguments":{"path":"~"}}"#);
        assert_eq!(home, Some(law.home.join(".ssh").unwrap()));
        assert_eq!(exposes(r#"{"name":"list_directory","arguments":{"path":"~/docs"}}"#), None);
    }

    #[test]
    fn arguments_that_come_twice_or_are_no_object_are_refused() {
        let read =
            |json: &str| ToolCall::read(Some(&RawValue::from_string(json.to_owned()).unwrap())).unwrap_err();
        assert!(read(r#"{"name":"x","arguments":{"path":"/a","path":"/b"}}"#).contains("`path` comes twice"));
        assert!(read(r#"{"name":"x","arguments":{"e":[{"a":1,"a":2}]}}"#).contains("`a` comes twice"));
        assert!(read(r#"{"name":"x","name":"y"}"#).contains("`name` comes twice"));
        assert!(read(r#"{"name":"x","arguments":[1]}"#).starts_with("`params.arguments`: invalid type"));
        assert_eq!(read(r#"{"arguments":{}}"#), "`params.name` is missing");
    }
}
