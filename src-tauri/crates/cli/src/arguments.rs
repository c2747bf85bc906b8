//! The command line.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// The number of entries of the log that are shown without a number.
pub const DEFAULT_TAIL: usize = 20;

/// The number of entries that are found without a number.
const DEFAULT_FOUND: usize = 50;

/// Agents ask, you decide, the kernel enforces, and you can take it back.
#[derive(Debug, Parser)]
#[command(name = "ironcurtain", version)]
pub struct Arguments {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// Print JSON instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the trusted process without the desktop app.
    Daemon(DaemonArguments),
    /// Show whether you are protected, and by whom.
    Status,
    /// List active sessions and the files they left behind that other programs may run.
    Sessions,
    /// Show one session, active or ended, and the files it left behind that other programs may run; keep them, or move them to quarantine.
    Session(SessionOptions),
    /// Show the files that were moved to quarantine; put one back, or delete it.
    Quarantine {
        /// The action.
        #[command(subcommand)]
        action: Option<crate::quarantine::QuarantineAction>,
    },
    /// Show the questions that wait, those that nobody answered in time, and what is denied for a session; or forget one.
    Questions {
        /// The action.
        #[command(subcommand)]
        action: Option<QuestionsAction>,
    },
    /// Deny everything of a session, until it is resumed.
    Pause {
        /// Id of the session, as listed.
        session: String,
    },
    /// Let a paused session go on: it is asked about as before.
    Resume {
        /// Id of the session, as listed.
        session: String,
    },
    /// Deny everything that would need your approval, until you turn it off.
    Lockdown {
        /// Turn it on or off.
        #[arg(value_enum, default_value_t = Switch::On)]
        switch: Switch,
        /// Close every session and its server as well.
        #[arg(long)]
        end_servers: bool,
    },
    /// Show what is granted, or take it back.
    Grants {
        /// The action.
        #[command(subcommand)]
        action: Option<GrantsAction>,
    },
    /// Show, find or write out what was decided, or check that the record is whole.
    Audit {
        /// The action.
        #[command(subcommand)]
        action: Option<AuditAction>,
    },
    /// Print figures of what happens, as Prometheus reads them.
    Metrics,
    /// Check, explain, simulate or compare policies.
    Policy {
        /// The action.
        #[command(subcommand)]
        action: crate::policy::PolicyAction,
    },
    /// List, add, change and remove servers, and say what their tools do.
    Servers {
        /// The action.
        #[command(subcommand)]
        action: crate::servers::ServersAction,
    },
    /// Check everything that IronCurtain needs, and say what fixes it.
    Doctor {
        /// Make sandboxes although this is root. For containers.
        #[arg(long)]
        allow_root: bool,
    },
    /// Connect agent clients on this machine, or restore their settings.
    Clients {
        /// The action.
        #[command(subcommand)]
        action: crate::clients::ClientsAction,
    },
    /// List, make and change profiles: sets of servers behind one entry of a client.
    Profiles {
        /// The action.
        #[command(subcommand)]
        action: Option<crate::profiles::ProfilesAction>,
    },
    /// Keep secrets of servers in the desktop's keyring, or in an encrypted file where there is none.
    Secrets {
        /// The action.
        #[command(subcommand)]
        action: crate::secrets::SecretsAction,
    },
    /// End the trusted process and every session, and wait until they have ended.
    Stop,
    /// Print a completion script for your shell.
    Completions {
        /// The shell.
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Write the manual pages of these commands into a folder.
    #[command(hide = true)]
    Manual {
        /// The folder.
        folder: PathBuf,
    },
}

/// Options of `daemon`.
#[derive(Debug, Args)]
pub struct DaemonArguments {
    /// The way to ask about a call that rules do not settle.
    #[arg(long, value_enum, default_value_t = Ask::Deny)]
    pub ask: Ask,
    /// Run although this is root. For containers.
    #[arg(long)]
    pub allow_root: bool,
    /// Leave the terminal's session, so that closing it does not end this.
    #[arg(long)]
    pub detach: bool,
}

/// Options of `session`.
#[derive(Debug, Args)]
pub struct SessionOptions {
    /// Id of the session, as listed.
    pub id: String,
    /// Keep this file where it was left.
    #[arg(long, value_name = "PATH")]
    pub keep: Vec<String>,
    /// Move this file to where nothing runs it.
    #[arg(long, value_name = "PATH")]
    pub quarantine: Vec<String>,
}

/// Who is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Ask {
    /// The person at this terminal.
    Terminal,
    /// The user in their desktop session: starts the app there instead of this. Without a desktop, deny.
    Desktop,
    /// Nobody: deny.
    Deny,
}

/// The actions on grants.
#[derive(Debug, Subcommand)]
pub enum GrantsAction {
    /// List them.
    List,
    /// Take one back; says so only when it is proved.
    Revoke {
        /// Id of the grant, as listed.
        id: String,
    },
}

/// On or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Switch {
    /// It begins.
    On,
    /// It ends.
    Off,
}

