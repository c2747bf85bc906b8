//! Measures how long it takes to add a folder grant to a running server and to remove it.

use super::{Fallible, median};
use ironcurtain_sandbox::{
    ControlAnswer, ControlOp, Mount, MountAccess, NetworkAccess, ResourceLimits, SandboxEvent, Spec,
    UnixSockets, UnmountProof, View, client::ControlClient, launch,
};
use std::{
    path::Path,
    time::{Duration, Instant},
};

/// Median durations of adding and removing a grant.
pub(crate) struct Live {
    pub(crate) add: Duration,
    pub(crate) remove: Duration,
}

/// Repeatedly adds and removes a grant of a folder in `dir`.
pub(crate) fn measure(program: &str, dir: &Path, rounds: usize) -> Fallible<Live> {
    let folder = |name: &str| -> Fallible<String> {
        let path = dir.join(name);
        std::fs::create_dir_all(&path)?;
        Ok(path.to_str().ok_or("not UTF-8")?.to_owned())
    };
    let granted = folder("granted")?;
    let spec = Spec {
        argv: vec!["cat".into()],
        env: [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into(),
        cwd: None,
        home: None,
        view: View::Roots { session_dir: folder("session")?, programs: vec![] },
        mounts: vec![],
        network: NetworkAccess::None,
        unix_sockets: UnixSockets::None,
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: ResourceLimits::default(),
        state_dir: format!("{}/state", dir.to_str().ok_or("not UTF-8")?),
        allow_root: true,
    };
    let server = launch(&spec, Path::new(program), |_| ())?;
    let mut control = ControlClient::new(server.control, Duration::from_secs(10))?;
    if control.event()? != SandboxEvent::Started {
        return Err("the sandbox did not start".into());
    }
    let mut removals = Vec::new();
    let add = median(rounds, || {
        let began = Instant::now();
        let added = control.request(ControlOp::Add(Mount::new(&granted, MountAccess::ReadOnly)))?;
        let took = began.elapsed();
        let began = Instant::now();
        let removed = control.request(ControlOp::Remove { path: granted.clone() })?;
        removals.push(began.elapsed());
        let expected = (ControlAnswer::Added, ControlAnswer::Removed { proof: UnmountProof::Proved });
        if (added, removed) == expected { Ok(took) } else { Err("a grant failed".into()) }
    })?;
    let mut removals = removals.into_iter();
    let remove = median(rounds, || removals.next().ok_or_else(|| "a removal is missing".into()))?;
    Ok(Live { add, remove })
}
