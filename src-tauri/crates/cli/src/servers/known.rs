//! Known servers: what there is, and adding one; and adding what nobody knows, by its package or by a maker's snippet.
//!
//! - A server is started in its sandbox before it is added, and what it has and wanted is shown.
//! - Without a terminal nothing is added but with `--yes`, which gives nothing beyond what is shown, or `--later`.

use super::{programs, show};
use crate::screen::Screen;
use crate::sheet::Sheet;
use anyhow::Context;
use clap::Args;
use ironcurtain_admin::annotate::{AnnotationsFile, Draft};
use ironcurtain_admin::catalog::{
    AddedServer, Addition, Bundle, BundleAnswers, Catalog, KnownServer, Source, add_server, candidates,
};
use ironcurtain_admin::inspect::{Inspection, Look, inspect_among};
use ironcurtain_admin::install::{Installer, install_among, is_packaged, sweep};
use ironcurtain_daemon::Home;
use ironcurtain_daemon::secrets::named;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The time that a package manager may take.
const INSTALLING: Duration = Duration::from_secs(600);
/// The time that a server may take to list its tools.
const LOOKING: Duration = Duration::from_secs(60);
/// The longest snippet.
const LONGEST_SNIPPET: u64 = 64 * 1024;

/// The server to add, and its settings.
#[derive(Debug, Args)]
pub struct AddOptions {
    /// The server: an id of `servers catalog`, a package (`npm:NAME`, `pypi:NAME`), a bundle (`FILE.mcpb`), the path of a file with
    /// what the makers of a server print for agent clients, or `-` for such a text on standard input (then with `--yes` or `--later`).
    what: String,
    /// The name to give it, instead of its own.
    #[arg(long)]
    name: Option<String>,
    /// The folder its package is installed in, instead of having it installed.
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Values that it must be told.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = setting)]
    settings: Vec<(String, String)>,
    /// Secrets of a bundle that it may do without, and is to.
    #[arg(long, value_name = "NAME")]
    without: Vec<String>,
    /// Replace a server of this name.
    #[arg(long)]
    replace: bool,
    /// Add it without asking, and give it nothing that it wants beyond what its entry opens.
    #[arg(long)]
    yes: bool,
    /// Write its entry only: its package is installed, and its tools are annotated, by commands of their own.
    #[arg(long, conflicts_with = "yes")]
    later: bool,
    /// Make the sandboxes although this is root. For containers.
    #[arg(long)]
    allow_root: bool,
}

/// Shows the catalog.
pub fn catalog(screen: Screen) -> anyhow::Result<ExitCode> {
    let catalog = Catalog::shipped()?;
    let mut text = Sheet::default();
    catalog.iter().for_each(|known| described(&mut text, known));
    screen.show(&text, &json!({ "servers": catalog.iter().collect::<Vec<_>>() }))?;
    Ok(ExitCode::SUCCESS)
}

/// Adds a server to the configuration.
pub fn perform(home: &Home, options: &AddOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    let file = Path::new(&options.what);
    let bundle = Bundle::is_named_so(file).then(|| Bundle::open(home, file)).transpose()?;
    let mut adding = chosen(home, options, bundle.as_ref())?;
    let may_ask = screen.has_terminal() && !screen.is_for_programs();
    if options.later {
        let done = written(home, &adding, options, None, screen)?;
        bundle.into_iter().for_each(Bundle::keep);
        return Ok(done);
    }
    if !options.yes && !may_ask {
        anyhow::bail!(
            "nothing was added: there is no terminal to ask at; `--yes` adds it with what its entry opens and no more, `--later` \
             writes its entry only"
        );
    }
    let servers = candidates(home, &adding, options.replace)?;
    let installer = Installer {
        home: home.clone(),
        programs: programs()?,
        allow_root: options.allow_root,
        patience: INSTALLING,
        secrets: crate::secrets::opened_for(servers.find(Some(&adding.name)))?,
    };
    if let Some(server) = servers.find(Some(&adding.name)) {
        crate::secrets::must_have(&installer.secrets, server)?;
    }
    let packaged = is_packaged(&servers, &adding.name);
    let looked = look(&installer, &servers, &adding, packaged, screen);
    let accepted = looked.and_then(|look| {
        let accepted = accept(home, &mut adding, look, options.yes, screen)?;
        Ok(accepted)
    });
    match accepted {
        Ok(Some(draft)) => {
            let done = written(home, &adding, options, Some(draft), screen)?;
            bundle.into_iter().for_each(Bundle::keep);
            Ok(done)
        }
        other => {
            // Nobody's entry names what was installed for it.
            if packaged {
                sweep(&installer)?;
            }
            other?;
            screen.note("Nothing was added.")?;
            Ok(ExitCode::FAILURE)
        }
    }
}

