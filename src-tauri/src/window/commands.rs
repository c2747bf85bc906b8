//! Runs the page's commands by name. The window's process cannot affect this process in any other way.
//!
//! - Unknown commands, unknown arguments and arguments of the wrong type are errors.

use super::command_error::CommandError;
use super::{
    AppState, add_server, bundles, changed_tools, clients, grants, identity, login, practice, profiles,
    record, record_export, restrictions, rules, secrets, server_change, server_log, servers, sessions,
    settings, snapshot, starting_folder,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// Generates [`run`] from command names and argument names. The argument types come from the functions' signatures.
macro_rules! commands {
    ($($module:ident::$command:ident($($argument:ident),*);)*) => {
        /// Runs a page command.
        pub(super) async fn run(
            state: &AppState,
            command: &str,
            arguments: Value,
        ) -> Result<Box<RawValue>, CommandError> {
            let mut given = Arguments::of(arguments)?;
            match command {
                $(stringify!($command) => {
                    $(let $argument = given.take(stringify!($argument))?;)*
                    given.all_taken()?;
                    answer(&Box::pin($module::$command(state, $($argument),*)).await?)
                })*
                unknown => Err(CommandError::malformed(format!("unknown command `{unknown}`"))),
            }
        }

        /// All commands with the names of their arguments.
        #[cfg(test)]
        const ALL: &[(&str, &[&str])] = &[$((stringify!($command), &[$(stringify!($argument)),*])),*];
    };
}

commands! {
    snapshot::snapshot();
    sessions::end_session(session);
    sessions::restart_server(session);
    sessions::decide_file(session, path, choice);
    sessions::show_question();
    restrictions::pause_session(session, on);
    restrictions::lock_down(on, end_sessions);
    restrictions::forget_question(question);
    restrictions::ask_again(question);
    grants::revoke_grants(grants);
    grants::restore_grant(grant);
    grants::change_grant(grant, terms);
    grants::grant_beforehand(gift);
    rules::rules();
    rules::explain(call);
    rules::try_rules(text);
    rules::save_rules(text, before);
    clients::found_clients();
    clients::plan_client(id, wish);
    clients::write_client(id);
    servers::servers();
    servers::add_server(server);
    servers::install_server(name);
    servers::check_for_update(name);
    servers::apply_update(name);
    servers::review_tools(name);
    servers::save_tools(name);
    add_server::plan_server(wanted);
    add_server::write_server();
    bundles::choose_bundle();
    bundles::pick_for_bundle(setting);
    bundles::plan_bundle(wanted);
    bundles::discard_bundle();
    server_change::plan_removal(name);
    server_change::remove_server();
    server_change::restore_server(name);
    server_change::forget_server(name);
    login::plan_login(server, client_id, client_secret, redirect);
    login::log_in(number);
    login::cancel_login(number);
    login::log_out(server);
    identity::decide_identity(server, found, keep);
    changed_tools::decide_tool(server, change, decision);
    server_change::plan_opening(server, wanted);
    server_change::write_opening();
    server_change::close_opening(server, opening);
    server_change::plan_limits(server, wanted);
    server_change::write_limits();
    profiles::profiles();
    profiles::change_profile(name, servers);
    profiles::delete_profile(name);
    server_log::server_log(session);
    secrets::secrets();
    secrets::set_secret(name, value);
    secrets::remove_secret(name);
    secrets::plan_secret_move();
    secrets::write_secret_move();
    secrets::unlock_secrets(passphrase);
    secrets::make_secrets_file(passphrase);
    record::activity(wanted, before, most);
    record::call_details(seq);
    record::export_activity(wanted, format);
    record::check_log();
    practice::ask_practice_question();
    practice::try_private_folder();
    practice::finish_first_steps();
    starting_folder::starting_folder(write);
    settings::settings();
    settings::change_settings(changes);
    record_export::record_export();
    record_export::export_sample(paths);
    record_export::enable_export(url, paths, token);
    record_export::disable_export();
}

/// Arguments of a command that have not been taken yet.
struct Arguments(Map<String, Value>);

impl Arguments {
    fn of(given: Value) -> Result<Self, CommandError> {
        match given {
            Value::Object(all) => Ok(Self(all)),
            Value::Null => Ok(Self(Map::new())),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(CommandError::malformed("command arguments must be an object"))
            }
        }
    }

    /// Removes and deserializes an argument. A missing argument counts as null.
    fn take<T: DeserializeOwned>(&mut self, name: &str) -> Result<T, CommandError> {
        let value = self.0.remove(name).unwrap_or_default();
        serde_json::from_value(value)
            .map_err(|misread| CommandError::malformed(format!("invalid argument `{name}`: {misread}")))
    }

    fn all_taken(&self) -> Result<(), CommandError> {
        match self.0.keys().next() {
            Some(unknown) => Err(CommandError::malformed(format!("unknown argument `{unknown}`"))),
            None => Ok(()),
        }
    }
}

