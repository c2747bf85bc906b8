//! Starts a server from its specification.
//!
//! - Bubblewrap sets up its base file system while this process determines the read-only paths and prepares the
//!   initial mounts.
//! - INVARIANT: the server starts only after every mount and mask is in place. On any failure, bubblewrap is killed.

use std::{
    collections::BTreeMap,
    io,
    os::{fd::OwnedFd, unix::net::UnixStream},
};

use rustix::{
    event::{PollFd, Timespec, poll},
    process::{Pid, getgid, getuid},
};

use super::{
    SupervisorStartError,
    bwrap::{Bwrap, InheritedDescriptors},
    namespaces,
    owner::SandboxOwner,
    served::ServedView,
    tun::ServedTun,
};
use crate::{
    cgroup::CgroupLimits,
    connector::Connections,
    control::{Enforcement, SandboxEvent},
    host::{HostTree, RootEntry},
    mount_plan::{MountPlan, ViewLayout},
    mountinfo::MountInfo,
    mounts::{InitialMounts, Mounts},
    nofollow::is_at_or_below,
    services::Services,
    spec::{SOCKET_FOLDER, Spec, UnixSockets, View, is_normal},
    special::{SpecialFileLink, WatchFolderError, is_folder},
    state::StateDir,
};

/// Starts the server. If `parent` is set, the sandbox dies with that process. `closed` returns the paths that stay
/// read-only inside the view's writable paths.
pub(super) fn start(
    parent: Option<Pid>,
    spec: &Spec,
    owner: &dyn SandboxOwner,
    inherited: InheritedDescriptors,
    (view, mut special, services): (Option<OwnedFd>, SpecialFileLink, Option<UnixStream>),
    closed: impl FnOnce(&ViewLayout) -> io::Result<Vec<String>>,
) -> Result<(Bwrap, Mounts), SupervisorStartError> {
    spec.validate()?;
    let (uid, gid) = (getuid(), getgid());
    if uid.is_root() && !spec.allow_root {
        return Err(SupervisorStartError::Root);
    }
    namespaces::enter(parent, uid, gid).map_err(SupervisorStartError::Namespaces)?;

    let served = match &spec.view {
        View::Served { hidden, session_dir, programs, .. } => {
            let home = spec.user_home().map_or("/", String::as_str);
            let granted = spec.mounts.iter().map(|mount| &mount.path);
            let points: Vec<String> = session_dir.iter().chain(programs).chain(granted).cloned().collect();
            Some(ServedView::start((hidden, &points, home), view)?)
        }
        View::Roots { .. } | View::HostRead { .. } => None,
    };
    // Bubblewrap starts now and waits for its options while this process inspects the host.
    let bwrap = Bwrap::start(spec, &inherited, MountPlan::default())?;
    let state = StateDir::open(&spec.state_dir, uid.as_raw())?;
    let table = MountInfo::parse(&std::fs::read("/proc/self/mountinfo")?);
    let mut layout = ViewLayout::for_spec(spec, &table, &state.path().to_string_lossy())?;
    let host = HostTree::inspect(uid.is_root(), &spec.view, spec.has_tun())?;
    let controlled = inherited.group.as_ref().map(|(_, controlled)| *controlled).unwrap_or_default();
    let frame: Vec<String> = host.frame().map(|(path, _)| path.clone()).collect();
    let hidden = layout.plan.hidden_within(&frame);
    let mut bwrap = if hidden.is_empty() {
        bwrap
    } else {
        drop(bwrap);
        Bwrap::start(spec, &inherited, hidden)?
    };
    bwrap.write_options(spec, &host)?;
    bwrap.set_view(served);
    drop(inherited);

    let closed = closed(&layout)?;
    close(&mut layout, &closed, &spec.pinned);
    mask_special(spec, &mut layout, &mut special)?;
    let mounts = mount_and_start(spec, (layout, host, special, services), &mut bwrap, owner)?;
    owner.notify(&limits_event(spec, controlled))?;
    Ok((bwrap, mounts))
}

/// Makes `closed` and `kept` read-only in the writable trees. A writable tree that is closed as a whole is no longer
/// listed as writable.
fn close(layout: &mut ViewLayout, closed: &[String], kept: &[String]) {
    layout.writable.retain(|root| !closed.iter().chain(kept).any(|closed| is_at_or_below(root, closed)));
    for root in &layout.writable {
        layout.plan.set_read_only_in(root, closed);
        layout.plan.pin_read_only_in(root, kept);
    }
}

/// Masks pipes and sockets in the user's folders that the view shows. Those in the session folder belong to the
/// sandbox.
fn mask_special(
    spec: &Spec,
    layout: &mut ViewLayout,
    special: &mut SpecialFileLink,
) -> Result<(), SupervisorStartError> {
    let (session, named) = match &spec.view {
        View::Roots { session_dir, programs } => (Some(session_dir), programs.as_slice()),
        View::HostRead { session_dir, .. } => (session_dir.as_ref(), layout.writable.as_slice()),
        View::Served { session_dir, programs, .. } => (session_dir.as_ref(), programs.as_slice()),
    };
    let folders: Vec<String> =
        named.iter().filter(|path| Some(*path) != session && is_folder(path)).cloned().collect();
    for folder in folders {
        let found = special.watch(&folder, layout.plan.hidden().cloned().collect());
        layout.plan.mask_special(found.map_err(|error| match error {
            WatchFolderError::Refused(reason) => SupervisorStartError::Setup(reason),
            WatchFolderError::Broken(error) => error.into(),
        })?);
    }
    // If the whole host is visible, pipes and sockets are searched for only in the home directory.
    if let (View::HostRead { session_dir: Some(session_dir), .. }, Some(home)) =
        (&spec.view, spec.user_home().filter(|home| is_normal(home) && is_folder(home)))
    {
        let hidden = layout.plan.hidden().chain([session_dir]).cloned().collect();
        special.watch_in_background(home, hidden)?;
    }
    Ok(())
}