/// The server that is meant.
fn chosen(home: &Home, options: &AddOptions, bundle: Option<&Bundle>) -> anyhow::Result<Addition> {
    let name = options.name.as_deref();
    let what = options.what.as_str();
    if let Some(bundle) = bundle {
        let without = options.without.iter().cloned().collect();
        let mut answers = BundleAnswers { without, ..BundleAnswers::default() };
        for (key, value) in options.settings.iter().cloned() {
            answers.values.entry(key).or_default().push(value);
        }
        return Ok(bundle.addition(home, name, &answers)?);
    }
    if what == "-" || what.contains('/') && !what.contains(':') || what.ends_with(".json") {
        let mut text = String::new();
        if what == "-" {
            std::io::stdin().lock().take(LONGEST_SNIPPET).read_to_string(&mut text)?;
        } else {
            let file = std::fs::File::open(what).with_context(|| format!("`{what}` cannot be read"))?;
            file.take(LONGEST_SNIPPET)
                .read_to_string(&mut text)
                .with_context(|| format!("`{what}` cannot be read"))?;
        }
        return Ok(Addition::snippet(home, &text, name)?);
    }
    let from = options.from.as_ref();
    let from =
        from.map(|dir| dir.canonicalize().with_context(|| format!("`{}` cannot be used", dir.display())));
    let from = from.transpose()?;
    let settings = options.settings.iter().cloned().collect();
    Ok(Addition::named(home, what, name, from.as_deref(), &settings)?)
}

/// Installs its package where it has one, and starts it in its sandbox.
fn look(
    installer: &Installer,
    servers: &ironcurtain_daemon::Servers,
    adding: &Addition,
    packaged: bool,
    screen: Screen,
) -> anyhow::Result<Look> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    if packaged {
        screen.note(
            "Installing its package, in a sandbox that reaches the registry only; nothing of it runs ...",
        )?;
        let installed = runtime.block_on(install_among(installer, servers, &adding.name))?;
        screen.note(&format!("Installed `{}`.", installed.record.spelled()))?;
    }
    if let Some(data) = &adding.data {
        ironcurtain_daemon::home::private_dir(data)?;
    }
    screen.note("Starting it in its sandbox, to see its tools and what else it wants ...")?;
    let inspection = Inspection {
        home: installer.home.clone(),
        programs: installer.programs.clone(),
        allow_root: installer.allow_root,
        patience: LOOKING,
        secrets: installer.secrets.clone(),
    };
    Ok(runtime.block_on(inspect_among(&inspection, servers, &adding.name))?)
}

