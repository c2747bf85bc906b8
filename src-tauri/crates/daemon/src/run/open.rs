//! Starts a run's program in a sandbox.

use super::network;
use super::serve::OpenedRun;
use super::{Run, ssh_agent};
use ironcurtain_audit::clock::now_ms;
use ironcurtain_audit::{AuditError, Entry, Event};
use ironcurtain_autostart::{
    Autostart, SandboxWatch, SessionFacts, WatchError, WatchedServer, autostart_rules,
};
use ironcurtain_config::home::{HomeError, private_dir};
use ironcurtain_config::{FoundProgram, GitConfigSettings, RunProfile};
use ironcurtain_connection::RunDescriptors;
use ironcurtain_consent::{Principal, Terminal};
use ironcurtain_containment::{HiddenPaths, Profile, SandboxContext, served_view};
use ironcurtain_egress::RuleError;
use ironcurtain_grants::{Client, GrantError, Grants};
use ironcurtain_paths::{CanonicalPath, Resolver, random_name};
use ironcurtain_protocol::{ClientView, RUN_SOCKET, RunHello};
use ironcurtain_sandbox::{
    LaunchedRun, Mount, MountAccess, NetworkAccess, ResourceLimits, SandboxLaunchError, Spec, UnixSockets,
    describe_missing_tun, launch_run,
};
use ironcurtain_server::RunNotes;
use ironcurtain_server::control::{SupervisorControl, SupervisorError};
use ironcurtain_server::network::{
    PublishError, PublishedPort, RunPorts, RunTargets, ServerNetwork, serve_ports,
};
use ironcurtain_server::served_files::{
    self, ProfileGrants, ProfileGrantsError, ServedFiles, ServedFilesOptions,
};
use ironcurtain_services::Services;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::oneshot;

