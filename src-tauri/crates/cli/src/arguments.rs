//! Command-line arguments.

mod audit;

pub use audit::{AuditAction, DEFAULT_TAIL, Decided, ExportFormat, FilterOptions};
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Agents ask, you decide, the kernel enforces, and you can revoke it.
#[derive(Debug, Parser)]
#[command(name = "ironcurtain", version)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the trusted process without the desktop app.
    Daemon(crate::daemon_arguments::DaemonArguments),
    /// Run a program in a sandbox that asks you before it opens your files.
    ///
    /// The program may use the folder that you start it in.
    Run(crate::sandboxed_run::RunArguments),
    /// Make IronCurtain ask you about a path for a run. You still answer the question yourself.
    Allow(AllowArguments),
    /// List what a run with `--checkpoint` changed in its folder, and restore it.
    Undo(UndoArguments),
    /// Answer the questions of a remote machine, a container or a WSL distribution on this desktop.
    ///
    /// Starts `ironcurtain relay` there through ssh, and connects again if the connection is lost. The first time, you
    /// type the code that it shows in `ironcurtain pair` there, and then the code that this prints here.
    Attach(AttachArguments),
    /// Let the desktop that runs `attach` answer this machine's questions, or list and remove such desktops. Run this
    /// on the remote machine.
    Pair(PairArguments),
    /// Connect this machine's IronCurtain to a desktop over standard input and output. `attach` runs this.
    Relay,
    /// Show whether IronCurtain is running and what it protects.
    Status,
    /// List active sessions and the files they left behind that other programs may run.
    Sessions,
    /// Show a session and the files it left behind that other programs may run; keep or quarantine those files.
    Session(SessionArguments),
    /// List quarantined files, put one back, or delete it.
    Quarantine {
        #[command(subcommand)]
        action: Option<crate::quarantine::QuarantineAction>,
    },
    /// List pending and unanswered questions and what is denied for a session; deny or forget some of them.
    Questions {
        #[command(subcommand)]
        action: Option<QuestionsAction>,
    },
    /// Deny every call of a session until you resume it.
    Pause {
        /// Id of the session, as listed.
        session: String,
    },
    /// Resume a paused session.
    Resume {
        /// Id of the session, as listed.
        session: String,
    },
    /// Deny everything that would need your approval, until you turn it off.
    Lockdown {
        /// Turn it on or off.
        #[arg(value_enum, default_value_t = Switch::On)]
        switch: Switch,
        /// Also close every session and terminate its server.
        #[arg(long)]
        end_servers: bool,
    },
    /// List what is granted, or revoke it.
    Grants {
        #[command(subcommand)]
        action: Option<GrantsAction>,
    },
    /// Show, search or export past decisions, or verify that the audit log is intact.
    Audit {
        #[command(subcommand)]
        action: Option<AuditAction>,
    },
    /// Export the audit log to an OpenTelemetry collector, or to a file.
    Export {
        #[command(subcommand)]
        action: crate::collector_export::ExportAction,
    },
    /// Print metrics in the Prometheus text format.
    Metrics,
    /// Check, explain, simulate, compare or replay policies.
    Policy {
        #[command(subcommand)]
        action: crate::policy::PolicyAction,
    },
    /// Build, verify, compare and test the signed rules of an organization.
    Bundle {
        #[command(subcommand)]
        action: crate::bundle::BundleAction,
    },
    /// List, add, change and remove servers, and annotate their tools.
    Servers {
        #[command(subcommand)]
        action: crate::servers::ServersAction,
    },
    /// Check everything that IronCurtain needs, and suggest fixes.
    Doctor {
        /// Start each server, and check that it lists its tools.
        #[arg(long)]
        deep: bool,
        /// Create sandboxes even when running as root, for example in a container.
        #[arg(long)]
        allow_root: bool,
    },
    /// Connect agent clients on this machine, or restore their settings.
    Clients {
        #[command(subcommand)]
        action: crate::clients::ClientsAction,
    },
    /// List, create, change and remove profiles: sets of servers that a client reaches through one entry. Also lists
    /// run profiles.
    Profiles {
        #[command(subcommand)]
        action: Option<crate::profiles::ProfilesAction>,
    },
    /// Store secrets for servers in the desktop's keyring, or in an encrypted file if there is no keyring.
    Secrets {
        #[command(subcommand)]
        action: crate::secrets::SecretsAction,
    },
    /// Stop IronCurtain and every session, and wait until they have stopped.
    Stop,
    /// Print a completion script for your shell.
    Completions {
        /// Shell to print the script for.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Restore the user's terminal if the run's process is killed.
    #[command(hide = true)]
    TerminalGuard,
    /// Write manual pages for all commands to a folder.
    #[command(hide = true)]
    Manual {
        /// Folder to write to.
        folder: PathBuf,
    },
}

