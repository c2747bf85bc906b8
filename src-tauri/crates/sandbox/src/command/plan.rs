//! Plans the sandbox for a command.

use std::{
    collections::BTreeMap,
    env,
    ffi::OsString,
    io,
    path::{Path, PathBuf},
};

use ironcurtain_egress::{HostRules, RuleError};
use ironcurtain_srt_settings::{CommandArguments, CommandLine, PathBase, SrtSettingsFile};

use super::{
    environment::{EnvironmentSources, environment},
    lists::{ListError, PathLists},
};
use crate::{
    autostart::{AutostartMode, AutostartRules, GitConfig},
    nofollow::is_at_or_below,
    proxy_config::{AddressRange, ProxyConfig, RangeError},
    spec::{NetworkAccess, ResourceLimits, Spec, UnixSockets, View},
    supervisor::ForegroundCommand,
};

/// Environment variable that relocates all of IronCurtain's directories.
const HOME_VARIABLE: &str = "IRONCURTAIN_HOME";

/// Folder for temporary files, always writable in the sandbox.
const OWN_TMP_DIR: &str = "/dev/shm";

/// Specification of a command's sandbox and proxy.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) foreground: ForegroundCommand,
    /// Configuration of the proxy, or `None` if no hosts are allowed.
    pub(super) proxy: Option<ProxyConfig>,
    /// Notes to print for the user.
    pub(super) notes: Vec<String>,
}

/// Environment and directories of this process, from which a command's sandbox is planned.
#[derive(Debug)]
pub(super) struct CommandContext {
    pub(super) home: String,
    pub(super) program: String,
    cwd: String,
    env: BTreeMap<String, String>,
}

