//! The single checks.

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

/// The programs without which nothing works.
const NEEDED: [&str; 3] = ["ironcurtain-shim", "ironcurtain-sandbox", "ironcurtain-filesystem"];

/// The app.
const APP: &str = "ironcurtain-desktop";

/// Less room than this in the state folder is worth a warning, in bytes: some files of the record.
const LITTLE_ROOM: u64 = 1 << 30;

/// With less than this the record soon takes no entry, and every call is denied.
const NO_ROOM: u64 = 64 << 20;

/// The number of inodes below which sessions cannot begin.
const FEW_INODES: u64 = 16;

/// Watches that one folder of a large project takes up; the kernel's own default was 8,192 for long.
const FEW_WATCHES: u64 = 65_536;

pub(super) fn programs(folder: &Path) -> Vec<Diagnosis> {
    let missing: Vec<&str> = NEEDED.into_iter().filter(|name| !folder.join(name).is_file()).collect();
    vec![if missing.is_empty() {
        Diagnosis::ok("programs", format!("all are in `{}`", folder.display()))
    } else {
        Diagnosis::problem("programs", format!("`{}` has no {}", folder.display(), missing.join(", ")))
            .mended_by("install IronCurtain whole; in a checkout, `cargo xtask run`")
    }]
}

pub(super) fn sandbox(doctor: &Doctor) -> Diagnosis {
    let program = doctor.programs.join("ironcurtain-sandbox");
    let state = doctor.home.sandboxes();
    let found = ironcurtain_sandbox::check(&program, &state.to_string_lossy(), doctor.allow_root);
    let diagnosis = if !found.usable {
        Diagnosis::problem("sandbox", format!("this machine cannot make one: {}", found.missing.join("; ")))
    } else if found.warnings.is_empty() {
        Diagnosis::ok("sandbox", "one was made just now")
    } else {
        Diagnosis::warning("sandbox", format!("one was made just now; {}", found.warnings.join("; ")))
    };
    match found.fix_command {
        Some(command) => diagnosis.mended_by(command),
        None => diagnosis,
    }
}

pub(super) fn running(running: &Running) -> Diagnosis {
    let about = "IronCurtain";
    match running {
        Running::No => Diagnosis::ok(about, "it does not run; a client that starts the shim starts it"),
        Running::Yes { pid, troubles, .. } if troubles.is_empty() => {
            Diagnosis::ok(about, format!("it runs (process {pid})"))
        }
        Running::Yes { pid, troubles, .. } => Diagnosis::problem(
            about,
            format!("it runs (process {pid}), and is in trouble: {}", troubles.join("; ")),
        ),
        Running::Silent(why) => Diagnosis::problem(about, format!("it does not answer: {why}"))
            .mended_by("`ironcurtain stop`, or end its process"),
    }
}

/// The place that secrets are in.
pub(super) async fn secrets(store: &SecretStore, servers: &Servers, running: &Running) -> Diagnosis {
    let about = "secrets";
    let looked = store.clone();
    let file = store.path().display();
    let needed = servers.iter().any(|server| !server.secret_names().is_empty());
    match in_time(move || looked.place()).await {
        Ok(SecretPlace::Keyring) => Diagnosis::ok(about, "they are in the keyring of the desktop"),
        Ok(SecretPlace::File { .. }) => {
            let is_open = matches!(running, Running::Yes { has_secrets: true, .. });
            let beside = if in_time(|| Keyring::open(Shelf::Secrets).map(drop)).await.is_ok() {
                "; a keyring answers too and is not used: to use it, move that file away and keep each secret again"
            } else {
                ""
            };
            if is_open {
                Diagnosis::ok(
                    about,
                    format!("no keyring is used: they are in the encrypted file `{file}`, unlocked{beside}"),
                )
            } else {
                let says =
                    format!("no keyring is used: they are in the encrypted file `{file}`, locked{beside}");
                Diagnosis::warning(about, says)
                    .mended_by("`ironcurtain secrets unlock`, while IronCurtain runs")
            }
        }
        Ok(SecretPlace::Nowhere(_)) => {
            let says = "there is no keyring here, and no encrypted file yet";
            let found = if needed { Diagnosis::problem(about, says) } else { Diagnosis::ok(about, says) };
            found.mended_by("`ironcurtain secrets set NAME` offers to make the file")
        }
        Err(problem) => Diagnosis::problem(about, problem.to_string()),
    }
}

/// Reports who asks the user: the trusted process that runs, or the one that a client would start.
pub(super) fn questions(doctor: &Doctor, running: &Running) -> Diagnosis {
    let about = "questions";
    let terminal = "`ironcurtain daemon --ask terminal` asks on a terminal";
    if let Running::Yes { pid, asked_on, .. } = running {
        return match asked_on {
            AskedOn::Terminal => Diagnosis::ok(about, format!("asked on the terminal of process {pid}")),
            AskedOn::App => Diagnosis::ok(about, format!("asked in a dialog of the app (process {pid})")),
            AskedOn::Nobody => {
                let says = format!("process {pid} can ask nobody, so what needs your approval is denied");
                Diagnosis::warning(about, says)
                    .mended_by(format!("start the app; or end that process, then {terminal}"))
            }
        };
    }
    let has_app = doctor.programs.join(APP).is_file();
    match (has_app, doctor.has_display) {
        (true, true) => Diagnosis::ok(about, "the app can ask you here"),
        (true, false) => {
            let says = "there is no display here: you are asked in your desktop session, if there is one; without one, what needs your approval is denied";
            Diagnosis::warning(about, says).mended_by(terminal)
        }
        (false, _) => {
            let says = format!("the app `{APP}` is not installed, so nobody can be asked");
            Diagnosis::warning(about, says).mended_by(terminal)
        }
    }
}

