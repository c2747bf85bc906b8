//! Runs each MCP server in its own kernel-enforced sandbox. Paths can be granted and revoked while a sandbox is
//! running.
//!
//! The trusted process calls [`launch`] with a [`Spec`], which starts the `ironcurtain-sandbox` program as a
//! supervisor. The supervisor starts bubblewrap, and bubblewrap starts the server. Requests on the [`control`] stream
//! add and remove grants.
//!
//! Invariants:
//! - A sandbox is created exactly as specified or not at all.
//! - A sandbox dies with its supervisor, and a supervisor dies with the process that launched it.
//! - No file is created in the user's tree. The launcher detects autostart files that a server creates there
//!   ([`autostart`]).
//! - Only `sys` contains unsafe code.
//! - On a platform without sandboxes, [`launch`] fails.

pub mod autostart;
#[cfg(unix)]
pub mod client;
pub mod control;
mod error;
pub mod file_access;
#[cfg(unix)]
mod linked_child;
mod outcome;
mod spec;

#[cfg(target_os = "linux")]
mod argv;
#[cfg(target_os = "linux")]
mod cgroup;
#[cfg(target_os = "linux")]
mod check;
#[cfg(target_os = "linux")]
mod command;
#[cfg(target_os = "linux")]
mod connector;
#[cfg(target_os = "linux")]
mod enter;
#[cfg(target_os = "linux")]
mod fd_passing;
#[cfg(target_os = "linux")]
mod folder_listing;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod listening;
#[cfg(target_os = "linux")]
mod mount_plan;
#[cfg(target_os = "linux")]
mod mountinfo;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(target_os = "linux")]
mod nofollow;
#[cfg(target_os = "linux")]
mod program;
#[cfg(target_os = "linux")]
mod proxy_config;
#[cfg(target_os = "linux")]
pub mod run_link;
#[cfg(target_os = "linux")]
mod run_starter;
#[cfg(target_os = "linux")]
mod seccomp;
#[cfg(target_os = "linux")]
mod served;
#[cfg(target_os = "linux")]
mod service_link;
#[cfg(target_os = "linux")]
mod services;
#[cfg(target_os = "linux")]
mod special;
#[cfg(target_os = "linux")]
mod state;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
pub use cgroup::prepare_control_groups;
#[cfg(target_os = "linux")]
pub use check::{check, check_tun, describe_missing_tun};
pub use control::{
    ControlAnswer, ControlOp, ControlReply, ControlRequest, Enforcement, FromSupervisor, MountRefusal,
    SandboxEvent, UnmountProof,
};
pub use error::SandboxLaunchError;
#[cfg(target_os = "linux")]
pub use fd_passing::receive_listener;
#[cfg(target_os = "linux")]
pub use launch::{Egress, KillHandle, LaunchedRun, LaunchedSandbox, launch, launch_run};
#[cfg(unix)]
pub use linked_child::{KillOnDrop, LinkedChild, spawn_linked};
pub use outcome::{Availability, SandboxExit};
#[cfg(target_os = "linux")]
pub use program::program;
#[cfg(target_os = "linux")]
pub use proxy_config::{AddressRange, PROXY_PROGRAM, ProxyConfig, RangeError};
#[cfg(target_os = "linux")]
pub use service_link::{ServiceLink, ServiceRequest, is_host_port_listening};
pub use spec::{
    Mount, MountAccess, NetworkAccess, PROXY_PORT, ResourceLimits, SOCKET_FOLDER, Spec, SpecError,
    UnixSockets, View,
};
#[cfg(target_os = "linux")]
pub use sys::{
    memory::return_large_blocks,
    signals::{Signals, with_unblocked},
};
#[cfg(not(target_os = "linux"))]
pub use unsupported::{
    Egress, KillHandle, LaunchedRun, LaunchedSandbox, ServiceLink, ServiceRequest, check, check_tun,
    describe_missing_tun, is_host_port_listening, launch, launch_run, prepare_control_groups, program,
    return_large_blocks,
};