/// Creates the mounts and starts the server.
fn mount_and_start(
    spec: &Spec,
    (layout, host, special, services): (ViewLayout, HostTree, SpecialFileLink, Option<UnixStream>),
    bwrap: &mut Bwrap,
    owner: &dyn SandboxOwner,
) -> Result<Mounts, SupervisorStartError> {
    let frame =
        host.frame().filter(|(_, entry)| *entry == RootEntry::Present).map(|(path, _)| (path.clone(), false));
    let mut shown: BTreeMap<String, bool> = frame.collect();
    let initial = initial_mounts(spec, &layout, host);
    shown.extend(initial.shown.clone());
    bwrap.prepare(initial)?;
    let (sandbox, mut fixed) = bwrap.wait_for_frame(owner, spec.view.has_own_tmp())?;
    if spec.has_tun() {
        match sandbox.network().and_then(ServedTun::start) {
            Ok(tun) => bwrap.set_tun(tun),
            // Without the device, these programs have no network at all.
            Err(error) => owner.notify(&SandboxEvent::TunUnavailable { reason: error.to_string() })?,
        }
    }
    fixed.retain(|path, _| match &spec.view {
        View::Roots { programs, .. } | View::Served { programs, .. } => {
            layout.writable.contains(path) || programs.contains(path)
        }
        View::HostRead { .. } => layout.writable.contains(path),
    });
    let mut mounts = Mounts::new(sandbox, fixed, layout.plan, &shown, special)?;
    for mount in &spec.mounts {
        mounts.add(mount)?;
    }
    mounts.restore_masks()?;
    bwrap.wait_until_ready(owner, mounts.sandbox())?;
    if is_any_ready([mounts.poll_fd(), mounts.special_poll_fd()])? {
        mounts.restore_masks()?;
    }
    let connections = spec.reports_connections().then(|| connections(spec, &mounts, services)).transpose()?;
    bwrap.start_server(owner, connections)?;
    owner.notify(&SandboxEvent::Started)?;
    Ok(mounts)
}

/// Returns the connections to permit: to unix sockets in the sandbox's own folders, and to services through
/// `services`.
fn connections(spec: &Spec, mounts: &Mounts, services: Option<UnixStream>) -> io::Result<Connections> {
    let has_own = spec.unix_sockets == UnixSockets::Own;
    let own = if has_own { own_mounts(spec, mounts)? } else { vec![] };
    let services = services
        .map(|link| Ok::<_, io::Error>(Services::new(mounts.sandbox().network()?, link)))
        .transpose()?;
    Ok(Connections { own, services })
}

/// Returns the mount ids of the folders that only the sandbox can write to.
fn own_mounts(spec: &Spec, mounts: &Mounts) -> io::Result<Vec<u64>> {
    let session = match &spec.view {
        View::Roots { session_dir, .. } => Some(session_dir.as_str()),
        View::HostRead { session_dir, .. } | View::Served { session_dir, .. } => session_dir.as_deref(),
    };
    let tmp = spec.view.has_own_tmp().then_some("/tmp");
    let sockets = (!spec.view.sockets().is_empty()).then_some(SOCKET_FOLDER);
    let own = session.into_iter().chain(tmp).chain(sockets).chain(["/dev/shm"]);
    own.map(|path| mounts.sandbox().mount_at(path)).collect()
}

/// Returns `true` if a descriptor is ready.
fn is_any_ready(mut polled: [PollFd<'_>; 2]) -> io::Result<bool> {
    poll(&mut polled, Some(&Timespec::default()))?;
    Ok(polled.iter().any(|polled| !polled.revents().is_empty()))
}

/// Returns the mounts to create once the base file system is complete.
fn initial_mounts(spec: &Spec, layout: &ViewLayout, host: HostTree) -> InitialMounts {
    let own_tmp = spec.view.has_own_tmp();
    let on_tmp = layout.shown.iter().filter(|path| own_tmp && path.starts_with("/tmp/"));
    let read = host.rest().chain(&host.etc).chain(on_tmp);
    let programs = match &spec.view {
        View::Roots { programs, .. } | View::Served { programs, .. } => programs.as_slice(),
        View::HostRead { .. } => &[],
    };
    let served = match &spec.view {
        View::Served { folders, .. } => folders.clone(),
        View::Roots { .. } | View::HostRead { .. } => vec![],
    };
    let read = read.chain(programs).map(|path| (path.clone(), false));
    let shown = read.chain(layout.writable.iter().map(|path| (path.clone(), true))).collect();
    InitialMounts {
        plan: layout.plan.clone(),
        shown,
        read_only_paths: host.read_only_paths,
        masked: host.masked,
        own_tmp,
        served,
    }
}

/// Returns the event that reports how each limit is enforced.
fn limits_event(spec: &Spec, group: CgroupLimits) -> SandboxEvent {
    let enforcement = |asked: bool, in_group: bool, otherwise| match (asked, in_group) {
        (false, _) => Enforcement::Unlimited,
        (true, true) => Enforcement::Cgroup,
        (true, false) => otherwise,
    };
    let process_enforcement = if getuid().is_root() { Enforcement::Unenforced } else { Enforcement::Sandbox };
    SandboxEvent::Limited {
        memory: enforcement(spec.limits.memory.is_some(), group.memory, Enforcement::Process),
        cpu: enforcement(spec.limits.cpu.is_some(), group.cpu, Enforcement::Unenforced),
        processes: enforcement(spec.limits.processes.is_some(), group.processes, process_enforcement),
    }
}
