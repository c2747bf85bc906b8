//! The checks, one function each.

use super::{Diagnosis, Doctor, Running};
use crate::clients::{ClientReport, ClientState};
use ironcurtain_audit::{self as audit, Checked, KnownHead};
use ironcurtain_config::Servers;
use ironcurtain_config::home::Home;
use ironcurtain_grants::StandingGrant;
use ironcurtain_protocol::AskedOn;
use ironcurtain_secrets::{Keyring, SecretPlace, SecretStore, Shelf, in_time};
use std::fs;
use std::path::Path;

/// Programs that IronCurtain needs.
const NEEDED: [&str; 3] = ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem"];

const APP: &str = "ironcurtain-desktop";

/// Free space in the state folder below which a warning is reported: 1 GiB, enough for several audit log files.
const LITTLE_ROOM: u64 = 1 << 30;

/// Free space below which a problem is reported: 64 MiB. When the audit log cannot be written, every call is denied.
const NO_ROOM: u64 = 64 << 20;

/// Number of free inodes below which no session can start.
const FEW_INODES: u64 = 16;

/// Sufficient number of inotify watches for a large project folder. Older kernels allow only 8,192 by default.
const FEW_WATCHES: u64 = 65_536;

pub(super) fn programs(folder: &Path) -> Vec<Diagnosis> {
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !folder.join(name).is_file()).collect();
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

pub(super) fn running(running: &Running) -> Diagnosis {
    let about = "IronCurtain";
    match running {
        Running::No => Diagnosis::ok(about, "not running; it starts when a connected client starts a server"),
        Running::Yes { pid, troubles, .. } if troubles.is_empty() => {
            Diagnosis::ok(about, format!("running (process {pid})"))
        }
        Running::Yes { pid, troubles, .. } => Diagnosis::problem(
            about,
            format!("running (process {pid}) with problems: {}", troubles.join("; ")),
        ),
        Running::Silent(why) => Diagnosis::problem(about, format!("not responding: {why}"))
            .with_fix("run `ironcurtain stop`, or kill its process"),
    }
}

/// Checks the secret store.
pub(super) async fn secrets(store: &SecretStore, servers: &Servers, running: &Running) -> Diagnosis {
    let about = "secrets";
    let looked = store.clone();
    let file = store.path().display();
    let needed = servers.iter().any(|server| !server.secret_names().is_empty());
    match in_time(move || looked.place()).await {
        Ok(SecretPlace::Keyring) => Diagnosis::ok(about, "stored in the desktop's keyring"),
        Ok(SecretPlace::File { .. }) => {
            let is_open = matches!(running, Running::Yes { has_secrets: true, .. });
            let beside = if in_time(|| Keyring::open(Shelf::Secrets).map(drop)).await.is_ok() {
                "; a keyring is available but not used; to use it, move this file away and store each secret again"
            } else {
                ""
            };
            if is_open {
                Diagnosis::ok(
                    about,
                    format!("stored in the encrypted file `{file}`, which is unlocked{beside}"),
                )
            } else {
                let says = format!("stored in the encrypted file `{file}`, which is locked{beside}");
                Diagnosis::warning(about, says)
                    .with_fix("run `ironcurtain secrets unlock` while IronCurtain is running")
            }
        }
        Ok(SecretPlace::Nowhere(_)) => {
            let says = "there is no keyring here, and no encrypted file yet";
            let found = if needed { Diagnosis::problem(about, says) } else { Diagnosis::ok(about, says) };
            found.with_fix("`ironcurtain secrets set NAME` offers to create the file")
        }
        Err(problem) => Diagnosis::problem(about, problem.to_string()),
    }
}

/// Checks the front end that asks the user. If the trusted process is not running, checks the front end that would
/// ask the user if a client started it.
pub(super) fn questions(doctor: &Doctor, running: &Running) -> Diagnosis {
    let about = "questions";
    let terminal = "`ironcurtain daemon --ask terminal` asks on a terminal";
    if let Running::Yes { pid, asked_on, .. } = running {
        return match asked_on {
            AskedOn::Terminal => Diagnosis::ok(about, format!("asked on the terminal of process {pid}")),
            AskedOn::App => Diagnosis::ok(about, format!("asked in a dialog of the app (process {pid})")),
            AskedOn::Desktop => Diagnosis::ok(about, "asked on the attached desktop".to_owned()),
            AskedOn::Nobody => {
                let says =
                    format!("process {pid} cannot ask you, so everything that needs your approval is denied");
                Diagnosis::warning(about, says)
                    .with_fix(format!("start the app; or stop this process, then {terminal}"))
            }
        };
    }
    let has_app = doctor.programs.join(APP).is_file();
    match (has_app, doctor.has_display) {
        (true, true) => Diagnosis::ok(about, "the app can ask you here"),
        (true, false) => {
            let says = "there is no display here; you are asked in your desktop session, and without one, everything that needs your approval is denied";
            Diagnosis::warning(about, says).with_fix(terminal)
        }
        (false, _) => {
            let says = format!("the app `{APP}` is not installed, so you cannot be asked");
            Diagnosis::warning(about, says).with_fix(terminal)
        }
    }
}

