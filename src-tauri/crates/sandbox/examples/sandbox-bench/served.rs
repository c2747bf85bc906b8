//! Measures file operations on the served files of a sandboxed run, and compares them with the same operations in a
//! mounted folder, in bubblewrap and without a sandbox.

use super::{
    Fallible,
    others::{Other, Setting},
    work::{self, FIGURES, Files},
};
use ironcurtain_sandbox::{
    Mount, MountAccess, NetworkAccess, ResourceLimits, Spec, UnixSockets, View,
    file_access::{AccessAnswer, FromView, PermittedAccess, ToView},
    launch_run,
    run_link::RunLink,
};
use ironcurtain_testkit::measurements::time;
use std::{
    env,
    fmt::Write as _,
    fs::File,
    io::{self, BufRead, BufReader, Read, Write as _},
    os::{fd::OwnedFd, unix::net::UnixStream},
    path::Path,
    process::Stdio,
    thread,
};

/// Target of each measurement, in output order.
const GOALS: [&str; 6] = ["<= 5 ms", "", "", "", "<= 4x", "<= 1.5x"];

/// Takes the measurements and returns the table. Questions are answered immediately.
pub(crate) fn table(setting: &Setting, files: &Files, rounds: usize) -> Fallible<String> {
    let folder = setting.dir.path().join("files");
    files.create(&folder)?;
    let own = env::current_exe()?;
    let words = [text(&own)?, "--work", text(&folder)?, &files.small.to_string()].map(str::to_owned);
    let bare = |other: Other| {
        let argv: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = other.command(setting, &argv).stdin(Stdio::null()).stderr(Stdio::inherit()).output()?;
        Ok(String::from_utf8(output.stdout)?)
    };
    let in_run = |is_mounted: bool| in_run(setting, &words, (&own, &folder), is_mounted);
    let columns: [(&str, &dyn Fn() -> Fallible<String>); 4] = [
        ("run, served", &|| in_run(false)),
        ("run, mounted", &|| in_run(true)),
        ("no sandbox", &|| bare(Other::Nothing)),
        ("bubblewrap alone", &|| bare(Other::Bubblewrap)),
    ];
    let mut all = Vec::new();
    for (_, measure) in columns {
        let mut figures: Vec<Vec<_>> = vec![Vec::new(); FIGURES.len()];
        for _ in 0..rounds {
            let measured = work::parse(&measure()?)?;
            figures.iter_mut().zip(measured).for_each(|(all, one)| all.push(one));
        }
        figures.iter_mut().for_each(|all| all.sort());
        all.push(figures);
    }
    let mut page = String::from("| files |");
    columns.iter().try_for_each(|(name, _)| write!(page, " {name} |"))?;
    write!(page, " goal, beside mounted |\n| --- |{} --- |\n", " --- |".repeat(columns.len()))?;
    for (at, (figure, goal)) in FIGURES.iter().zip(GOALS).enumerate() {
        write!(page, "| {figure} |")?;
        for figures in &all {
            let median = figures.get(at).and_then(|all| all.get(rounds / 2)).ok_or("no rounds")?;
            write!(page, " {} |", time(*median))?;
        }
        writeln!(page, " {goal} |")?;
    }
    Ok(page)
}

/// Runs a command in a sandbox with served files and returns its output.
fn in_run(
    setting: &Setting,
    words: &[String],
    (own, folder): (&Path, &Path),
    is_mounted: bool,
) -> Fallible<String> {
    let dir = text(setting.dir.path())?.to_owned();
    let mount = is_mounted
        .then(|| Ok::<_, Box<dyn std::error::Error>>(Mount::new(text(folder)?, MountAccess::ReadWrite)));
    let spec = Spec {
        argv: words.to_vec(),
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        cwd: None,
        home: None,
        view: View::Served {
            session_dir: None,
            folders: vec![dir.clone()],
            hidden: vec![],
            sockets: vec![],
            programs: vec![text(own)?.to_owned()],
        },
        mounts: mount.transpose()?.into_iter().collect(),
        network: NetworkAccess::None,
        unix_sockets: UnixSockets::None,
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: ResourceLimits::default(),
        state_dir: format!("{dir}.state"),
        allow_root: true,
    };
    let (mut stdout, theirs) = io::pipe()?;
    let null =
        || Ok::<_, io::Error>(OwnedFd::from(File::options().read(true).write(true).open("/dev/null")?));
    let (link, inner) = RunLink::pair()?;
    link.begin(None)?;
    let run = launch_run(&spec, Path::new(setting.ours()), [null()?, theirs.into(), null()?], inner, |_| ())?;
    let answering = thread::spawn(move || answer_all(&run.view));
    let mut output = String::new();
    stdout.read_to_string(&mut output)?;
    drop(run.control);
    // Ignores the error: the thread exits with the sandbox.
    let _ = answering.join();
    let _ = std::fs::remove_dir_all(spec.state_dir);
    Ok(output)
}

/// Permits every access until the sandbox exits.
fn answer_all(view: &UnixStream) -> io::Result<()> {
    for line in BufReader::new(view).lines() {
        if let FromView::Ask { id, path, access, .. } = serde_json::from_str(&line?)? {
            let answer = ToView::Answer { id, answer: AccessAnswer::Permitted };
            for message in [ToView::Permit(PermittedAccess { path, access }), answer] {
                let mut line = serde_json::to_vec(&message)?;
                line.push(b'\n');
                (&mut &*view).write_all(&line)?;
            }
        }
    }
    Ok(())
}

fn text(path: &Path) -> Fallible<&str> {
    Ok(path.to_str().ok_or("not UTF-8")?)
}
