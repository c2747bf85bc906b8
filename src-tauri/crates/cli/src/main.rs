//! The `ironcurtain` command: runs the trusted process without the app, and inspects and controls it.

mod agent_start;
mod arguments;
#[cfg(target_os = "linux")]
mod attach;
mod audit;
mod autostart_file;
mod background;
mod bundle;
mod clients;
mod collector_export;
mod connection;
mod daemon;
mod daemon_arguments;
mod doctor;
mod error_report;
mod export;
mod heads;
mod manual;
#[cfg(target_os = "linux")]
mod note_stream;
mod pair;
mod policy;
mod profiles;
mod quarantine;
#[cfg(target_os = "linux")]
mod relay;
mod reply_text;
#[cfg(target_os = "linux")]
mod run_profile;
#[cfg(target_os = "linux")]
mod sandboxed_run;
mod screen;
mod secrets;
mod servers;
mod session;
mod session_environment;
mod text_lines;
#[cfg(target_os = "linux")]
mod undo;

use anyhow::{anyhow, bail};
use arguments::{AllowArguments, Arguments, AuditAction, Command, GrantsAction, QuestionsAction, Switch};
use clap::Parser;
use connection::Connection;
use ironcurtain_protocol::{QuestionSelection, Reply, Request};
use screen::Screen;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse_from(servers::command_words(std::env::args_os())) {
        Ok(arguments) => arguments,
        Err(problem) => {
            let json = std::env::args_os().any(|argument| argument == "--json");
            return error_report::report_usage(problem, Screen::new(json));
        }
    };
    let screen = Screen::new(arguments.json);
    perform(arguments.command, screen).unwrap_or_else(|problem| error_report::report(&problem, screen))
}

fn perform(command: Command, screen: Screen) -> anyhow::Result<ExitCode> {
    let request = match command {
        Command::Policy { action } => return policy::perform(&action, screen),
        Command::Bundle { action } => return bundle::perform(&action, screen),
        Command::Servers { action } => return servers::perform(&action, screen),
        Command::Doctor { allow_root, deep } => return doctor::perform(allow_root, deep, screen),
        Command::Clients { action } => return clients::perform(&action, screen),
        Command::Secrets { action } => return secrets::perform(&action, screen),
        Command::Daemon(options) => return daemon::daemon(&options).map(|()| ExitCode::SUCCESS),
        #[cfg(target_os = "linux")]
        Command::Run(options) => return sandboxed_run::perform(options, screen),
        #[cfg(target_os = "linux")]
        Command::TerminalGuard => {
            return Ok(sandboxed_run::terminal_guard::run().map(|()| ExitCode::SUCCESS)?);
        }
        #[cfg(target_os = "linux")]
        Command::Undo(options) => return undo::perform(&options, screen),
        #[cfg(target_os = "linux")]
        Command::Attach(options) => return attach::perform(options),
        #[cfg(target_os = "linux")]
        Command::Relay => return relay::perform(),
        #[cfg(not(target_os = "linux"))]
        Command::Attach(_) | Command::Relay => bail!("the trusted process runs only on Linux"),
        #[cfg(not(target_os = "linux"))]
        Command::Run(_) | Command::Undo(_) | Command::TerminalGuard => {
            bail!("a run needs a sandbox, which only Linux has")
        }
        Command::Allow(options) => access_request(options)?,
        Command::Status => Request::Status,
        Command::Sessions => return session::all(screen),
        Command::Session(options) => return session::one(options, screen),
        Command::Quarantine { action } => return quarantine::perform(action, screen),
        Command::Profiles { action } => return profiles::perform(action, screen),
        Command::Stop => return show(&Connection::open()?.stop(session::print_remaining_scans)?, screen),
        Command::Questions { action: None | Some(QuestionsAction::List) } => Request::Questions,
        Command::Questions { action: Some(QuestionsAction::Deny { ids, all, note }) } => {
            let which = if all { QuestionSelection::All } else { QuestionSelection::These(ids) };
            Request::Deny { which, note }
        }
        Command::Questions { action: Some(QuestionsAction::Forget { id }) } => {
            Request::Forget { question: id }
        }
        Command::Pair(options) => return pair::perform(options, screen),
        Command::Pause { session } => Request::Pause { session },
        Command::Resume { session } => Request::Resume { session },
        Command::Lockdown { switch: Switch::Off, end_servers: true } => {
            bail!("`--end-servers` cannot be used with `off`; run `ironcurtain lockdown --end-servers`")
        }
        Command::Lockdown { switch, end_servers } => {
            Request::Lockdown { on: switch == Switch::On, end_servers }
        }
        Command::Grants { action: None | Some(GrantsAction::List) } => Request::Grants,
        Command::Grants { action: Some(GrantsAction::Revoke { id }) } => Request::Revoke { grant: id },
        Command::Audit { action: None } => Request::Activity { limit: arguments::DEFAULT_TAIL },
        Command::Audit { action: Some(AuditAction::Tail { lines }) } => Request::Activity { limit: lines },
        Command::Audit { action: Some(AuditAction::Verify(options)) } => match options.heads {
            Some(heads) => return heads::verify(&heads, options.key.as_deref(), options.log, screen),
            None => return show(&audit::verify()?, screen),
        },
        Command::Audit { action: Some(AuditAction::Search { of, limit }) } => {
            return audit::search(of, limit, screen).map(|()| ExitCode::SUCCESS);
        }
        Command::Audit { action: Some(AuditAction::Export { of, format, output }) } => {
            return export::export(of, format, output.as_deref(), screen).map(|()| ExitCode::SUCCESS);
        }
        Command::Export { action } => return collector_export::perform(action, screen),
        Command::Metrics => Request::Metrics,
        Command::Completions { shell } => return manual::completions(shell),
        Command::Manual { folder } => return manual::pages(&folder),
    };
    let done = reply_text::confirmation(&request);
    let reply = Connection::open()?.ask(request)?;
    match done.filter(|_| reply == Reply::Done) {
        Some(text) => screen.show(&[text].into_iter().collect(), &serde_json::to_value(&reply)?)?,
        None => return show(&reply, screen),
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the request that makes IronCurtain ask the user about a path.
fn access_request(options: AllowArguments) -> anyhow::Result<Request> {
    let AllowArguments { path, session, write } = options;
    let path = std::path::absolute(path)?.into_os_string().into_string();
    let path = path.map_err(|path| anyhow!("the path `{}` is not valid UTF-8", path.display()))?;
    Ok(Request::RequestAccess { session, path, write })
}

fn show(reply: &Reply, screen: Screen) -> anyhow::Result<ExitCode> {
    screen.show(&reply_text::text(reply), &serde_json::to_value(reply)?)?;
    Ok(code(reply))
}

/// Returns the exit status for a reply: failure if the audit log was tampered with or its end cannot be verified,
/// otherwise success.
fn code(reply: &Reply) -> ExitCode {
    let broken = matches!(reply, Reply::Audit(check) if check.problem.is_some());
    if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
