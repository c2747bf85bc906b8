//! Answers the access questions from a served view: allows reads below one folder, and denies every other access.

use std::{
    io::{self, BufRead, BufReader, Write},
    os::unix::net::UnixStream,
    path::PathBuf,
    thread,
};

use ironcurtain_sandbox::{
    MountAccess, ServiceLink, Spec,
    file_access::{AccessAnswer, FileAccess, FromView, ToView},
};

/// Answers questions until the sandbox exits.
pub(crate) fn serve(view: UnixStream, spec: &Spec, readable: PathBuf) -> io::Result<()> {
    let mounted = spec.mounts.iter().filter(|mount| mount.access == MountAccess::ReadWrite);
    tell(&view, &ToView::Mounted { paths: mounted.map(|mount| mount.path.clone()).collect() })?;
    thread::spawn(move || {
        let lines = BufReader::new(&view).lines().map_while(Result::ok);
        for message in lines.filter_map(|line| serde_json::from_str(&line).ok()) {
            let FromView::Ask { id, path, access, .. } = message else { continue };
            let is_allowed = access == FileAccess::Read && PathBuf::from(path).starts_with(&readable);
            let answer = if is_allowed { AccessAnswer::Once } else { AccessAnswer::Denied };
            // Ignores the error: the sandbox has exited.
            let _ = tell(&view, &ToView::Answer { id, answer });
        }
    });
    Ok(())
}

/// Refuses all connections to services on this computer.
pub(crate) fn refuse(services: ServiceLink) {
    thread::spawn(move || while services.next().is_ok() {});
}

fn tell(mut view: &UnixStream, message: &ToView) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    view.write_all(&line)
}
