//! The checks, one function each.

use super::{DaemonStatus, Diagnosis, Doctor};
use crate::clients::{ClientReport, ClientState};
use ironcurtain_audit::{self as audit, KnownHead, LogCheck};
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_grants::StandingGrant;
use ironcurtain_protocol::PromptLocation;
use ironcurtain_secrets::{Keyring, KeyringSection, SecretBackend, SecretStore, with_unlock_timeout};
use std::fs;
use std::path::Path;

/// Programs that IronCurtain needs.
const REQUIRED_PROGRAMS: [&str; 3] = ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem"];

const APP: &str = "ironcurtain-desktop";

/// Free space in the state folder below which a warning is reported: 1 GiB, enough for several audit log files.
const LOW_SPACE: u64 = 1 << 30;

/// Free space below which a problem is reported: 64 MiB. When the audit log cannot be written, every call is denied.
const MIN_SPACE: u64 = 64 << 20;

/// Number of free inodes below which no session can start.
const MIN_INODES: u64 = 16;

/// Sufficient number of inotify watches for a large project folder. Older kernels allow only 8,192 by default.
const ENOUGH_WATCHES: u64 = 65_536;

pub(super) fn programs(folder: &Path) -> Vec<Diagnosis> {
    let missing: Vec<&str> =
        REQUIRED_PROGRAMS.into_iter().filter(|name| !folder.join(name).is_file()).collect();
    vec![if missing.is_empty() {
        Diagnosis::ok("programs", format!("all installed in `{}`", folder.display()))
    } else {
        Diagnosis::problem("programs", format!("missing in `{}`: {}", folder.display(), missing.join(", ")))
            .with_fix("reinstall IronCurtain; in a source checkout, run `cargo xtask run`")
    }]
}

pub(super) fn sandbox(doctor: &Doctor) -> Diagnosis {
    let program = doctor.programs.join("ironcurtain-sandbox");
    let state = doctor.home.sandboxes();
    let found = ironcurtain_sandbox::check(&program, &state.to_string_lossy(), doctor.allow_root);
    let diagnosis = if !found.usable {
        Diagnosis::problem(
            "sandbox",
            format!("cannot be created on this machine: {}", found.missing.join("; ")),
        )
    } else if found.warnings.is_empty() {
        Diagnosis::ok("sandbox", "works")
    } else {
        Diagnosis::warning("sandbox", format!("works; {}", found.warnings.join("; ")))
    };
    match found.fix_command {
        Some(command) => diagnosis.with_fix(command),
        None => diagnosis,
    }
}

pub(super) fn running(running: &DaemonStatus) -> Diagnosis {
    let component = "IronCurtain";
    match running {
        DaemonStatus::No => {
            Diagnosis::ok(component, "not running; it starts when a connected client starts a server")
        }
        DaemonStatus::Yes { pid, troubles, .. } if troubles.is_empty() => {
            Diagnosis::ok(component, format!("running (process {pid})"))
        }
        DaemonStatus::Yes { pid, troubles, .. } => Diagnosis::problem(
            component,
            format!("running (process {pid}) with problems: {}", troubles.join("; ")),
        ),
        DaemonStatus::Unresponsive(why) => Diagnosis::problem(component, format!("not responding: {why}"))
            .with_fix("run `ironcurtain stop`, or kill its process"),
    }
}

/// Checks the secret store.
pub(super) async fn secrets(store: &SecretStore, servers: &Servers, running: &DaemonStatus) -> Diagnosis {
    let component = "secrets";
    let store_handle = store.clone();
    let file = store.path().display();
    let is_needed = servers.iter().any(|server| !server.secret_names().is_empty());
    match with_unlock_timeout(move || store_handle.backend()).await {
        Ok(SecretBackend::Keyring) => Diagnosis::ok(component, "stored in the desktop's keyring"),
        Ok(SecretBackend::File { .. }) => {
            let is_open = matches!(running, DaemonStatus::Yes { has_secrets: true, .. });
            let keyring_note = if with_unlock_timeout(|| Keyring::open(KeyringSection::Secrets).map(drop))
                .await
                .is_ok()
            {
                "; a keyring is available but not used; to use it, move this file away and store each secret again"
            } else {
                ""
            };
            if is_open {
                Diagnosis::ok(
                    component,
                    format!("stored in the encrypted file `{file}`, which is unlocked{keyring_note}"),
                )
            } else {
                let message = format!("stored in the encrypted file `{file}`, which is locked{keyring_note}");
                Diagnosis::warning(component, message)
                    .with_fix("run `ironcurtain secrets unlock` while IronCurtain is running")
            }
        }
        Ok(SecretBackend::Unavailable(_)) => {
            let message = "there is no keyring here, and no encrypted file yet";
            let found = if is_needed {
                Diagnosis::problem(component, message)
            } else {
                Diagnosis::ok(component, message)
            };
            found.with_fix("`ironcurtain secrets set NAME` offers to create the file")
        }
        Err(problem) => Diagnosis::problem(component, problem.to_string()),
    }
}

