//! `servers limits`: shows and changes a server's resource limits.

use super::change::accepted;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use anyhow::Context;
use clap::Args;
use ironcurtain_admin::UnknownServer;
use ironcurtain_admin::limits::{Limit, LimitsChange, limits};
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use serde_json::{Value, json};
use std::process::ExitCode;

/// Options of `limits`.
#[derive(Debug, Args)]
pub struct LimitsOptions {
    /// Name of the server.
    name: String,
    /// New limits, such as `memory=512` (MiB), `processor=50` (percent of one), `processes=64`, `open-files=1024`,
    /// `file-size=100` (MiB) or `tmp-size=64` (MiB); `memory=default` for the default.
    #[arg(value_parser = parse_limit, value_name = "LIMIT=VALUE")]
    wanted: Vec<(Limit, Option<u64>)>,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
}

/// Shows all of a server's limits, or changes the given limits.
pub fn perform(home: &Home, options: &LimitsOptions, screen: Screen) -> anyhow::Result<ExitCode> {
    if options.wanted.is_empty() {
        return show(home, &options.name, screen);
    }
    let change = LimitsChange::plan(home, &options.name, &options.wanted.iter().copied().collect())?;
    let mut out: TextLines = change.differences.iter().map(|one| &one.description).collect();
    change.diff.lines().for_each(|line| out.line(format_args!("  {line}")));
    let differences: Vec<Value> = change
        .differences
        .iter()
        .map(|one| json!({ "looser": one.is_looser, "words": one.description }))
        .collect();
    screen.show(&out, &json!({ "server": change.server, "differences": differences }))?;
    if !accepted("Write this?", options.yes, screen)? {
        return Ok(ExitCode::FAILURE);
    }
    home.prepare()?;
    change.write()?;
    screen.note("Written. The limits apply to new sessions.")?;
    Ok(ExitCode::SUCCESS)
}

fn show(home: &Home, name: &str, screen: Screen) -> anyhow::Result<ExitCode> {
    let servers = Servers::load(home)?;
    let server = servers.find(Some(name)).ok_or_else(|| UnknownServer::new(&servers, name))?;
    let all = limits(server);
    let mut out = TextLines::default();
    if all.is_empty() {
        out.line(format_args!("{name} does not run in a sandbox here, so it has no limits."));
    }
    for one in &all {
        let default = if one.own.is_none() { " (the default)" } else { "" };
        out.line(format_args!(
            "{}: {}{default}",
            one.limit.name(),
            one.limit.format(one.own.or(one.default))
        ));
    }
    let values: Vec<Value> = all
        .iter()
        .map(|one| json!({ "limit": one.limit, "unit": one.limit.unit(), "own": one.own, "default": one.default }))
        .collect();
    screen.show(&out, &json!({ "server": name, "limits": values }))?;
    Ok(ExitCode::SUCCESS)
}

fn parse_limit(text: &str) -> anyhow::Result<(Limit, Option<u64>)> {
    let (name, value) =
        text.split_once('=').context("expected `LIMIT=VALUE`, such as `memory=512` or `memory=default`")?;
    let limit = serde_json::from_value(json!(name)).with_context(|| format!("unknown limit `{name}`"))?;
    if value == "default" {
        return Ok((limit, None));
    }
    let value =
        value.parse().with_context(|| format!("expected a whole number or `default`, found `{value}`"))?;
    Ok((limit, Some(value)))
}
