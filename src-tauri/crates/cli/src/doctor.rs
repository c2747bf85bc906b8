//! `doctor`: checks everything that IronCurtain needs, and suggests fixes.

use crate::connection::Connection;
use crate::screen::Screen;
use crate::text_lines::TextLines;
use ironcurtain_admin::doctor::{Condition, DaemonStatus, Diagnosis, Doctor};
use ironcurtain_config::home::Home;
use ironcurtain_protocol::{Reply, Request};
use serde_json::json;
use std::env;
use std::process::ExitCode;

/// Runs all checks. Returns exit status 1 if a check finds a problem.
pub fn perform(allow_root: bool, deep: bool, screen: Screen) -> anyhow::Result<ExitCode> {
    let home = Home::from_env()?;
    home.prepare()?;
    let has_display = ["WAYLAND_DISPLAY", "DISPLAY"].iter().any(|name| env::var_os(name).is_some());
    let doctor = Doctor { home, programs: crate::servers::programs()?, allow_root, has_display, deep };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let found = runtime.block_on(
        doctor.check(&daemon_state(), |component| screen.progress(&format!("checking {component}"))),
    );
    screen.progress("");
    let worst = found.iter().map(|one| one.condition).max().unwrap_or(Condition::Ok);
    let mut out = TextLines::default();
    found.iter().for_each(|one| line(&mut out, one));
    screen.show(&out, &json!({ "worst": worst, "checks": found }))?;
    Ok(if worst == Condition::Problem { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn daemon_state() -> DaemonStatus {
    let status = || match Connection::open_if_running()? {
        None => anyhow::Ok(None),
        Some(mut connection) => connection.ask(Request::Status).map(Some),
    };
    match status() {
        Ok(None) => DaemonStatus::No,
        Ok(Some(Reply::Status(status))) => DaemonStatus::Yes {
            pid: status.pid,
            troubles: (status.troubles.into_iter())
                .filter(|trouble| status.managed_trouble.as_ref() != Some(trouble))
                .collect(),
            managed_trouble: status.managed_trouble,
            prompt_location: status.prompt_location,
            has_secrets: status.secrets_file.is_some_and(|file| !file.locked),
        },
        Ok(Some(_)) => DaemonStatus::Unresponsive("unexpected reply".to_owned()),
        Err(problem) => DaemonStatus::Unresponsive(format!("{problem:#}")),
    }
}

fn line(out: &mut TextLines, one: &Diagnosis) {
    let mark = match one.condition {
        Condition::Ok => "ok     ",
        Condition::Warning => "warning",
        Condition::Problem => "PROBLEM",
    };
    out.line(format_args!("{mark}  {}: {}", one.component, one.message));
    if let Some(fix) = &one.fix {
        out.line(format_args!("         {fix}"));
    }
}