fn answer(output: &impl Serialize) -> Result<Box<RawValue>, CommandError> {
    to_raw_value(output).map_err(CommandError::refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, BoxFuture};
    use crate::consent::DialogConsent;
    use ironcurtain_consent::ReopenError;
    use ironcurtain_protocol::{Reply, Request};
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};
    use std::sync::{Arc, Mutex};
    use tokio::sync::watch;

    /// Backend that accepts and records every request.
    #[derive(Default)]
    struct Asked(Mutex<Vec<Request>>);

    impl Backend for Asked {
        fn request(&self, request: Request) -> BoxFuture<Reply> {
            self.0.lock().unwrap().push(request);
            Box::pin(async { Reply::Done })
        }

        fn ask_again(&self, _: String) -> BoxFuture<Result<bool, ReopenError>> {
            Box::pin(async { Err(ReopenError::Ending) })
        }

        fn changes(&self) -> watch::Receiver<u64> {
            watch::channel(0).1
        }

        fn ended(&self) -> BoxFuture<()> {
            Box::pin(std::future::pending())
        }
    }

    #[test]
    fn runs_known_commands_and_rejects_everything_else() {
        let asked = Arc::<Asked>::default();
        let state =
            AppState::new(asked.clone(), DialogConsent::new("/home/ada".into()).0, "/home/ada".into());
        let run = |command: &str, arguments: Value| {
            let done = tauri::async_runtime::block_on(run(&state, command, arguments));
            done.map(|output| output.get().to_owned()).map_err(CommandError::into_message)
        };
        let refused = [
            ("consent_tell", json!({ "number": 1, "did": "allow" }), "unknown command `consent_tell`"),
            (
                "lock_down",
                json!({ "on": true, "end_sessions": true, "answer": "allow" }),
                "unknown argument `answer`",
            ),
            (
                "lock_down",
                json!({ "on": "yes", "end_sessions": true }),
                "invalid argument `on`: invalid type",
            ),
            ("lock_down", json!({ "on": true }), "invalid argument `end_sessions`: invalid type: null"),
            ("lock_down", json!([true, true]), "command arguments must be an object"),
        ];
        for (command, arguments, why) in refused {
            let output = run(command, arguments).unwrap_err();
            assert!(output.starts_with(why), "{output}");
        }
        assert!(asked.0.lock().unwrap().is_empty());
        assert_eq!(run("lock_down", json!({ "on": true, "end_sessions": true })), Ok("null".to_owned()));
        let done = [Request::Lockdown { on: true, end_servers: true }];
        assert_eq!(*asked.0.lock().unwrap(), done);
    }

    #[test]
    fn the_page_calls_exactly_these_commands() {
        let page = include_str!("../../../ui/backend.js");
        let calls = page.split("invoke(\"").skip(1).map(|call| {
            let (name, rest) = call.split_once('"').unwrap();
            let arguments = rest.split_once(");").unwrap().0.trim_matches([',', ' ', '{', '}']);
            let names = arguments.split(',').map(|one| one.split(':').next().unwrap().trim());
            (name, names.filter(|name| !name.is_empty()).collect::<BTreeSet<_>>())
        });
        let called: BTreeMap<_, _> = calls.filter(|(name, _)| !name.starts_with("consent_")).collect();
        let known = ALL.iter().map(|(name, arguments)| (*name, arguments.iter().copied().collect()));
        assert_eq!(called, known.collect());
    }
}