pub(super) fn clients(reports: &[ClientReport]) -> Vec<Diagnosis> {
    let there: Vec<&ClientReport> =
        reports.iter().filter(|report| report.state != ClientState::Missing).collect();
    if there.is_empty() {
        let says = "none found on this machine";
        return vec![
            Diagnosis::warning("clients", says)
                .with_fix("run `ironcurtain clients list --all` to list the supported ones"),
        ];
    }
    there.into_iter().map(client).collect()
}

fn client(report: &ClientReport) -> Diagnosis {
    let (about, id) = (format!("client {}", report.id), report.id);
    match report.state {
        ClientState::Connected => Diagnosis::ok(&about, format!("{} is connected", report.name)),
        ClientState::NotConnected => Diagnosis::warning(
            &about,
            format!("{} is not connected, so its servers are not protected", report.name),
        )
        .with_fix(format!("`ironcurtain clients connect {id}`")),
        ClientState::Bypassing => {
            Diagnosis::warning(&about, format!("some servers of {} bypass IronCurtain", report.name))
                .with_fix(format!("`ironcurtain clients connect {id} --move`"))
        }
        ClientState::Drifted => Diagnosis::problem(
            &about,
            format!("{} starts a missing or other installation of IronCurtain", report.name),
        )
        .with_fix(format!("`ironcurtain clients connect {id}`")),
        ClientState::Missing => Diagnosis::ok(&about, format!("{} is not installed", report.name)),
        ClientState::Unreadable => Diagnosis::problem(
            &about,
            report.problem.clone().unwrap_or_else(|| "failed to read its settings".to_owned()),
        ),
    }
}

pub(super) fn record(home: &Home) -> Diagnosis {
    let (head, file) = (KnownHead::read(&home.audit_head()), home.audit_head());
    let checked = match &head {
        KnownHead::Entry(known) => audit::check_written(&home.audit(), known),
        KnownHead::Missing | KnownHead::Damaged(_) => audit::check(&home.audit()),
    };
    match checked {
        Ok(Checked { problem: Some(problem), .. }) => {
            Diagnosis::problem("record", format!("was changed: {problem}"))
                .with_fix(format!("find out why, then move the folder `{}` away", home.audit().display()))
        }
        Ok(Checked { entries, .. }) => match head.problem().filter(|_| entries > 0) {
            None => Diagnosis::ok("record", format!("intact: {entries} entries")),
            Some(problem) => {
                let says = format!(
                    "entries may be missing from its end: the head file `{}` {problem}; its {entries} entries are intact",
                    file.display()
                );
                Diagnosis::problem("record", says)
                    .with_fix("start the app or `ironcurtain daemon`, which writes a new head file")
            }
        },
        Err(problem) => Diagnosis::problem("record", format!("failed to read it: {problem}")),
    }
}

/// Checks the grants database.
pub(super) fn grants(home: &Home) -> Diagnosis {
    let about = "grants";
    match StandingGrant::on_disk(&home.database()) {
        Ok(grants) => Diagnosis::ok(about, format!("{} permanent or timed", grants.len())),
        Err(problem) if problem.is_damaged() => {
            Diagnosis::problem(about, problem.to_string()).with_fix(format!(
                "stop IronCurtain and move `{}*` away; then allow again what you need",
                home.database().display()
            ))
        }
        Err(problem) => Diagnosis::problem(about, problem.to_string()),
    }
}

pub(super) fn disk(home: &Home) -> Diagnosis {
    let found = match rustix::fs::statvfs(&home.state) {
        Ok(found) => found,
        Err(problem) => return Diagnosis::warning("disk", format!("`{}`: {problem}", home.state.display())),
    };
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    // File systems without a fixed number of inodes report 0.
    if found.f_files > 0 && found.f_favail < FEW_INODES {
        let says = format!("no inodes left at `{}`, so no session can start", home.state.display());
        return Diagnosis::problem("disk", says).with_fix("remove files that you do not need");
    }
    let says = format!("{} MiB free at `{}`", free >> 20, home.state.display());
    match free {
        free if free < NO_ROOM => Diagnosis::problem(
            "disk",
            format!("{says}; when the audit log cannot be written, every call is denied"),
        ),
        free if free < LITTLE_ROOM => Diagnosis::warning("disk", says),
        _ => Diagnosis::ok("disk", says),
    }
}

