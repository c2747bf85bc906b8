//! Replays work sessions, modelled on real ones, which `tests/work` stores as lists of calls.
//!
//! - Compares the number of questions from IronCurtain with two alternatives: asking about every call that leaves the
//!   session folder, and the existing system.
//! - Checks that every call that no earlier answer covers requires approval.
//! - The user allows everything that the work needs, for the session, with the widest project or folder offered.
//! - The existing system asks about each escalation, but only once for the same tool with the same folder, host or
//!   account.

use crate::client::Client;
use crate::hostile;
use crate::scripted_user::Next;
use crate::test_home::Prepared;
use crate::world::World;
use ironcurtain_consent::Reach;
use ironcurtain_policy::defaults;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Work {
    about: String,
    projects: Vec<String>,
    files: BTreeMap<String, String>,
    calls: Vec<Call>,
    /// Calls that no earlier answer covers and that must be refused.
    refused: Vec<Call>,
}

#[derive(Deserialize, Debug)]
struct Call {
    server: String,
    tool: String,
    arguments: Map<String, Value>,
}

/// Number of questions in a session.
#[derive(Debug)]
struct Questions {
    calls: usize,
    ours: usize,
    everything: usize,
    existing: usize,
}

/// Kind of access to a path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Does {
    Reads,
    Writes,
    Removes,
}

