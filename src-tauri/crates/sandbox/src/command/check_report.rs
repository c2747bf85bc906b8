//! `--check`: reports as text or JSON whether this machine supports sandboxes.

use std::{
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use super::{SandboxCommandError, plan::CommandContext};
use crate::{
    check::check_with_limits,
    control::{Enforcement, SandboxEvent},
    outcome::Availability,
};

const USAGE: &str = "\
usage: ironcurtain-sandbox --check [--json] [--allow-root]

Checks whether this machine can create sandboxes. Prints what is missing, the command that installs it, and how each
resource limit is enforced. The exit status is 0 if sandboxes can be created and 1 if not.
";

/// Runs the check and prints the result.
pub(super) fn print_check(options: &[String]) -> Result<ExitCode, SandboxCommandError> {
    let (mut json, mut allow_root) = (false, false);
    for option in options {
        match option.as_str() {
            "--json" => json = true,
            "--allow-root" => allow_root = true,
            _ => return Ok(usage()),
        }
    }
    let context = CommandContext::detect()?;
    let (found, limits) = check_with_limits(Path::new(&context.program), &context.state_dir()?, allow_root);
    let text = if json {
        serde_json::to_string_pretty(&CheckReport { found: &found, limits: &limits })
            .map_err(io::Error::from)?
            + "\n"
    } else {
        describe_availability(&found) + &limits.map(describe_limits).unwrap_or_default()
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(if found.usable { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Check result and the enforcement of each limit.
#[derive(serde::Serialize)]
struct CheckReport<'a> {
    #[serde(flatten)]
    found: &'a Availability,
    limits: &'a Option<SandboxEvent>,
}

fn describe_limits(event: SandboxEvent) -> String {
    let SandboxEvent::Limited { memory, cpu, processes } = event else { return String::new() };
    let line = |name: &str, by| {
        let by = match by {
            Enforcement::Cgroup => "enforced by a control group, for all processes of a sandbox together",
            Enforcement::Sandbox => "enforced by the user namespace, for all processes of a sandbox together",
            Enforcement::Process => "enforced by a resource limit, for each process separately",
            Enforcement::Unlimited => "not requested",
            Enforcement::Unenforced => "cannot be enforced on this machine",
        };
        format!("  {name}: {by}\n")
    };
    ["limits\n".to_owned(), line("memory", memory), line("processor time", cpu), line("processes", processes)]
        .concat()
}

fn describe_availability(found: &Availability) -> String {
    let verdict = if found.usable {
        "This machine can create sandboxes."
    } else {
        "This machine cannot create sandboxes."
    };
    let lines = std::iter::once(verdict.to_owned())
        .chain(found.missing.iter().map(|missing| format!("  missing: {missing}")))
        .chain(found.fix_command.iter().map(|command| format!("  to fix this, run: {command}")))
        .chain(found.warnings.iter().map(|warning| format!("  warning: {warning}")));
    lines.map(|line| line + "\n").collect()
}

fn usage() -> ExitCode {
    // Ignores a closed standard error: the exit status still reports the failure.
    let _ = io::stderr().write_all(USAGE.as_bytes());
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn report_is_readable() {
        let found = Availability {
            usable: false,
            missing: vec!["bubblewrap is not installed".into()],
            fix_command: Some("sudo apt install bubblewrap".into()),
            warnings: vec!["running as root".into()],
        };
        let expected = "This machine cannot create sandboxes.\n  missing: bubblewrap is not installed\n  to fix this, run: sudo apt install bubblewrap\n  warning: running as root\n";
        assert_eq!(describe_availability(&found), expected);
    }

    #[test]
    fn limits_read_well() {
        let limited = SandboxEvent::Limited {
            memory: Enforcement::Process,
            cpu: Enforcement::Unenforced,
            processes: Enforcement::Cgroup,
        };
        let expected = "limits\n  memory: enforced by a resource limit, for each process separately\n  processor time: cannot be enforced on this machine\n  processes: enforced by a control group, for all processes of a sandbox together\n";
        assert_eq!(describe_limits(limited), expected);
    }
}
