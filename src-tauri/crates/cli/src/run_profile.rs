//! `--profile`, `--check` and `--learn` of `run`: selects a run profile, shows its access, and proposes a new profile.

use crate::screen::Screen;
use crate::text_lines::TextLines;
use anyhow::{Context, bail};
use ironcurtain_config::home::{Home, canonical_home};
use ironcurtain_config::{
    FoundProgram, LearnedAccess, PlanContext, PolicySnapshot, RunPlan, RunProfile, RunProfiles, Servers,
    propose_profile,
};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::GrantKind;
use ironcurtain_protocol::{RunProfileChoice, UsedFile};
use ironcurtain_sandbox::{check_tun, describe_missing_tun};
use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;

/// Parses the value of `--profile`, a profile name or the path of a JSON file.
pub fn choice(given: Option<&str>) -> anyhow::Result<Option<RunProfileChoice>> {
    let Some(given) = given else { return Ok(None) };
    let is_file = given.contains('/')
        || Path::new(given).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
    if !is_file {
        return Ok(Some(RunProfileChoice::Named(given.to_owned())));
    }
    let text = ironcurtain_config::read(Path::new(given))?;
    let text = text.with_context(|| format!("the run profile `{given}` does not exist"))?;
    Ok(Some(RunProfileChoice::Given { file: given.to_owned(), text }))
}

/// Selects the `plain` profile, which grants the least access.
pub fn plain_profile() -> RunProfileChoice {
    RunProfileChoice::Named(RunProfiles::PLAIN.to_owned())
}

/// Selects a run's profile.
pub fn choose_profile(
    home: &Home,
    choice: Option<&RunProfileChoice>,
    argv: &[String],
    cwd: &Path,
) -> anyhow::Result<RunProfile> {
    let user_home = canonical_home(home)?;
    let program = argv.first().and_then(|program| FoundProgram::find(program, &search_path(), cwd));
    Ok(RunProfiles::load(home)?.choose(choice, program.as_ref(), &user_home, cwd)?)
}

/// Prints the access that a run would get.
pub fn check(
    home: &Home,
    profile: RunProfile,
    argv: &[String],
    cwd: &Path,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let snapshot = PolicySnapshot::load(home, &Servers::load(home)?)?;
    let context = PlanContext {
        ours: home,
        home: &snapshot.home,
        protected: &snapshot.protected,
        cwd,
        path: &search_path(),
        argv,
        shim: &crate::servers::programs()?.join("ironcurtain-shim"),
    };
    let plan = RunPlan::new(profile, context)?;
    let folder = cwd.to_str().and_then(|cwd| CanonicalPath::assume_canonical(cwd).ok());
    let folder = folder.filter(|folder| snapshot.limits().may_be_granted(folder));
    let (open_fuse, tun) = (open_fuse(), check_tun());
    let mut out = TextLines::default();
    let title = plan.profile.title.as_deref().unwrap_or("your profile");
    let measured = plan.profile.measured.as_ref();
    let measured =
        measured.map_or_else(|| "not measured".to_owned(), |version| format!("measured with {version}"));
    out.line(format_args!("profile: {} ({title}, {measured})", plan.profile.name));
    out.line(format_args!("command: {}", plan.argv.join(" ")));
    match &folder {
        Some(folder) => out.line(format_args!("working folder: {folder}")),
        None => out.line("working folder: not granted as a whole, because it is or contains your home or something protected"),
    }
    for (what, paths) in [
        ("changes", plan.folders.iter().chain(&plan.files).collect::<Vec<_>>()),
        ("of these, logins", plan.logins.iter().collect()),
        ("reads", plan.read.iter().map(|(path, _)| path).collect()),
        ("runs programs in", plan.programs.iter().collect()),
    ] {
        paths.into_iter().for_each(|path| out.line(format_args!("{what}: {path}")));
    }
    let passed: Vec<String> = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect();
    let passed: Vec<&String> = passed.iter().filter(|name| plan.profile.passes(name)).collect();
    out.line(format_args!("variables: {}", words(&passed)));
    for (name, value) in &plan.profile.set_env {
        out.line(format_args!("variable: {name}={value}"));
    }
    out.line(format_args!("hosts: {}", words(&plan.profile.hosts)));
    match &open_fuse {
        Ok(()) => out.line("/dev/fuse works: other files are asked about"),
        Err(problem) => out.line(format_args!("! cannot open /dev/fuse, so no run can start: {problem}")),
    }
    match &tun {
        Ok(()) => {
            out.line("/dev/net/tun works: programs that ignore the proxy variables are asked about too")
        }
        Err(problem) => out.line(format_args!("! {}", describe_missing_tun(&problem.to_string()))),
    }
    let read = |(path, kind): &(CanonicalPath, GrantKind)| json!({ "path": path.as_str(), "folder": *kind == GrantKind::Tree });
    let texts = |paths: &[CanonicalPath]| paths.iter().map(|path| json!(path.as_str())).collect::<Value>();
    let value = json!({
        "profile": plan.profile.name,
        "measured": plan.profile.measured,
        "argv": plan.argv,
        "folder": folder.as_ref().map(CanonicalPath::as_str),
        "changes": { "folders": texts(&plan.folders), "files": texts(&plan.files) },
        "logins": texts(&plan.logins),
        "reads": plan.read.iter().map(read).collect::<Value>(),
        "programs": texts(&plan.programs),
        "variables": { "passed": passed, "set": plan.profile.set_env },
        "hosts": plan.profile.hosts,
        "fuse": open_fuse.is_ok(),
        "tun": tun.is_ok(),
    });
    screen.show(&out, &value)?;
    Ok(if open_fuse.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Writes a profile that extends `base` with the files that a run used.
pub fn write_proposal(home: &Home, file: &Path, base: RunProfile, used: Vec<UsedFile>) -> anyhow::Result<()> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.replace(|c: char| !c.is_ascii_alphanumeric() && c != '_', "-");
    let snapshot = PolicySnapshot::load(home, &Servers::load(home)?)?;
    let used = used.into_iter().map(|used| LearnedAccess { path: used.path, is_changed: used.changed });
    let learned = propose_profile(&name, &used.collect::<Vec<_>>(), &snapshot.limits());
    let profile = RunProfiles::load(home)?.with_learned(base, learned);
    let mut text = serde_json::to_string_pretty(&profile)?;
    text.push('\n');
    let created = OpenOptions::new().write(true).create_new(true).open(file);
    let mut created = created.with_context(|| format!("failed to create `{}`", file.display()))?;
    created.write_all(text.as_bytes())?;
    Ok(())
}

/// Returns an error if the proposed profile's file already exists or its name does not end with `.json`.
pub fn check_proposal_file(file: &Path) -> anyhow::Result<()> {
    if file.exists() {
        bail!("`{}` already exists; choose a different file for `--learn`", file.display());
    }
    if file.extension().is_none_or(|ending| ending != "json") {
        bail!("`--learn` requires a `.json` file, found `{}`", file.display());
    }
    Ok(())
}

fn search_path() -> String {
    std::env::var("PATH").unwrap_or_default()
}

fn open_fuse() -> std::io::Result<()> {
    OpenOptions::new().read(true).write(true).open("/dev/fuse").map(drop)
}

fn words<T: AsRef<str>>(all: &[T]) -> String {
    if all.is_empty() {
        return "none".to_owned();
    }
    all.iter().map(AsRef::as_ref).collect::<Vec<_>>().join(", ")
}