pub(super) fn clients(reports: &[ClientReport]) -> Vec<Diagnosis> {
    let there: Vec<&ClientReport> =
        reports.iter().filter(|report| report.state != ClientState::Missing).collect();
    if there.is_empty() {
        let says = "none was found on this machine";
        return vec![
            Diagnosis::warning("clients", says)
                .mended_by("`ironcurtain clients list --all` names those that are known"),
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
            format!("{} is not connected: nothing that it starts is judged", report.name),
        )
        .mended_by(format!("`ironcurtain clients connect {id}`")),
        ClientState::Bypassing => {
            Diagnosis::warning(&about, format!("some servers of {} go past the shield", report.name))
                .mended_by(format!("`ironcurtain clients connect {id} --move`"))
        }
        ClientState::Drifted => {
            Diagnosis::problem(&about, format!("{} starts a shim that is gone, or another one", report.name))
                .mended_by(format!("`ironcurtain clients connect {id}`"))
        }
        ClientState::Missing => Diagnosis::ok(&about, format!("{} is not on this machine", report.name)),
        ClientState::Unreadable => Diagnosis::problem(
            &about,
            report.problem.clone().unwrap_or_else(|| "its settings cannot be read".to_owned()),
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
            Diagnosis::problem("record", format!("it was changed: {problem}"))
                .mended_by(format!("find out why, then move the folder `{}` away", home.audit().display()))
        }
        Ok(Checked { entries, .. }) => match head.problem().filter(|_| entries > 0) {
            None => Diagnosis::ok("record", format!("it is whole: {entries} entries")),
            Some(problem) => {
                let says = format!(
                    "entries may be missing from its end: the head file `{}` {problem}; the {entries} entries before are whole",
                    file.display()
                );
                Diagnosis::problem("record", says)
                    .mended_by("`ironcurtain daemon`, or the app, writes a new head file when it starts")
            }
        },
        Err(problem) => Diagnosis::problem("record", format!("it cannot be read: {problem}")),
    }
}

/// The database of grants.
pub(super) fn grants(home: &Home) -> Diagnosis {
    let about = "grants";
    match StandingGrant::on_disk(&home.database()) {
        Ok(grants) => Diagnosis::ok(about, format!("{} outlive their session", grants.len())),
        Err(problem) if problem.is_damaged() => {
            Diagnosis::problem(about, problem.to_string()).mended_by(format!(
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
    // Some file systems have no table of inodes, and count none.
    if found.f_files > 0 && found.f_favail < FEW_INODES {
        let says = format!("no inodes are left at `{}`: no session can begin", home.state.display());
        return Diagnosis::problem("disk", says).mended_by("remove files that you do not need");
    }
    let says = format!("{} MiB are free at `{}`", free >> 20, home.state.display());
    match free {
        free if free < NO_ROOM => {
            Diagnosis::problem("disk", format!("{says}: without a record every call is denied"))
        }
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
        Diagnosis::warning("limits", format!("{says}: a large folder may not open for writing"))
            .mended_by(format!("`sudo sysctl {name}=524288`"))
    } else {
        Diagnosis::ok("limits", says)
    })
}

#[cfg(test)]
mod tests {
    use super::super::Condition;
    use super::*;
    use std::path::PathBuf;

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
    fn each_state_of_a_client_has_its_command() {
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
    fn a_record_whose_end_is_unknown_is_a_problem_that_names_the_head_file_and_a_remedy() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        let found = |head: Option<&str>| {
            let file = home.audit_head();
            // There may be none yet.
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
    fn a_damaged_database_of_grants_is_named_with_a_remedy_and_without_a_statement() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        assert_eq!(grants(&home).condition, Condition::Ok, "there is none yet");
        fs::create_dir_all(home.database().parent().unwrap()).unwrap();
        fs::write(home.database(), "x".repeat(4096)).unwrap();
        let Diagnosis { about, condition, says, mend } = grants(&home);
        assert_eq!((about.as_str(), condition), ("grants", Condition::Problem));
        let file = home.database().display().to_string();
        assert!(says.starts_with(&format!("the database of grants `{file}` is damaged: ")), "{says}");
        assert!(
            !says.contains("PRAGMA") && mend.unwrap().contains(&format!("move `{file}*` away")),
            "{says}"
        );
    }

    #[test]
    fn who_is_asked_is_what_the_trusted_process_says() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), dir.path());
        let doctor = Doctor { home, programs: dir.path().into(), allow_root: false, has_display: false };
        let told = |running: Running| {
            let found = questions(&doctor, &running);
            (found.condition, found.says)
        };
        let asks = |asked_on| Running::Yes { pid: 7, troubles: vec![], asked_on, has_secrets: false };
        let terminal = "asked on the terminal of process 7".to_owned();
        assert_eq!(told(asks(AskedOn::Terminal)), (Condition::Ok, terminal));
        assert_eq!(told(asks(AskedOn::App)).0, Condition::Ok);
        assert_eq!(told(asks(AskedOn::Nobody)).0, Condition::Warning);
        assert!(told(Running::No).1.contains("is not installed, so nobody can be asked"));
    }

    #[test]
    fn what_is_missing_or_silent_is_a_problem() {
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
        assert!(
            running(&Running::Yes { pid: 7, troubles, asked_on: AskedOn::App, has_secrets: false })
                .says
                .ends_with("in trouble: the disk is full")
        );
        assert_eq!(running(&Running::No).condition, Condition::Ok);
        let home = Home::under(dir.path(), dir.path());
        assert_eq!(record(&home).condition, Condition::Ok);
    }
}
