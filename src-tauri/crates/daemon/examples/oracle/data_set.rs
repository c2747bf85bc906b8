//! Files and folders that requests refer to, with caches.

use crate::{recorded, text};
use anyhow::Context;
use ironcurtain_containment::{absolute, expand_home};
use ironcurtain_paths::{CanonicalPath, PathError, Resolver};
use ironcurtain_policy::{Annotations, DynamicLists, Policy, WithinError};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Data folder, home directory and working directory.
pub struct DataSet {
    data: PathBuf,
    pub home: CanonicalPath,
    pub working_dir: CanonicalPath,
    policies: Cache<Policy>,
    annotations: Cache<Annotations>,
    /// Parsed annotation files.
    files: Cache<Value>,
}

/// Cache of parsed files. The key is the file's name, or its content if the request contains it.
type Cache<T> = RefCell<HashMap<String, Rc<T>>>;

fn cached<T>(
    all: &Cache<T>,
    named: String,
    read: impl FnOnce() -> anyhow::Result<T>,
) -> anyhow::Result<Rc<T>> {
    if let Some(found) = all.borrow().get(&named) {
        return Ok(found.clone());
    }
    let read = Rc::new(read()?);
    all.borrow_mut().insert(named, read.clone());
    Ok(read)
}

impl DataSet {
    pub fn new(data: PathBuf) -> anyhow::Result<Self> {
        let home = std::env::var("HOME").context("`HOME` is not set")?;
        let working_dir = std::env::current_dir()?.canonicalize()?;
        let working_dir =
            CanonicalPath::assume_canonical(working_dir.to_str().context("this folder is not UTF-8")?)?;
        let home = CanonicalPath::assume_canonical(&home)?;
        Ok(Self {
            data,
            home,
            working_dir,
            policies: Cache::default(),
            annotations: Cache::default(),
            files: Cache::default(),
        })
    }

    /// Returns a resolver that resolves relative paths against `base`.
    pub fn resolver(&self, base: &CanonicalPath) -> Resolver {
        Resolver::new(self.home.clone(), base.clone())
    }

    /// Resolves a path relative to the working directory. If the path contains a symlink loop, leaves the rest
    /// unresolved.
    pub fn resolve(&self, raw: &str) -> anyhow::Result<CanonicalPath> {
        Ok(self.resolve_from(&self.working_dir, raw)?)
    }

    /// Resolves a path relative to `base`.
    ///
    /// Accepts forms that a real call rejects, as the other implementation does: an empty path means `base`, and
    /// `~name` is a file name.
    pub fn resolve_from(&self, base: &CanonicalPath, raw: &str) -> Result<CanonicalPath, PathError> {
        let found = match self.resolver(base).locate(raw) {
            Err(PathError::Empty) => return Ok(base.clone()),
            Err(PathError::OtherHome(_)) => self.resolver(&self.working_dir).locate(&format!("./{raw}")),
            found => found,
        };
        match found {
            Err(PathError::TooManyLinks(why)) => {
                self.resolve_before_loop(base, raw).ok_or(PathError::TooManyLinks(why))
            }
            found => found,
        }
    }

    /// Resolves the longest possible part of a path and appends the rest unchanged.
    fn resolve_before_loop(&self, base: &CanonicalPath, raw: &str) -> Option<CanonicalPath> {
        let absolute_path = absolute(&expand_home(raw, self.home.as_path()), base.as_path());
        let absolute_path = PathBuf::from(absolute(".", Path::new(&absolute_path)));
        absolute_path.ancestors().skip(1).find_map(|folder| {
            let found = self.resolver(base).locate(folder.to_str()?).ok()?;
            let rest = absolute_path.strip_prefix(folder).ok()?;
            found.join(rest.to_str()?).ok()
        })
    }

    /// Returns the session folder that a request specifies, or `None`.
    pub fn sandbox(&self, request: &Value) -> anyhow::Result<Option<CanonicalPath>> {
        request.get("allowedDirectory").and_then(Value::as_str).map(|raw| self.resolve(raw)).transpose()
    }

    /// Returns the policy that a request specifies. If it specifies no lists file, all lists are empty.
    pub fn policy(&self, request: &Value) -> anyhow::Result<Rc<Policy>> {
        let policy = request.get("policy").context("`policy` is missing")?;
        let lists = request.get("lists").filter(|lists| !lists.is_null());
        cached(&self.policies, format!("{policy} {}", lists.unwrap_or(&Value::Null)), || {
            let policy = self.content("policies", policy)?;
            let lists = match lists {
                None => recorded::with_empty_lists(&serde_json::from_str(&policy)?, None).to_string(),
                Some(lists) => self.content("lists", lists)?,
            };
            let lists = DynamicLists::from_json(&lists, "lists")?;
            let within = |raw: &str| self.resolve(raw).map_err(WithinError::from);
            Ok(Policy::from_json(&policy, "policy", &within, &lists)?)
        })
    }

    pub fn annotations(&self, request: &Value) -> anyhow::Result<Rc<Annotations>> {
        let named = request.get("annotations").context("`annotations` is missing")?;
        cached(&self.annotations, named.to_string(), || {
            Ok(Annotations::from_json(&self.content("annotations", named)?, "annotations")?)
        })
    }

    /// Returns the annotations that a request specifies, extended so that the tool accepts all arguments of the
    /// recorded call.
    pub fn annotations_accepting(&self, request: &Value) -> anyhow::Result<Annotations> {
        let named = request.get("annotations").context("`annotations` is missing")?;
        let (server, tool, arguments) = call(request)?;
        let file = cached(&self.files, named.to_string(), || {
            Ok(serde_json::from_str(&self.content("annotations", named)?)?)
        })?;
        let taking = recorded::taking(&file, server, tool, arguments).to_string();
        Ok(Annotations::from_json(&taking, "annotations")?)
    }

    /// Returns the content of a data file. If the request contains the content itself, returns it unchanged.
    fn content(&self, folder: &str, named: &Value) -> anyhow::Result<String> {
        let Some(name) = named.as_str() else { return Ok(named.to_string()) };
        let file = self.data.join(folder).join(format!("{name}.json"));
        std::fs::read_to_string(&file).with_context(|| format!("failed to read `{}`", file.display()))
    }
}

/// Returns the server name, tool name and arguments of the call in a request.
pub fn call(request: &Value) -> anyhow::Result<(&str, &str, &serde_json::Map<String, Value>)> {
    let call = request.get("request").context("`request` is missing")?;
    let arguments = call.get("arguments").and_then(Value::as_object).context("`arguments` is missing")?;
    Ok((text(call, "serverName")?, text(call, "toolName")?, arguments))
}