/// Error returned when a run cannot be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The request contains no program.
    #[error("no program was given; run `ironcurtain run -- PROGRAM`")]
    NoProgram,
    /// The user's organization does not allow the run to start.
    #[error("{0}")]
    Managed(String),
    /// The working folder cannot be used.
    #[error("cannot run in `{folder}`: {problem}")]
    Folder {
        /// Path of the working folder.
        folder: String,
        /// Description of the problem.
        problem: String,
    },
    /// The profile does not exist or is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileGrantsError),
    /// The profile's grants cannot be created.
    #[error(transparent)]
    Grant(#[from] GrantError),
    /// A directory for the run cannot be created.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The working folder cannot be watched for autostart files.
    #[error(transparent)]
    Watch(#[from] WatchError),
    /// A pattern in the host list is invalid.
    #[error(transparent)]
    Host(#[from] RuleError),
    /// A port in the run cannot be published.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The sandbox cannot be launched.
    #[error(transparent)]
    Launch(#[from] SandboxLaunchError),
    /// The supervisor failed to start the program.
    #[error(transparent)]
    Supervisor(#[from] SupervisorError),
    /// The start cannot be recorded in the audit log.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Another system call failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Options for starting a run.
pub(crate) struct RunOptions {
    /// Program that requested the run.
    pub(crate) starter: ClientView,
    /// Program to run, including its folder, environment and options.
    pub(crate) request: RunHello,
    /// Standard streams, the connection to the process that started the run, and the terminal for questions.
    pub(crate) descriptors: RunDescriptors,
}

/// Maximum size of the run's private `/tmp`, in bytes.
const TMP_SIZE: u64 = 4 << 30;

/// Maximum number of processes and threads of a run.
const MAX_PROCESSES: u64 = 8192;

impl Run {
    /// Starts a run. Call [`OpenedRun::serve`] next. Also returns the listener on the socket that only this run's
    /// programs can connect to.
    ///
    /// # Errors
    /// Returns [`RunError`] if the run cannot be started. In that case, no program is running.
    pub(crate) async fn open(
        services: Services,
        options: RunOptions,
    ) -> Result<(OpenedRun, UnixListener), RunError> {
        let RunOptions { starter, request, descriptors } = options;
        let RunDescriptors { streams, link, questions } = descriptors;
        if let Some(reason) = services.refusal_without_export() {
            return Err(RunError::Managed(reason));
        }
        let id = random_name()?;
        let folder = working_folder(&request.cwd)?;
        let snapshot = services.snapshot();
        if let Some(rule) = snapshot.protected.denying_rule(&folder, false) {
            let problem = format!("the rule `{}` denies access to it: {}", rule.rule, rule.reason);
            return Err(RunError::Folder { folder: folder.to_string(), problem });
        }
        let principal = Arc::new(principal(&id, starter, &request, &snapshot.home)?);
        let resolver = Resolver::new(snapshot.home.clone(), folder.clone());
        let plan = {
            let (services, request, snapshot) = (services.clone(), request.clone(), snapshot.clone());
            let (folder, principal, resolver) = (folder.clone(), principal.clone(), resolver.clone());
            let plan = move || {
                let plan = served_files::plan(&services, &request, &folder, &snapshot)?;
                let run = (principal.server.as_str(), &resolver);
                let restricted = served_files::restricted(&plan, &snapshot, run);
                let is_mounted = snapshot.limits().may_be_granted(&folder)
                    && served_files::is_unrestricted(&snapshot, run, &folder, &served_files::EVERYTHING);
                Ok::<_, RunError>((plan, restricted, is_mounted))
            };
            tokio::task::spawn_blocking(plan).await.map_err(io::Error::from)?
        };
        let (plan, restricted, is_mounted) = plan?;
        let dir = services.home.sessions().join(&id);
        let session_dir = dir.join("sandbox");
        private_dir(&dir)?;
        private_dir(&session_dir)?;
        let around = SandboxContext::new(
            &services.home,
            &snapshot.home,
            &snapshot.protected,
            &canonical(&session_dir)?,
        )?;
        let started_ms = now_ms();
        services.autostart.session_started(&id, facts(&principal, started_ms));
        let mut guard = OpenGuard {
            autostart: services.autostart.clone(),
            grants: services.grants.clone(),
            id: Some(id.clone()),
        };
        let sandbox = Profile { git_config: Some(GitConfigSettings::Guarded), ..Profile::default() };
        let watched = WatchedServer { session: &id, server: &principal.server, earlier_processes: 0 };
        let watch = services.autostart.watch(watched, autostart_rules(&sandbox, &around)).await?;
        let mut mounts = served_files::mounts(&plan, &restricted);
        if is_mounted {
            mounts.push(mount(&folder, &watch, &around).await?);
        }
        let targets = RunTargets::new(resolver.clone(), plan.profile.hosts.clone())?;
        let ports = RunPorts {
            named: request.ports.iter().copied().collect(),
            published: request.publish.iter().copied().collect(),
        };
        let (notes, starter_notes) = RunNotes::new(request.ask);
        let network = ServerNetwork::for_run(&services, &principal, (targets, ports), notes.clone());
        let publish = request.publish.iter().map(|port| PublishedPort::listen(*port));
        let published = publish.collect::<Result<Vec<_>, _>>()?;
        let supervisor = services.programs.dir.join("ironcurtain-sandbox");
        let sockets = [RUN_SOCKET].into_iter().chain(request.ssh_agent.as_ref().map(|_| ssh_agent::SOCKET));
        let mut view = served_view(&snapshot.home, &plan.protection(&snapshot.protected), sockets);
        let mut env = environment(&request.env, &plan.profile, &snapshot.home);
        env.extend(network::environment(&supervisor, &mut view));
        if request.ssh_agent.is_some() {
            ssh_agent::set_environment(&mut env);
        }
        let shim = services.programs.dir.join("ironcurtain-shim");
        shim.to_str().iter().for_each(|shim| view.show_program(shim));
        let spec = Spec {
            argv: plan.argv.clone(),
            env,
            cwd: Some(folder.as_str().to_owned()),
            home: Some(snapshot.home.as_str().to_owned()),
            view,
            mounts,
            read_only: vec![],
            pinned: vec![],
            hidden: vec![],
            network: NetworkAccess::ProxiedWithServices,
            unix_sockets: UnixSockets::Own,
            limits: ResourceLimits {
                memory: None,
                cpu: None,
                processes: Some(MAX_PROCESSES),
                open_files: None,
                file_size: None,
                tmp_size: Some(TMP_SIZE),
            },
            state_dir: around.sandboxes.as_str().to_owned(),
            allow_root: services.programs.allow_root,
        };
        let (profile, profile_grants) = ProfileGrants::new(plan, &principal, (&restricted, request.learn))?;
        services.grants.create(profile_grants).await?;
        let (exited, exit) = oneshot::channel();
        let launched = tokio::task::spawn_blocking(move || {
            // Ignore the error, which occurs if the run was abandoned.
            launch_run(&spec, &supervisor, streams, link, move |exit| _ = exited.send(exit))
        });
        let LaunchedRun { control, view, egress, services: service_link, pid, kill } =
            launched.await.map_err(io::Error::from)??;
        let mut control = SupervisorControl::new(control, Some(watch))?;
        control.started().await?;
        let limitation = control.tun_error().map(describe_missing_tun);
        let (proxy, listeners) = network::serve(&network, egress, request.ssh_agent.is_some()).await?;
        let service_link = service_link.ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        let ports = serve_ports(network.local(), service_link, published)?;
        view.set_nonblocking(true)?;
        let view = UnixStream::from_std(view)?;
        if let Some(terminal) = questions {
            let terminal = Terminal::new(terminal.try_clone()?, terminal)?;
            services.broker.set_session_front_end(&id, Arc::new(terminal));
        }
        let (files, inbox) = ServedFiles::new(ServedFilesOptions {
            id: id.clone(),
            principal: principal.clone(),
            services: services.clone(),
            resolver,
            notes,
            profile,
            mounted: Vec::new(),
            working_folder: is_mounted.then(|| folder.clone()),
            closed: HiddenPaths::default(),
            pid,
            calls: Box::new(Vec::new),
            is_frozen_when_paused: true,
            counts: Arc::default(),
        });
        let run =
            Arc::new(Self { id, files, network, folder, pid, started_ms, limitation, principal, services });
        run.services.audit.record(run.started()).await?;
        for port in &request.publish {
            let what = format!("port {port} of {} is available at 127.0.0.1:{port}", run.principal.server);
            run.services.audit.record(run.principal.entry(Event::Session, what)).await?;
        }
        guard.id = None;
        run.services.changed();
        let network = (proxy, ports);
        let agent = listeners.ssh_agent.zip(request.ssh_agent.map(PathBuf::from));
        let agent =
            agent.map(|(listener, agent)| tokio::spawn(ssh_agent::serve(run.clone(), listener, agent)));
        let opened = OpenedRun { run, control, kill, exit, view, inbox, network, starter_notes, agent };
        Ok((opened, listeners.sessions))
    }

    /// Creates the audit entry for the start of the run.
    fn started(&self) -> Entry {
        let plan = &self.files.profile.plan;
        let summary =
            format!("{} was started with the profile `{}`", self.principal.server, plan.profile.name);
        let mut entry = self.principal.entry(Event::Session, summary);
        entry.paths = plan.programs.iter().map(|path| path.as_str().to_owned()).collect();
        entry
    }
}

/// Guard that removes the state of a run that could not be started. Disarm it after a successful start.
struct OpenGuard {
    autostart: Autostart,
    grants: Grants,
    id: Option<String>,
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        if let Some(id) = &self.id {
            self.grants.end_session(id);
            self.autostart.session_ended(id);
        }
    }
}

fn working_folder(cwd: &str) -> Result<CanonicalPath, RunError> {
    let failed = |problem: String| RunError::Folder { folder: cwd.to_owned(), problem };
    let real_path = Path::new(cwd).canonicalize().map_err(|e| failed(e.to_string()))?;
    if !real_path.is_dir() {
        return Err(failed("it is not a folder".to_owned()));
    }
    canonical(&real_path).map_err(|e| failed(e.to_string()))
}

fn canonical(path: &Path) -> io::Result<CanonicalPath> {
    let real_path = path.canonicalize()?;
    let text = real_path.to_str().ok_or_else(|| io::Error::other("it is not UTF-8"))?;
    CanonicalPath::assume_canonical(text).map_err(io::Error::other)
}

/// Returns the principal `run:NAME` for the program. Its grants apply only to the same program file.
fn principal(
    session: &str,
    starter: ClientView,
    request: &RunHello,
    home: &CanonicalPath,
) -> Result<Principal, RunError> {
    let program = request.argv.first().filter(|program| !program.is_empty()).ok_or(RunError::NoProgram)?;
    let name =
        Path::new(program).file_name().map_or(program.clone(), |name| name.to_string_lossy().into_owned());
    let path = request.env.get("PATH").map(String::as_str).unwrap_or_default();
    let found = FoundProgram::find(program, path, Path::new(&request.cwd));
    let file = found.map_or_else(|| home.as_path().join(program), |found| found.real);
    let exe = file.to_string_lossy().into_owned();
    Ok(Principal {
        session: session.to_owned(),
        client: Client {
            key: exe.clone(),
            view: ClientView {
                name: name.clone(),
                exe: Some(exe),
                cwd: Some(request.cwd.clone()),
                claimed_name: None,
                label: None,
                ..starter
            },
        },
        claimed_name: Arc::new(Mutex::new(None)),
        server: format!("run:{name}"),
        server_command: request.argv.join(" "),
        sandboxed: true,
        remote: false,
        is_new: false,
    })
}

fn facts(principal: &Principal, started_ms: u64) -> SessionFacts {
    SessionFacts {
        client: principal.client.view.name.clone(),
        server: principal.server.clone(),
        sandboxed: true,
        remote: false,
        started_ms,
    }
}

/// Returns the mount for the working folder.
async fn mount(
    folder: &CanonicalPath,
    watch: &SandboxWatch,
    around: &SandboxContext,
) -> Result<Mount, WatchError> {
    let closed = watch.open(folder.as_str()).await?;
    let kept = around.masked_paths_in(folder);
    Ok(Mount::new(folder.as_str(), MountAccess::ReadWrite).with_read_only(closed).with_pinned(kept))
}

fn environment(
    starter_env: &BTreeMap<String, String>,
    profile: &RunProfile,
    home: &CanonicalPath,
) -> BTreeMap<String, String> {
    let passed_variables = starter_env.iter().filter(|(name, _)| profile.passes(name));
    let mut env: BTreeMap<String, String> =
        passed_variables.chain(&profile.set_env).map(|(name, value)| (name.clone(), value.clone())).collect();
    env.entry("PATH".to_owned()).or_insert_with(|| "/usr/local/bin:/usr/bin:/bin".to_owned());
    env.insert("HOME".to_owned(), home.as_str().to_owned());
    env.insert("TMPDIR".to_owned(), "/tmp".to_owned());
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_has_what_the_profile_names() {
        let profile = RunProfile {
            env: ["TERM", "LC_*"].map(str::to_owned).into(),
            set_env: [("CACHE".to_owned(), "/tmp/c".to_owned())].into(),
            ..RunProfile::default()
        };
        let starter_env =
            [("TERM", "xterm"), ("LC_ALL", "C"), ("TOKEN", "t"), ("HOME", "/elsewhere"), ("LD_PRELOAD", "x")];
        let starter_env = starter_env.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let home = CanonicalPath::assume_canonical("/home/u").unwrap();
        let expected = [
            ("CACHE", "/tmp/c"),
            ("HOME", "/home/u"),
            ("LC_ALL", "C"),
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("TERM", "xterm"),
            ("TMPDIR", "/tmp"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        assert_eq!(environment(&starter_env, &profile, &home), expected);
    }
}
