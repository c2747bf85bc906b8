//! From a specification to a running server.
//!
//! - Bubblewrap sets up while what is closed is found and what is mounted first is prepared.
//! - INVARIANT: the server starts when all of that is done, and every mask is in place. If any of it fails, bubblewrap ends.

use std::{collections::BTreeMap, io};

use rustix::{
    event::{PollFd, Timespec, poll},
    process::{Pid, getgid, getuid},
};

use super::{
    SupervisorStartError,
    bwrap::{Bwrap, InheritedDescriptors},
    namespaces,
    owner::SandboxOwner,
};
use crate::{
    cgroup::CgroupLimits,
    control::{Enforcement, SandboxEvent},
    host::{HostTree, RootEntry},
    mount_plan::{MountPlan, ViewLayout},
    mountinfo::MountInfo,
    mounts::{InitialMounts, Mounts},
    place::is_at_or_below,
    spec::{Spec, UnixSockets, View, is_normal},
    special::{NotWatched, SpecialLink, is_folder},
    state::StateDir,
};

/// Starts the server; the sandbox ends with `parent` if there is one. `closed` says what is not to be written in the writable
/// paths of the view.
pub(super) fn start(
    parent: Option<Pid>,
    spec: &Spec,
    owner: &dyn SandboxOwner,
    given: InheritedDescriptors,
    mut special: SpecialLink,
    closed: impl FnOnce(&ViewLayout) -> io::Result<Vec<String>>,
) -> Result<(Bwrap, Mounts), SupervisorStartError> {
    spec.validate()?;
    let (uid, gid) = (getuid(), getgid());
    if uid.is_root() && !spec.allow_root {
        return Err(SupervisorStartError::Root);
    }
    namespaces::enter(parent, uid, gid).map_err(SupervisorStartError::Namespaces)?;

    // Bubblewrap starts while the host is looked at, and waits for its options.
    let bwrap = Bwrap::start(spec, &given, MountPlan::default())?;
    let state = StateDir::open(&spec.state_dir, uid.as_raw())?;
    let table = MountInfo::parse(&std::fs::read("/proc/self/mountinfo")?);
    let mut layout = ViewLayout::of(spec, &table, &state.path().to_string_lossy())?;
    let host = HostTree::look(uid.is_root(), &spec.view)?;
    let controlled = given.group.as_ref().map(|(_, controlled)| *controlled).unwrap_or_default();
    let frame: Vec<String> = host.frame().map(|(path, _)| path.clone()).collect();
    let hidden = layout.plan.hidden_within(&frame);
    let mut bwrap = if hidden.is_empty() {
        bwrap
    } else {
        drop(bwrap);
        Bwrap::start(spec, &given, hidden)?
    };
    bwrap.give_options(spec, &host)?;
    drop(given);

    let closed = closed(&layout)?;
    close(&mut layout, &closed, &spec.kept);
    mask_special(spec, &mut layout, &mut special)?;
    let mounts = mount_and_start(spec, (layout, host, special), &mut bwrap, owner)?;
    owner.say(&in_force(spec, controlled))?;
    Ok((bwrap, mounts))
}

/// Closes those paths in what is writable; what is closed itself is not writable at all.
fn close(layout: &mut ViewLayout, closed: &[String], kept: &[String]) {
    layout.writable.retain(|root| !closed.iter().chain(kept).any(|closed| is_at_or_below(root, closed)));
    for root in &layout.writable {
        layout.plan.close_in(root, closed);
        layout.plan.keep_in(root, kept);
    }
}

/// Masks the pipes and sockets in what the view shows of the user's folders. In the folder of the session they are its own.
fn mask_special(
    spec: &Spec,
    layout: &mut ViewLayout,
    special: &mut SpecialLink,
) -> Result<(), SupervisorStartError> {
    let (session, named) = match &spec.view {
        View::Roots { session_dir, programs } => (Some(session_dir), programs.as_slice()),
        View::HostRead { session_dir, .. } => (session_dir.as_ref(), layout.writable.as_slice()),
    };
    let folders: Vec<String> =
        named.iter().filter(|path| Some(*path) != session && is_folder(path)).cloned().collect();
    for folder in folders {
        let found = special.watch(&folder, layout.plan.hidden().cloned().collect());
        layout.plan.mask_special(found.map_err(|error| match error {
            NotWatched::Refused(reason) => SupervisorStartError::Setup(reason),
            NotWatched::Broken(error) => error.into(),
        })?);
    }
    // Of the whole host, the home is where the user's are.
    if let (View::HostRead { session_dir: Some(session_dir), .. }, Some(home)) =
        (&spec.view, spec.env.get("HOME").filter(|home| is_normal(home) && is_folder(home)))
    {
        let hidden = layout.plan.hidden().chain([session_dir]).cloned().collect();
        special.watch_aside(home, hidden)?;
    }
    Ok(())
}