/// Shows what a server is and wants. The annotations to write for it; `None` where the person does not want it.
fn accept(
    home: &Home,
    adding: &mut Addition,
    look: Look,
    yes: bool,
    screen: Screen,
) -> anyhow::Result<Option<Option<Draft>>> {
    super::tell_wants(&look.wants, home, screen)?;
    let tools = look.listed?;
    let mut text = Sheet::default();
    let draft = match &adding.annotations {
        Some(known) => {
            let known: BTreeSet<&str> = known["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| tool["toolName"].as_str())
                .collect();
            let others: Vec<&str> =
                tools.iter().map(|tool| tool.name.as_str()).filter(|name| !known.contains(name)).collect();
            text.line(format_args!(
                "It has {}; what they mean is known.",
                crate::sheet::counted(tools.len(), "tool")
            ));
            if !others.is_empty() {
                text.line(format_args!("Not these, which stay refused: `{}`.", others.join("`, `")));
            }
            None
        }
        None => {
            let file = AnnotationsFile::open(home)?;
            let mut draft = Draft::new(&adding.name, tools);
            let changes = file.compare(&draft)?;
            draft.leave_out_unknown(&changes);
            let changes = file.compare(&draft)?;
            if !screen.is_for_programs() {
                screen.show(&show::text(&draft, &changes), &Value::Null)?;
            }
            text.line("Tools that are left out are asked about at each call, with all their arguments.");
            Some(draft)
        }
    };
    text.line(format_args!("Its sandbox: {}.", sandbox_in_words(&adding.entry)));
    if !screen.is_for_programs() {
        screen.show(&text, &Value::Null)?;
    }
    if !yes {
        for host in &look.wants.hosts {
            if screen.confirmed(&format!("Let it reach `{host}`?"))? {
                adding.allow_host(host);
            }
        }
        if !screen.confirmed(&format!("Add it as `{}`?", adding.name))? {
            return Ok(None);
        }
    }
    Ok(Some(draft))
}

/// The containment of an entry, in words.
fn sandbox_in_words(entry: &Value) -> String {
    let texts = |at: &str| -> Vec<&str> {
        entry.pointer(at).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
    };
    let mut words = Vec::new();
    let mut list = |what: &str, all: Vec<&str>| {
        if !all.is_empty() {
            words.push(format!("{what} `{}`", all.join("`, `")));
        }
    };
    list("it reaches", texts("/sandbox/network/allowedDomains"));
    list("it writes to", texts("/sandbox/filesystem/allowWrite"));
    list("it reads", texts("/sandbox/filesystem/allowRead"));
    if entry.pointer("/sandbox/network/askUnknown") == Some(&Value::Bool(true)) {
        words.push("other hosts are asked about".to_owned());
    } else if entry.pointer("/sandbox/network").is_none() {
        words.push("no network".to_owned());
    }
    let env = entry.get("env").and_then(Value::as_object).into_iter().flat_map(|env| env.values());
    for secret in env.filter_map(|value| named(value.as_str()?).ok()?) {
        words.push(format!("it is given your secret `{secret}`"));
    }
    words.push("and the files that you grant".to_owned());
    for path in texts("/worksWith") {
        words.push(format!(
            "it is to work with `{path}`, which stays closed until you say yes for the agent that uses it"
        ));
    }
    words.join(", ")
}

/// Writes it down.
fn written(
    home: &Home,
    adding: &Addition,
    options: &AddOptions,
    draft: Option<Option<Draft>>,
    screen: Screen,
) -> anyhow::Result<ExitCode> {
    let added = add_server(home, adding, options.replace)?;
    let looked_at = draft.is_some();
    let mut annotations = added.annotations.clone();
    if let Some(draft) = draft.flatten() {
        let file = AnnotationsFile::open(home)?;
        file.write(&draft)?;
        annotations = Some(file.path().to_path_buf());
    }
    let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    let json = json!({
        "name": adding.name,
        "servers": added.servers.display().to_string(),
        "annotations": path(&annotations),
        "data": path(&added.data),
        "entry": adding.entry,
    });
    let known = Catalog::shipped()?.find(&options.what).cloned();
    screen.show(
        &told(known.as_ref(), adding, (&added, annotations), (looked_at, options.from.is_some())),
        &json,
    )?;
    Ok(ExitCode::SUCCESS)
}

/// A text that sets nothing.
#[derive(Debug, thiserror::Error)]
#[error("write it as `NAME=VALUE`")]
struct NotASetting;

fn setting(text: &str) -> Result<(String, String), NotASetting> {
    let (name, value) = text.split_once('=').ok_or(NotASetting)?;
    Ok((name.to_owned(), value.to_owned()))
}

fn described(text: &mut Sheet, known: &KnownServer) {
    let from = match &known.source {
        Source::Own { .. } => "comes with IronCurtain".to_owned(),
        Source::Npm { package, version, .. } => format!("npm package {package} {version}"),
        Source::Pypi { package, version, .. } => format!("PyPI package {package} {version}"),
    };
    text.line(format_args!("{} ({})", known.id, known.title));
    text.line(format_args!("  {}", known.about));
    text.line(format_args!("  {}", known.why));
    text.line(format_args!("  From: {from}."));
    if let Some(needs) = &known.needs {
        text.line(format_args!("  Needs {needs}."));
    }
    for (name, about) in &known.settings {
        text.line(format_args!("  --set {name}=...: {about}"));
    }
    text.line("");
}

fn told(
    known: Option<&KnownServer>,
    adding: &Addition,
    (added, annotations): (&AddedServer, Option<PathBuf>),
    (looked_at, installed): (bool, bool),
) -> Sheet {
    let name = &adding.name;
    let mut lines = vec![format!("`{name}` is in `{}`.", added.servers.display())];
    match &annotations {
        Some(file) => lines.push(format!("What its tools mean is in `{}`.", file.display())),
        None => lines.push(format!(
            "Nobody has looked at its tools yet, so each call is asked about: `ironcurtain servers annotate {name}`."
        )),
    }
    if let Some(data) = &added.data {
        lines.push(format!("It keeps its data in `{}`.", data.display()));
    }
    if let Some(needs) = known.and_then(|known| known.needs.as_ref()) {
        lines.push(format!("It needs {needs}."));
    }
    let command = adding.entry.get("command").and_then(Value::as_str);
    let is_packaged = matches!(command, Some("npx" | "uvx"));
    if !looked_at && !installed && is_packaged {
        lines.push(format!("Its package is to be installed: `ironcurtain servers install {name}`."));
    }
    lines.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_is_given_is_said_with_its_sandbox() {
        let entry = json!({
            "command": "c", "env": { "HOME": "/d", "KEY": "keyring:notes-key" }, "worksWith": ["/notes"],
            "sandbox": { "view": "roots", "filesystem": { "allowWrite": ["/d"], "allowRead": ["/b"] } },
        });
        let words = "it writes to `/d`, it reads `/b`, no network, it is given your secret `notes-key`, and the files that you grant, \
            it is to work with `/notes`, which stays closed until you say yes for the agent that uses it";
        assert_eq!(sandbox_in_words(&entry), words);
    }
}