pub(super) fn limits() -> Option<Diagnosis> {
    let name = "fs.inotify.max_user_watches";
    let text = fs::read_to_string("/proc/sys/fs/inotify/max_user_watches").ok()?;
    let watches: u64 = text.trim().parse().ok()?;
    let says = format!("`{name}` is {watches}");
    Some(if watches < FEW_WATCHES {
        Diagnosis::warning(
            "limits",
            format!("{says}, which may be too few for write access to a large folder"),
        )
        .with_fix(format!("`sudo sysctl {name}=524288`"))
    } else {
        Diagnosis::ok("limits", says)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Condition;
    use super::*;
    use std::path::PathBuf;

    fn running_with(troubles: Vec<String>, asked_on: AskedOn) -> Running {
        Running::Yes { pid: 7, troubles, managed_trouble: None, asked_on, has_secrets: false }
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
        let told = |state| {
            let found = clients(&[report(state)]).remove(0);
            (found.condition, found.mend.unwrap_or_default())
        };
        let connect = "`ironcurtain clients connect cursor`".to_owned();
        let moving = "`ironcurtain clients connect cursor --move`".to_owned();
        assert_eq!(told(ClientState::Connected), (Condition::Ok, String::new()));
        assert_eq!(told(ClientState::NotConnected), (Condition::Warning, connect.clone()));
        assert_eq!(told(ClientState::Bypassing), (Condition::Warning, moving));
        assert_eq!(told(ClientState::Drifted), (Condition::Problem, connect));
        let none = clients(&[report(ClientState::Missing)]).remove(0);
        assert_eq!((none.about.as_str(), none.condition), ("clients", Condition::Warning));
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
            record(&home)
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
            let Diagnosis { condition, says, mend, .. } = found(head);
            assert_eq!(condition, Condition::Problem);
            let named = format!("the head file `{}` {problem}", home.audit_head().display());
            assert!(says.contains(&named) && mend.is_some(), "{says}");
        }
    }

    #[test]
    fn damaged_grants_database_is_named_with_a_fix_and_without_sql() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        assert_eq!(grants(&home).condition, Condition::Ok, "there is none yet");
        fs::create_dir_all(home.database().parent().unwrap()).unwrap();
        fs::write(home.database(), "x".repeat(4096)).unwrap();
        let Diagnosis { about, condition, says, mend } = grants(&home);
        assert_eq!((about.as_str(), condition), ("grants", Condition::Problem));
        let file = home.database().display().to_string();
        assert!(says.starts_with(&format!("the grant database `{file}` is damaged: ")), "{says}");
        assert!(
            !says.contains("PRAGMA") && mend.unwrap().contains(&format!("move `{file}*` away")),
            "{says}"
        );
    }

    #[test]
    fn place_of_questions_comes_from_the_trusted_process() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        let doctor =
            Doctor { home, programs: dir.path().into(), allow_root: false, has_display: false, deep: false };
        let told = |running: Running| {
            let found = questions(&doctor, &running);
            (found.condition, found.says)
        };
        let asks = |asked_on| running_with(vec![], asked_on);
        let terminal = "asked on the terminal of process 7".to_owned();
        assert_eq!(told(asks(AskedOn::Terminal)), (Condition::Ok, terminal));
        assert_eq!(told(asks(AskedOn::App)).0, Condition::Ok);
        assert_eq!(told(asks(AskedOn::Nobody)).0, Condition::Warning);
        assert!(told(Running::No).1.contains("is not installed, so you cannot be asked"));
    }

    #[test]
    fn missing_programs_and_unresponsive_daemon_are_problems() {
        let dir = tempfile::tempdir().unwrap();
        let found = programs(dir.path()).remove(0);
        assert_eq!(found.condition, Condition::Problem);
        assert!(found.says.contains("ironcurtain-shim, ironcurtain-sandbox"), "{}", found.says);
        for name in NEEDED {
            fs::write(dir.path().join(name), "").unwrap();
        }
        assert_eq!(programs(dir.path()).remove(0).condition, Condition::Ok);
        assert_eq!(running(&Running::Silent("no answer".into())).condition, Condition::Problem);
        let troubles = vec!["the disk is full".to_owned()];
        let says = running(&running_with(troubles, AskedOn::App)).says;
        assert!(says.ends_with("with problems: the disk is full"), "{says}");
        assert_eq!(running(&Running::No).condition, Condition::Ok);
        let home = Home::under(dir.path(), dir.path());
        assert_eq!(record(&home).condition, Condition::Ok);
    }
}