/// Options of `attach`.
#[derive(Debug, Args)]
pub struct AttachArguments {
    /// Host as for ssh, `docker:CONTAINER` or `wsl:DISTRIBUTION`. Questions show this name.
    pub host: String,
    /// Forget the pairing with the host instead, to pair again.
    #[arg(long, conflicts_with = "command")]
    pub forget: bool,
    /// Command that runs `ironcurtain relay` there, instead of ssh.
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// Options of `pair`.
#[derive(Debug, Args)]
pub struct PairArguments {
    /// Code that the desktop shows. It may contain spaces.
    #[arg(required_unless_present_any = ["list", "remove"], conflicts_with_all = ["list", "remove"])]
    pub code: Vec<String>,
    /// List the desktops that may answer this machine's questions, and those that root permits to pair.
    #[arg(long, conflicts_with = "remove")]
    pub list: bool,
    /// Remove the desktop with this name, as listed.
    #[arg(long, value_name = "NAME", allow_hyphen_values = true)]
    pub remove: Option<String>,
}

/// Options of `undo`.
#[derive(Debug, Args)]
pub struct UndoArguments {
    /// Id of the run. Without it, the checkpoints are listed.
    pub id: Option<String>,
    /// Show the changed lines of text files.
    #[arg(long, requires = "id")]
    pub diff: bool,
    /// Also restore what changed after the run ended.
    #[arg(long, requires = "id")]
    pub later: bool,
    /// Also restore the repository's own state, below `.git`.
    #[arg(long, requires = "id")]
    pub git: bool,
    /// Restore without asking for confirmation.
    #[arg(long, requires = "id")]
    pub yes: bool,
    /// Remove the checkpoint instead.
    #[arg(long, requires = "id", conflicts_with_all = ["diff", "later", "git", "yes"])]
    pub forget: bool,
}

/// Options of `allow`.
#[derive(Debug, Args)]
pub struct AllowArguments {
    /// File or folder.
    pub path: PathBuf,
    /// Id of the run, as `ironcurtain sessions` lists it.
    #[arg(long, value_name = "ID")]
    pub session: String,
    /// Ask about write access instead of read access.
    #[arg(long)]
    pub write: bool,
}

/// Options of `session`.
#[derive(Debug, Args)]
pub struct SessionArguments {
    /// Id of the session, as listed.
    pub id: String,
    /// Keep this file where it is.
    #[arg(long, value_name = "PATH")]
    pub keep: Vec<String>,
    /// Quarantine this file: move it to a folder from which nothing runs it.
    #[arg(long, value_name = "PATH")]
    pub quarantine: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub enum GrantsAction {
    /// List the grants.
    List,
    /// Revoke a grant; succeeds only once the server has provably lost access.
    Revoke {
        /// Id of the grant, as listed.
        id: String,
    },
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// Turn it on.
    On,
    /// Turn it off.
    Off,
}

// No command can answer a question with allow. Only the app and the terminal of `daemon --ask terminal` can.
#[derive(Debug, Subcommand)]
pub enum QuestionsAction {
    /// List the questions.
    List,
    /// Deny some or all pending questions.
    Deny {
        /// Ids of the questions, as listed.
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// Deny every pending question.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Message for the agents.
        #[arg(long)]
        note: Option<String>,
    },
    /// Forget an unanswered question, or a denial for the rest of a session, so that you are asked again.
    Forget {
        /// Id of the question or denial, as listed.
        id: String,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;
    use std::ffi::OsString;
    use std::path::Path;

    /// Splits a command line into words, as a shell does.
    fn words(line: &str) -> Vec<&str> {
        let line = line.split(" #").next().unwrap();
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            // Brackets only mark words as optional.
            0 => part.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect(),
            _ => vec![part],
        });
        words.collect()
    }

    #[test]
    fn commands_in_the_documentation_parse() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let folders = ["docs", "docs/guide", "docs/reference", "docs/explanation"]
            .map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
        let docs = folders.into_iter().flatten().map(|file| file.unwrap().path());
        let pages =
            docs.chain([root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("CHANGELOG.md")]);
        let (mut seen, mut refused) = (0, Vec::new());
        for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
            let text = std::fs::read_to_string(&page).unwrap();
            let typed = text.lines().filter_map(|line| line.trim_start().strip_prefix("$ "));
            let quoted = text.split('`').skip(1).step_by(2);
            for line in typed.chain(quoted).filter(|line| line.starts_with("ironcurtain ")) {
                seen += 1;
                let words = crate::servers::command_words(words(line).into_iter().map(OsString::from));
                let problem = Arguments::try_parse_from(words).err().map(|problem| problem.kind());
                // Texts may omit a command's arguments or contain a placeholder for a value.
                let has_placeholder =
                    line.split(' ').any(|word| word.chars().all(|c| c.is_ascii_uppercase()));
                let is_accepted = match problem {
                    None
                    | Some(
                        ErrorKind::MissingRequiredArgument
                        | ErrorKind::MissingSubcommand
                        | ErrorKind::ValueValidation
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
                    ) => true,
                    Some(ErrorKind::InvalidValue) => has_placeholder,
                    Some(_) => false,
                };
                if !is_accepted {
                    refused.push(format!("{}: `{line}`: {problem:?}", page.display()));
                }
            }
        }
        assert!(seen > 10, "there are commands in the documentation");
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}