/// Mounts what is shown, and lets the server start.
fn mount_and_start(
    spec: &Spec,
    (layout, host, special): (ViewLayout, HostTree, SpecialLink),
    bwrap: &mut Bwrap,
    owner: &dyn SandboxOwner,
) -> Result<Mounts, SupervisorStartError> {
    let frame =
        host.frame().filter(|(_, top)| *top == RootEntry::There).map(|(path, _)| (path.clone(), false));
    let mut shown: BTreeMap<String, bool> = frame.collect();
    let first = first(spec, &layout, host);
    shown.extend(first.shown.clone());
    bwrap.prepare(first)?;
    let (sandbox, mut fixed) = bwrap.wait_for_frame(owner, spec.view.has_own_tmp())?;
    fixed.retain(|path, _| match &spec.view {
        View::Roots { programs, .. } => layout.writable.contains(path) || programs.contains(path),
        View::HostRead { .. } => layout.writable.contains(path),
    });
    let mut mounts = Mounts::new(sandbox, fixed, layout.plan, &shown, special)?;
    for mount in &spec.mounts {
        mounts.add(mount)?;
    }
    mounts.restore_masks()?;
    bwrap.wait_until_ready(owner, mounts.sandbox())?;
    if has_news([mounts.news(), mounts.special_news()])? {
        mounts.restore_masks()?;
    }
    let own = (spec.unix_sockets == UnixSockets::Own).then(|| own_mounts(spec, &mounts)).transpose()?;
    bwrap.start_server(owner, own)?;
    owner.say(&SandboxEvent::Started)?;
    Ok(mounts)
}

/// The mounts of the folders that only the sandbox writes to.
fn own_mounts(spec: &Spec, mounts: &Mounts) -> io::Result<Vec<u64>> {
    let session = match &spec.view {
        View::Roots { session_dir, .. } => Some(session_dir.as_str()),
        View::HostRead { session_dir, .. } => session_dir.as_deref(),
    };
    let tmp = spec.view.has_own_tmp().then_some("/tmp");
    let own = session.into_iter().chain(tmp).chain(["/dev/shm"]);
    own.map(|path| mounts.sandbox().mount_at(path)).collect()
}

/// True when there is news now.
fn has_news(mut polled: [PollFd<'_>; 2]) -> io::Result<bool> {
    poll(&mut polled, Some(&Timespec::default()))?;
    Ok(polled.iter().any(|polled| !polled.revents().is_empty()))
}

/// The mounts that are made when the frame is complete.
fn first(spec: &Spec, layout: &ViewLayout, host: HostTree) -> InitialMounts {
    let own_tmp = spec.view.has_own_tmp();
    let on_tmp = layout.shown.iter().filter(|path| own_tmp && path.starts_with("/tmp/"));
    let read = host.rest().chain(&host.etc).chain(on_tmp);
    let programs = match &spec.view {
        View::Roots { programs, .. } => programs.as_slice(),
        View::HostRead { .. } => &[],
    };
    let read = read.chain(programs).map(|path| (path.clone(), false));
    let shown = read.chain(layout.writable.iter().map(|path| (path.clone(), true))).collect();
    InitialMounts {
        plan: layout.plan.clone(),
        shown,
        read_only_paths: host.read_only_paths,
        masked: host.masked,
        own_tmp,
    }
}

/// The limits in force, and what enforces each.
fn in_force(spec: &Spec, group: CgroupLimits) -> SandboxEvent {
    let by = |asked: bool, in_group: bool, otherwise| match (asked, in_group) {
        (false, _) => Enforcement::Unlimited,
        (true, true) => Enforcement::Cgroup,
        (true, false) => otherwise,
    };
    let of_processes = if getuid().is_root() { Enforcement::Unenforced } else { Enforcement::Sandbox };
    SandboxEvent::Limited {
        memory: by(spec.limits.memory.is_some(), group.memory, Enforcement::Process),
        cpu: by(spec.limits.cpu.is_some(), group.cpu, Enforcement::Unenforced),
        processes: by(spec.limits.processes.is_some(), group.processes, of_processes),
    }
}