/// Checks the front end that asks the user. If the trusted process is not running, checks the front end that would
/// ask the user if a client started it.
pub(super) fn questions(doctor: &Doctor, running: &DaemonStatus) -> Diagnosis {
    let component = "questions";
    let terminal = "`ironcurtain daemon --ask terminal` asks on a terminal";
    if let DaemonStatus::Yes { pid, prompt_location, .. } = running {
        return match prompt_location {
            PromptLocation::Terminal => {
                Diagnosis::ok(component, format!("asked on the terminal of process {pid}"))
            }
            PromptLocation::App => {
                Diagnosis::ok(component, format!("asked in a dialog of the app (process {pid})"))
            }
            PromptLocation::Desktop => Diagnosis::ok(component, "asked on the attached desktop".to_owned()),
            PromptLocation::Nobody => {
                let message =
                    format!("process {pid} cannot ask you, so everything that needs your approval is denied");
                Diagnosis::warning(component, message)
                    .with_fix(format!("start the app; or stop this process, then {terminal}"))
            }
        };
    }
    let has_app = doctor.programs.join(APP).is_file();
    match (has_app, doctor.has_display) {
        (true, true) => Diagnosis::ok(component, "the app can ask you here"),
        (true, false) => {
            let message = "there is no display here; you are asked in your desktop session, and without one, everything that needs your approval is denied";
            Diagnosis::warning(component, message).with_fix(terminal)
        }
        (false, _) => {
            let message = format!("the app `{APP}` is not installed, so you cannot be asked");
            Diagnosis::warning(component, message).with_fix(terminal)
        }
    }
}

pub(super) fn clients(reports: &[ClientReport]) -> Vec<Diagnosis> {
    let installed: Vec<&ClientReport> =
        reports.iter().filter(|report| report.state != ClientState::Missing).collect();
    if installed.is_empty() {
        let message = "none found on this machine";
        return vec![
            Diagnosis::warning("clients", message)
                .with_fix("run `ironcurtain clients list --all` to list the supported ones"),
        ];
    }
    installed.into_iter().map(client).collect()
}

fn client(report: &ClientReport) -> Diagnosis {
    let (component, id) = (format!("client {}", report.id), report.id);
    match report.state {
        ClientState::Connected => Diagnosis::ok(&component, format!("{} is connected", report.name)),
        ClientState::NotConnected => Diagnosis::warning(
            &component,
            format!("{} is not connected, so its servers are not protected", report.name),
        )
        .with_fix(format!("`ironcurtain clients connect {id}`")),
        ClientState::Bypassing => {
            Diagnosis::warning(&component, format!("some servers of {} bypass IronCurtain", report.name))
                .with_fix(format!("`ironcurtain clients connect {id} --move`"))
        }
        ClientState::Drifted => Diagnosis::problem(
            &component,
            format!("{} starts a missing or other installation of IronCurtain", report.name),
        )
        .with_fix(format!("`ironcurtain clients connect {id}`")),
        ClientState::Missing => Diagnosis::ok(&component, format!("{} is not installed", report.name)),
        ClientState::Unreadable => Diagnosis::problem(
            &component,
            report.problem.clone().unwrap_or_else(|| "failed to read its settings".to_owned()),
        ),
    }
}