fn read(name: &str) -> Work {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/work").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Configures the filesystem server and servers for an issue tracker, the web, a memory, a clock and reasoning.
fn install(prepared: &Prepared, work: &Work) {
    let shut = json!({ "command": hostile::program() });
    let on_the_net =
        |network: Value| json!({ "command": hostile::program(), "sandbox": { "network": network } });
    let servers = json!({
        "filesystem": { "command": "ironcurtain-filesystem" },
        "memory": shut, "clock": shut, "thinking": shut,
        "github": on_the_net(json!({ "allowedDomains": ["api.github.com"] })),
        "fetch": on_the_net(json!({ "allowedDomains": [], "askUnknown": true })),
    });
    std::fs::write(prepared.home.config.join("mcp-servers.json"), servers.to_string()).unwrap();
    let mut annotations: Value = serde_json::from_str(defaults::ANNOTATIONS_JSON).unwrap();
    for call in work.calls.iter().chain(&work.refused).filter(|call| call.server != "filesystem") {
        let role = |name: &str| match (call.server.as_str(), name) {
            ("github", "owner") => "github-owner",
            ("github", "repo") => "github-repo",
            ("fetch", "url") => "fetch-url",
            _ => "none",
        };
        let server = &mut annotations["servers"][&call.server];
        if server.is_null() {
            *server = json!({ "tools": [] });
        }
        let tools = server["tools"].as_array_mut().unwrap();
        let at = tools.iter().position(|tool| tool["toolName"] == call.tool.as_str()).unwrap_or(tools.len());
        if at == tools.len() {
            tools.push(json!({ "toolName": call.tool, "serverName": call.server, "args": {} }));
        }
        for name in call.arguments.keys() {
            tools[at]["args"][name] = json!([role(name)]);
        }
    }
    std::fs::write(prepared.home.policy().join("tool-annotations.json"), annotations.to_string()).unwrap();
    for (name, content) in &work.files {
        let path = prepared.home.user_home.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

impl Call {
    /// Returns the paths in the call with the kind of access to each, derived from the tool's description.
    fn paths(&self, home: &Path) -> Vec<(PathBuf, Does)> {
        let at = |name: &str| {
            let one = |value: &Value| {
                let text = value.as_str().unwrap();
                text.strip_prefix("~/").map_or_else(|| PathBuf::from(text), |below| home.join(below))
            };
            match self.arguments.get(name) {
                None => Vec::new(),
                Some(Value::Array(all)) => all.iter().map(one).collect(),
                Some(value) => vec![one(value)],
            }
        };
        let of =
            |name: &str, does: Does| at(name).into_iter().map(move |path| (path, does)).collect::<Vec<_>>();
        match (self.server.as_str(), self.tool.as_str()) {
            ("filesystem", "move_file") => {
                [of("source", Does::Removes), of("source", Does::Reads), of("destination", Does::Writes)]
                    .concat()
            }
            ("filesystem", "write_file" | "create_directory") => of("path", Does::Writes),
            ("filesystem", "edit_file") => [of("path", Does::Reads), of("path", Does::Writes)].concat(),
            ("filesystem", _) => [of("path", Does::Reads), of("paths", Does::Reads)].concat(),
            _ => Vec::new(),
        }
    }

    /// Returns the folders, hosts or accounts for which the existing system asks only once for this tool.
    fn places(&self, home: &Path) -> Vec<String> {
        let folder = |path: &Path| match path.is_dir() {
            true => path.display().to_string(),
            false => path.parent().unwrap().display().to_string(),
        };
        let paths: Vec<String> = self.paths(home).iter().map(|(path, _)| folder(path)).collect();
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        match self.server.as_str() {
            "filesystem" => paths,
            "fetch" => vec![text("url").split('/').nth(2).unwrap_or_default().to_owned()],
            "github" => vec![format!("{}/{}", text("owner"), text("repo"))],
            _ => vec![String::new()],
        }
    }

    /// Returns the folders that contain the call's paths. A folder counts as its own folder.
    fn folders(&self, home: &Path) -> Vec<(PathBuf, Does)> {
        let folder = |(path, does): (PathBuf, Does)| {
            let is_inside = path.is_dir() && does != Does::Removes;
            (if is_inside { path } else { path.parent().unwrap().to_owned() }, does)
        };
        self.paths(home).into_iter().map(folder).collect()
    }

    /// Returns the resource that an approval must name if the call has no path.
    fn subject(&self) -> Option<String> {
        let text = |name: &str| self.arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        match self.server.as_str() {
            "fetch" => text("url").split('/').nth(2).map(str::to_owned),
            "github" => Some(format!("{} in {}/{}", self.tool, text("owner"), text("repo"))),
            _ => None,
        }
    }
}

/// Folders and resources that the user has allowed, recorded independently of IronCurtain.
#[derive(Default)]
struct Answers {
    folders: Vec<(PathBuf, BTreeSet<Does>)>,
    subjects: BTreeSet<String>,
}

impl Answers {
    fn cover(&self, call: &Call, home: &Path) -> bool {
        let is_open = |(path, does): &(PathBuf, Does)| {
            self.folders.iter().any(|(folder, open)| path.starts_with(folder) && open.contains(does))
        };
        // Calls to a sandboxed server that name no resource need no answer.
        let shut = ["memory", "clock", "thinking"].contains(&call.server.as_str());
        let named = call.subject().is_some_and(|subject| self.subjects.contains(&subject));
        let paths = call.paths(home);
        shut || named || (!paths.is_empty() && paths.iter().all(is_open))
    }

    /// Records the user's answer. `folders` are the folders of the call's paths before the call.
    fn record_answer(
        &mut self,
        call: &Call,
        folders: Vec<(PathBuf, Does)>,
        reach: Reach,
        work: &Work,
        home: &Path,
    ) {
        let paths = call.paths(home);
        let asked: BTreeSet<Does> = paths.iter().map(|(_, does)| *does).collect();
        let project = || {
            let all = work.projects.iter().map(|project| home.join(project.trim_start_matches("~/")));
            all.into_iter().find(|project| paths.iter().all(|(path, _)| path.starts_with(project))).unwrap()
        };
        match reach {
            Reach::ProjectToRead => self.folders.push((project(), [Does::Reads].into())),
            Reach::ProjectToChange => {
                let both = [Does::Reads, Does::Writes].into_iter().chain(asked).collect();
                self.folders.push((project(), both));
            }
            Reach::OpenFolderToChange => {
                let is_around = |(folder, open): &&(PathBuf, BTreeSet<Does>)| {
                    open.contains(&Does::Reads) && paths.iter().all(|(path, _)| path.starts_with(folder))
                };
                // The user remembers having allowed reading in this folder.
                let (folder, _) = self.folders.iter().find(is_around).unwrap().clone();
                let both = [Does::Reads, Does::Writes].into_iter().chain(asked).collect();
                self.folders.push((folder, both));
            }
            Reach::Folders => {
                self.folders.extend(folders.into_iter().map(|(folder, does)| (folder, [does].into())));
            }
            Reach::Host
            | Reach::Tool
            | Reach::AnyUse
            | Reach::ReadingTools
            | Reach::AllTools
            | Reach::Request
            | Reach::NewDefinition
            | Reach::OldDefinition
            | Reach::NoDefinition => drop(self.subjects.insert(call.subject().unwrap())),
            Reach::Paths => {}
        }
    }
}

/// Offers from widest to narrowest, in the order preferred by a user who wants the work done.
const WIDEST: [Reach; 6] = [
    Reach::ProjectToChange,
    Reach::OpenFolderToChange,
    Reach::Folders,
    Reach::Host,
    Reach::Tool,
    Reach::Paths,
];
/// The same order for read-only access.
const TO_READ: [Reach; 4] = [Reach::ProjectToRead, Reach::Folders, Reach::Host, Reach::Tool];

fn run(name: &str) -> Questions {
    let work = read(name);
    let world = World::with(|prepared| install(prepared, &work));
    let home = world.home.user_home.clone();
    let mut clients: BTreeMap<String, Client> = BTreeMap::new();
    let (mut answers, mut existing) = (Answers::default(), BTreeSet::new());
    // No call uses the session folder.
    let all = work.calls.len();
    let mut questions = Questions { calls: all, ours: 0, everything: all, existing: 0 };
    for call in &work.calls {
        let client = clients.entry(call.server.clone()).or_insert_with(|| world.connect(&call.server));
        // Computed before the call, which may create or move the paths that it names.
        let (places, covered) = (call.places(&home), answers.cover(call, &home));
        let folders = call.folders(&home);
        let reads = call.paths(&home).iter().all(|(_, does)| *does == Does::Reads);
        let choice: &[Reach] = if reads { &TO_READ } else { &WIDEST };
        world.user.will(Next::AllowFirst(choice.to_vec()));
        let outcome = client.call(&call.tool, Value::Object(call.arguments.clone()));
        let asked = world.user.asked();
        world.user.forget();
        assert!(!outcome.text.starts_with("DENIED"), "{name}: {call:?}: {}", outcome.text);
        assert!(asked.len() <= 1, "{name}: {call:?} asked {} times", asked.len());
        match asked.first() {
            None => assert!(covered, "{name}: no answer covers {call:?}"),
            Some(question) => {
                questions.ours += 1;
                let has = |reach: &&Reach| question.offers.iter().any(|offer| offer.reach == **reach);
                let taken = *choice.iter().find(has).expect("something is offered for longer than one call");
                answers.record_answer(call, folders, taken, &work, &home);
            }
        }
        let keys = places.into_iter().map(|place| (call.server.clone(), call.tool.clone(), place));
        if keys.filter(|key| existing.insert(key.clone())).count() > 0 {
            questions.existing += 1;
        }
    }
    for call in &work.refused {
        let client = clients.entry(call.server.clone()).or_insert_with(|| world.connect(&call.server));
        client.call(&call.tool, Value::Object(call.arguments.clone())).refused("the user denied this call");
        assert_eq!(world.user.asked().len(), 1, "{name}: {call:?} was not asked about");
    }
    // Shown with `--nocapture`. `docs/reference/policy.md` contains the figures.
    let _ = writeln!(std::io::stderr(), "{}\n  {questions:?}", work.about);
    questions
}

#[test]
fn work_sessions_ask_few_questions_and_do_nothing_unapproved() {
    let all: Vec<Questions> = ["coding.json", "downloads.json", "research.json"].map(run).into();
    assert_eq!(all.iter().map(|of| of.calls).collect::<Vec<_>>(), [150, 60, 80]);
    assert!(all.iter().all(|of| of.existing < of.everything), "{all:?}");
    assert!(all.iter().all(|of| of.ours * 5 <= of.existing), "{all:?}");
    // A user can be expected to read this many questions.
    assert!(all.iter().all(|of| of.ours <= 10), "{all:?}");
}