/// Reason a sandbox cannot be planned.
#[derive(Debug, thiserror::Error)]
pub(super) enum PlanError {
    #[error("no home directory; set `HOME` to an existing directory")]
    Home,
    #[error("`{0}` is not UTF-8")]
    NotUtf8(String),
    #[error(transparent)]
    List(#[from] ListError),
    #[error("network.{key}: {problem}")]
    Domain { key: &'static str, problem: RuleError },
    #[error("network.deniedResolvedAddresses: {0}")]
    Address(#[from] RangeError),
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl CommandContext {
    /// Reads the environment and directories of this process.
    pub(super) fn detect() -> Result<Self, PlanError> {
        let home = env::home_dir().and_then(|home| home.canonicalize().ok()).ok_or(PlanError::Home)?;
        // Specifications are JSON, so every string must be UTF-8.
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        Ok(Self {
            home: utf8_path(&home)?,
            program: utf8_path(&env::current_exe()?)?,
            cwd: utf8_path(&env::current_dir()?)?,
            env: env::vars_os().filter_map(text).collect(),
        })
    }

    /// Returns all directories that may contain IronCurtain's files, as set by the environment.
    fn own_dirs(&self) -> Vec<PathBuf> {
        let home = Path::new(&self.home);
        let dir_from_variable = |variable: &str| self.env.get(variable).map(PathBuf::from);
        let ours = |base: PathBuf| base.join("ironcurtain");
        let default_dirs = [home.join(".config"), home.join(".local/state"), home.join(".local/share")];
        let named = ["XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"];
        let dirs = default_dirs.into_iter().chain(named.into_iter().filter_map(dir_from_variable)).map(ours);
        dirs.chain(dir_from_variable(HOME_VARIABLE)).collect()
    }
}

impl CommandContext {
    /// Returns the sandboxes' state directory, which commands share with the trusted process.
    pub(super) fn state_dir(&self) -> Result<String, PlanError> {
        let dir_from_variable =
            |variable: &str| self.env.get(variable).filter(|dir| !dir.is_empty()).map(PathBuf::from);
        let state = match dir_from_variable(HOME_VARIABLE) {
            Some(all) => Path::new(&self.cwd).join(all).join("state"),
            None => {
                // A relative path is ignored, as required by the XDG specification.
                let base = dir_from_variable("XDG_STATE_HOME").filter(|dir| dir.is_absolute());
                base.unwrap_or_else(|| Path::new(&self.home).join(".local/state")).join("ironcurtain")
            }
        };
        utf8_path(&state.join("sandboxes"))
    }
}

/// Plans the sandbox. Fails if the settings cannot be applied exactly.
pub(super) fn plan(
    run: &CommandLine,
    arguments: &CommandArguments,
    settings: &SrtSettingsFile,
    context: &CommandContext,
) -> Result<Plan, PlanError> {
    let proxy = proxy_config(settings, arguments.debug)?;
    let base = PathBase { cwd: context.cwd.clone(), home: context.home.clone() };
    let mut lists = PathLists::from_settings(settings, &base, &context.own_dirs())?;
    let mut notes = std::mem::take(&mut lists.notes);
    let mut cwd = context.cwd.clone();
    if cwd == "/" || !lists.is_visible(&cwd).map_err(ListError::from)? {
        if cwd != "/" {
            notes.push(format!("the working directory `{cwd}` is hidden, so the command starts in `/`"));
        }
        cwd = String::new();
    }
    let tmp_dir = context.env.get("TMPDIR").map_or("/tmp", |dir| dir.trim_end_matches('/'));
    let is_writable = lists.allow_write.iter().any(|root| is_at_or_below(tmp_dir, root))
        && !lists.deny_write.iter().any(|denied| is_at_or_below(tmp_dir, denied));
    let sources = EnvironmentSources {
        inherited: &context.env,
        pass: &arguments.pass_env,
        denied: settings.credentials.env_vars.iter().map(|variable| variable.name.as_str()).collect(),
        safe_directories: &settings.git.safe_directories,
        tmp_dir: if is_writable { tmp_dir } else { OWN_TMP_DIR },
        connector: proxy.as_ref().map(|_| context.program.as_str()),
    };
    let git_config = settings.filesystem.allow_git_config.then(|| ".git/config".to_owned());
    let autostart = AutostartRules {
        mode: AutostartMode::Strict,
        git_config: GitConfig::Closed,
        allow: git_config.into_iter().collect(),
        home: Some(context.home.clone()),
        denied: lists.deny_write.clone(),
    };
    let spec = Spec {
        argv: argv(run),
        env: environment(&sources),
        cwd: (!cwd.is_empty()).then_some(cwd),
        home: None,
        view: View::HostRead {
            session_dir: None,
            deny_read: lists.deny_read,
            allow_read: lists.allow_read,
            allow_write: lists.allow_write,
            deny_write: lists.deny_write,
            private_tmp: false,
        },
        mounts: vec![],
        network: if proxy.is_some() { NetworkAccess::Proxied } else { NetworkAccess::None },
        unix_sockets: if settings.network.allow_all_unix_sockets {
            UnixSockets::All
        } else {
            UnixSockets::None
        },
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: if arguments.limited { ResourceLimits::default() } else { UNLIMITED },
        state_dir: context.state_dir()?,
        allow_root: arguments.allow_root,
    };
    Ok(Plan { foreground: ForegroundCommand { spec, autostart }, proxy, notes })
}

const UNLIMITED: ResourceLimits = ResourceLimits {
    memory: None,
    cpu: None,
    processes: None,
    open_files: None,
    file_size: None,
    tmp_size: None,
};

fn argv(run: &CommandLine) -> Vec<String> {
    match run {
        CommandLine::Program(argv) => argv.clone(),
        CommandLine::Line(line) => {
            let shell = if Path::new("/bin/bash").exists() { "/bin/bash" } else { "/bin/sh" };
            vec![shell.to_owned(), "-c".to_owned(), line.clone()]
        }
    }
}

/// Returns the proxy's configuration, or `None` if no hosts are allowed.
fn proxy_config(settings: &SrtSettingsFile, debug: bool) -> Result<Option<ProxyConfig>, PlanError> {
    let network = &settings.network;
    let none: [&str; 0] = [];
    let problem = |key| move |problem| PlanError::Domain { key, problem };
    let (allowed, denied) = (network.allowed_domains.clone(), network.denied_domains.clone());
    HostRules::new(&allowed, none, false).map_err(problem("allowedDomains"))?;
    HostRules::new(none, &denied, false).map_err(problem("deniedDomains"))?;
    let ranges = network.denied_resolved_addresses.iter().map(|range| AddressRange::parse(range));
    let denied_addresses = ranges.collect::<Result<_, _>>()?;
    Ok((!allowed.is_empty()).then_some(ProxyConfig { allowed, denied, denied_addresses, debug }))
}

fn utf8_path(path: &Path) -> Result<String, PlanError> {
    path.to_str().map(str::to_owned).ok_or_else(|| PlanError::NotUtf8(path.display().to_string()))
}