pub(super) fn audit_log(home: &Home) -> Diagnosis {
    let (head, file) = (KnownHead::read(&home.audit_head()), home.audit_head());
    let checked = match &head {
        KnownHead::Entry(known) => audit::check_written(&home.audit(), known),
        KnownHead::Missing | KnownHead::Damaged(_) => audit::check(&home.audit()),
    };
    match checked {
        Ok(LogCheck { problem: Some(problem), .. }) => {
            Diagnosis::problem("record", format!("was changed: {problem}"))
                .with_fix(format!("find out why, then move the folder `{}` away", home.audit().display()))
        }
        Ok(LogCheck { entries, .. }) => match head.problem().filter(|_| entries > 0) {
            None => Diagnosis::ok("record", format!("intact: {entries} entries")),
            Some(problem) => {
                let message = format!(
                    "entries may be missing from its end: the head file `{}` {problem}; its {entries} entries are intact",
                    file.display()
                );
                Diagnosis::problem("record", message)
                    .with_fix("start the app or `ironcurtain daemon`, which writes a new head file")
            }
        },
        Err(problem) => Diagnosis::problem("record", format!("failed to read it: {problem}")),
    }
}

/// Checks the grants database.
pub(super) fn grants(home: &Home) -> Diagnosis {
    let component = "grants";
    match StandingGrant::on_disk(&home.database()) {
        Ok(grants) => Diagnosis::ok(component, format!("{} permanent or timed", grants.len())),
        Err(problem) if problem.is_damaged() => {
            Diagnosis::problem(component, problem.to_string()).with_fix(format!(
                "stop IronCurtain and move `{}*` away; then allow again what you need",
                home.database().display()
            ))
        }
        Err(problem) => Diagnosis::problem(component, problem.to_string()),
    }
}