/// The actions on questions. A yes is given in the app or on its terminal, and nowhere else.
#[derive(Debug, Subcommand)]
pub enum QuestionsAction {
    /// List them.
    List,
    /// Deny some that wait, or all of them.
    Deny {
        /// Their ids, as listed.
        #[arg(required_unless_present = "all")]
        ids: Vec<String>,
        /// Every one that waits.
        #[arg(long, conflicts_with = "ids")]
        all: bool,
        /// Words for the agents.
        #[arg(long)]
        note: Option<String>,
    },
    /// Forget one that nobody answered in time, or take a no for the rest of a session back: it is asked again.
    Forget {
        /// Its id, as listed.
        id: String,
    },
}

/// The actions on the audit log.
#[derive(Debug, Subcommand)]
pub enum AuditAction {
    /// Show the newest entries.
    Tail {
        /// The number of entries.
        #[arg(short = 'n', long, default_value_t = DEFAULT_TAIL)]
        lines: usize,
    },
    /// Check every link of the chain, in all files, up to the newest entry that is known.
    Verify,
    /// Find entries by their words, server, tool, session, path, decision or time.
    Search {
        /// The conditions.
        #[command(flatten)]
        of: FilterOptions,
        /// The greatest number, of the newest.
        #[arg(long, default_value_t = DEFAULT_FOUND)]
        limit: usize,
    },
    /// Export entries, oldest first, as they are on record.
    Export {
        /// The conditions.
        #[command(flatten)]
        of: FilterOptions,
        /// The form: a JSON object for each line, or a table.
        #[arg(long, value_enum, default_value_t = ExportFormat::Jsonl)]
        format: ExportFormat,
        /// A file, which must not be there yet; without one, standard output.
        #[arg(long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// The entries that are meant: all conditions must hold.
#[derive(Debug, Args)]
pub struct FilterOptions {
    /// Words that are all in it; `main*` is every word that begins so.
    pub text: Vec<String>,
    /// Its server.
    #[arg(long)]
    pub server: Option<String>,
    /// Its tool.
    #[arg(long)]
    pub tool: Option<String>,
    /// Its session.
    #[arg(long, value_name = "ID")]
    pub session: Option<String>,
    /// A path that it concerns, or a folder around it.
    #[arg(long)]
    pub path: Option<PathBuf>,
    /// The policy's decision.
    #[arg(long, value_enum)]
    pub decision: Option<Decided>,
    /// Not before `7d` ago, or a day, or a day and a time.
    #[arg(long, value_name = "WHEN", value_parser = crate::policy::since::moment)]
    pub since: Option<u64>,
    /// Not after that.
    #[arg(long, value_name = "WHEN", value_parser = crate::policy::since::moment)]
    pub until: Option<u64>,
}

/// A decision of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Decided {
    /// It was allowed.
    Allow,
    /// It was denied.
    Deny,
    /// It was asked about.
    Escalate,
}

/// The form of what is written out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    /// JSON, an object for each line.
    Jsonl,
    /// A table with commas, for spreadsheets.
    Csv,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;
    use std::ffi::OsString;
    use std::path::Path;

    /// The words of a command line, as a shell would split them.
    fn words(line: &str) -> Vec<&str> {
        let line = line.split(" #").next().unwrap();
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            // What may be left out stands in brackets.
            0 => part.split_whitespace().map(|word| word.trim_matches(['[', ']'])).collect(),
            _ => vec![part],
        });
        words.collect()
    }

    #[test]
    fn the_documentation_names_commands_that_there_are() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let folders = ["docs", "docs/guide"].map(|folder| std::fs::read_dir(root.join(folder)).unwrap());
        let docs = folders.into_iter().flatten().map(|file| file.unwrap().path());
        let pages =
            docs.chain([root.join("README.md"), root.join("CONTRIBUTING.md"), root.join("CHANGELOG.md")]);
        let (mut seen, mut refused) = (0, Vec::new());
        for page in pages.filter(|page| page.extension().is_some_and(|extension| extension == "md")) {
            let text = std::fs::read_to_string(&page).unwrap();
            let typed = text.lines().filter_map(|line| line.strip_prefix("$ "));
            let quoted = text.split('`').skip(1).step_by(2);
            for line in typed.chain(quoted).filter(|line| line.starts_with("ironcurtain ")) {
                seen += 1;
                let words = crate::servers::command_words(words(line).into_iter().map(OsString::from));
                let problem = Arguments::try_parse_from(words).err().map(|problem| problem.kind());
                // What is only named stands without its arguments, or with a word in place of a value.
                if !matches!(
                    problem,
                    None | Some(
                        ErrorKind::MissingRequiredArgument
                            | ErrorKind::MissingSubcommand
                            | ErrorKind::ValueValidation
                            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                    )
                ) {
                    refused.push(format!("{}: `{line}`: {problem:?}", page.display()));
                }
            }
        }
        assert!(seen > 10, "there are commands in the documentation");
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    }
}