pub(super) fn disk(home: &Home) -> Diagnosis {
    let found = match rustix::fs::statvfs(&home.state) {
        Ok(found) => found,
        Err(problem) => return Diagnosis::warning("disk", format!("`{}`: {problem}", home.state.display())),
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    // File systems without a fixed number of inodes report 0.
    if found.f_files > 0 && found.f_favail < MIN_INODES {
        let message = format!("no inodes left at `{}`, so no session can start", home.state.display());
        return Diagnosis::problem("disk", message).with_fix("remove files that you do not need");
    }
    let message = format!("{} MiB free at `{}`", free >> 20, home.state.display());
    match free {
        free if free < MIN_SPACE => Diagnosis::problem(
            "disk",
            format!("{message}; when the audit log cannot be written, every call is denied"),
        ),
        free if free < LOW_SPACE => Diagnosis::warning("disk", message),
        _ => Diagnosis::ok("disk", message),
    }
}

pub(super) fn limits() -> Option<Diagnosis> {
    let name = "fs.inotify.max_user_watches";
    let text = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    let watches: u64 = text.trim().parse().ok()?;
    let message = format!("`{name}` is {watches}");
    Some(if watches < ENOUGH_WATCHES {
        Diagnosis::warning(
            "limits",
            format!("{message}, which may be too few for write access to a large folder"),
        )
        .with_fix(format!("`sudo sysctl {name}=524288`"))
    } else {
        Diagnosis::ok("limits", message)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Condition;
    use super::*;
    use std::path::PathBuf;

    fn running_with(troubles: Vec<String>, prompt_location: PromptLocation) -> DaemonStatus {
        DaemonStatus::Yes { pid: 7, troubles, managed_trouble: None, prompt_location, has_secrets: false }
    }

    fn report(state: ClientState) -> ClientReport {
        ClientReport {
            id: "cursor",
            name: "Cursor",
            file: PathBuf::new(),
            state,
            entries: vec![],
            problem: None,
        }
    }

    #[test]
    fn each_client_state_suggests_its_command() {
        let diagnosed = |state| {
            let found = clients(&[report(state)]).remove(0);
            (found.condition, found.fix.unwrap_or_default())
        };
        let connect = "`ironcurtain clients connect cursor`".to_owned();
        let moving = "`ironcurtain clients connect cursor --move`".to_owned();
        assert_eq!(diagnosed(ClientState::Connected), (Condition::Ok, String::new()));
        assert_eq!(diagnosed(ClientState::NotConnected), (Condition::Warning, connect.clone()));
        assert_eq!(diagnosed(ClientState::Bypassing), (Condition::Warning, moving));
        assert_eq!(diagnosed(ClientState::Drifted), (Condition::Problem, connect));
        let none = clients(&[report(ClientState::Missing)]).remove(0);
        assert_eq!((none.component.as_str(), none.condition), ("clients", Condition::Warning));
    }

    #[test]
    fn unknown_end_of_the_log_names_the_head_file_and_a_fix() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        let found = |head: Option<&str>| {
            let file = home.audit_head();
            // Removing a missing file is not an error.
            let _ = fs::remove_file(&file);
            head.iter().for_each(|text| fs::write(&file, text).unwrap());
            audit_log(&home)
        };
        fs::create_dir_all(home.audit()).unwrap();
        assert_eq!(found(None).condition, Condition::Ok, "nothing was written yet");
        let log = home.audit().join(audit::LOG_NAME);
        fs::copy(concat!(env!("CARGO_MANIFEST_DIR"), "/../audit/fixtures/without-grounds.jsonl"), &log)
            .unwrap();
        let text = fs::read_to_string(&log).unwrap();
        let last: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        let good = serde_json::json!({ "entries": 20, "head": last["hash"] }).to_string();
        assert_eq!(found(Some(&good)).condition, Condition::Ok);
        for (head, problem) in
            [(Some(""), "is empty"), (Some(&*good.repeat(2)), "is damaged"), (None, "does not exist")]
        {
            let Diagnosis { condition, message, fix, .. } = found(head);
            assert_eq!(condition, Condition::Problem);
            let named = format!("the head file `{}` {problem}", home.audit_head().display());
            assert!(message.contains(&named) && fix.is_some(), "{message}");
        }
    }

    #[test]
    fn damaged_grants_database_is_named_with_a_fix_and_without_sql() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        assert_eq!(grants(&home).condition, Condition::Ok, "there is none yet");
        fs::create_dir_all(home.database().parent().unwrap()).unwrap();
        fs::write(home.database(), "x".repeat(4096)).unwrap();
        let Diagnosis { component, condition, message, fix } = grants(&home);
        assert_eq!((component.as_str(), condition), ("grants", Condition::Problem));
        let file = home.database().display().to_string();
        assert!(message.starts_with(&format!("the grant database `{file}` is damaged: ")), "{message}");
        assert!(
            !message.contains("PRAGMA") && fix.unwrap().contains(&format!("move `{file}*` away")),
            "{message}"
        );
    }

    #[test]
    fn place_of_questions_comes_from_the_trusted_process() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        let doctor =
            Doctor { home, programs: dir.path().into(), allow_root: false, has_display: false, deep: false };
        let diagnosed = |running: DaemonStatus| {
            let found = questions(&doctor, &running);
            (found.condition, found.message)
        };
        let asks = |prompt_location| running_with(vec![], prompt_location);
        let terminal = "asked on the terminal of process 7".to_owned();
        assert_eq!(diagnosed(asks(PromptLocation::Terminal)), (Condition::Ok, terminal));
        assert_eq!(diagnosed(asks(PromptLocation::App)).0, Condition::Ok);
        assert_eq!(diagnosed(asks(PromptLocation::Nobody)).0, Condition::Warning);
        assert!(diagnosed(DaemonStatus::No).1.contains("is not installed, so you cannot be asked"));
    }

    #[test]
    fn missing_programs_and_unresponsive_daemon_are_problems() {
        let dir = tempfile::tempdir().unwrap();
        let found = programs(dir.path()).remove(0);
        assert_eq!(found.condition, Condition::Problem);
        assert!(found.message.contains("ironcurtain-shim, ironcurtain-sandbox"), "{}", found.message);
        for name in REQUIRED_PROGRAMS {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(programs(dir.path()).remove(0).condition, Condition::Ok);
        assert_eq!(running(&DaemonStatus::Unresponsive("no answer".into())).condition, Condition::Problem);
        let troubles = vec!["the disk is full".to_owned()];
        let message = running(&running_with(troubles, PromptLocation::App)).message;
        assert!(message.ends_with("with problems: the disk is full"), "{message}");
        assert_eq!(running(&DaemonStatus::No).condition, Condition::Ok);
        let home = Home::under(dir.path(), dir.path());
        assert_eq!(audit_log(&home).condition, Condition::Ok);
    }
}
