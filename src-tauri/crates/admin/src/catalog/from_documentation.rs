//! Parses a server's description in documentation: a package, an address, a command line or a JSON snippet.
//!
//! - Pure. Runs no command and makes no request. Only determines the program or the address.

use super::AdditionChoices;
use super::addition::Addition;
use super::addition_error::AdditionError;
use super::command_line::{CONTAINERS, is_command, with_assignments, without_runner_options};
use super::names::short_name;
use super::snippet::without_fence;
use ironcurtain_config::home::Home;
use serde_json::{Value, json};

impl Addition {
    /// Creates an addition from documentation text: a catalog id, a package, an address, a command line (in one or
    /// several words) or a JSON snippet.
    ///
    /// # Errors
    /// Returns an [`AdditionError`] if the input does not describe a server that can be added.
    pub fn from_documentation(
        home: &Home,
        words: &[String],
        choices: &AdditionChoices,
    ) -> Result<Self, AdditionError> {
        let [only] = words else { return Self::from_words(home, words, choices) };
        let text = without_fence(only);
        if text.starts_with(['{', '"']) {
            return Self::from_snippet(home, text, choices);
        }
        match text.strip_prefix("$ ").unwrap_or(text).trim() {
            line if line.contains(char::is_whitespace) => {
                let words = shlex::split(line).ok_or_else(|| AdditionError::Quotes(line.to_owned()))?;
                Self::from_words(home, &words, choices)
            }
            name if CONTAINERS.contains(&name) => Err(AdditionError::Container(name.to_owned())),
            name => Self::from_spec(home, name, choices),
        }
    }

    fn from_words(home: &Home, words: &[String], choices: &AdditionChoices) -> Result<Self, AdditionError> {
        let (env, words) = with_assignments(words);
        if !env.is_empty() {
            let words = without_runner_options(words);
            let default_name =
                words.iter().skip(1).find(|word| !word.starts_with('-')).map(|word| short_name(word));
            let entry = json!({ "command": words.first(), "args": words.get(1..), "env": env });
            let Value::Object(entry) = entry else { return Err(AdditionError::NotOneServer(0)) };
            return Self::from_untrusted_entry(home, default_name.unwrap_or_default(), entry, choices);
        }
        match words {
            [] => Err(AdditionError::NotOneServer(0)),
            [only] => Self::from_spec(home, only, choices),
            [program, ..] if is_command(program) => Self::from_command(home, words, choices),
            [_, unexpected, ..] => Err(AdditionError::Unexpected(unexpected.clone())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn home() -> Home {
        Home::under(Path::new("/ic"), Path::new("/home/u"))
    }

    fn documented(words: &[&str]) -> Result<Addition, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        Addition::from_documentation(&home(), &words, &AdditionChoices::default()).map_err(|e| e.to_string())
    }

    fn args(words: &[&str]) -> (Value, Value) {
        let entry = documented(words).unwrap().entry;
        (entry["command"].clone(), entry["args"].clone())
    }

    #[test]
    fn a_command_line_means_the_same_quoted_or_as_words() {
        let expected = (json!("npx"), json!(["-y", "@a/some-mcp", "--flag", "a b"]));
        assert_eq!(args(&["npx", "-y", "@a/some-mcp", "--flag", "a b"]), expected);
        assert_eq!(args(&["npx -y @a/some-mcp --flag 'a b'"]), expected);
        assert_eq!(args(&["```bash\n$ npx -y @a/some-mcp --flag 'a b'\n```"]), expected);
        assert_eq!(args(&["bunx", "@a/some-mcp", "--flag", "a b"]), expected);
        assert_eq!(args(&["cmd /c pnpm dlx @a/some-mcp --flag 'a b'"]), expected);
        let uvx = (json!("uvx"), json!(["some-mcp", "--flag"]));
        assert_eq!(args(&["uv tool run some-mcp --flag"]), uvx);
        assert_eq!(args(&["pipx", "run", "some-mcp", "--flag"]), uvx);
        assert_eq!(documented(&["uvx mcp-server-time"]).unwrap().name, "time", "the catalog has it");
        assert_eq!(args(&["/opt/bin/server", "--x"]), (json!("/opt/bin/server"), json!(["--x"])));
        let with_key = documented(&["env SOME_KEY=k npx -y some-mcp"]).unwrap();
        assert_eq!((with_key.name.as_str(), &with_key.entry["env"]["SOME_KEY"]), ("some-mcp", &json!("k")));
        assert_eq!(documented(&["SOME_KEY=k", "npx", "-y", "some-mcp"]).unwrap(), with_key);
        let secret = documented(&["env SOME_KEY=keyring:bank npx -y some-mcp"]).unwrap_err();
        assert!(secret.contains("asks for your secret `bank`"), "{secret}");
        assert!(documented(&["npx 'a"]).unwrap_err().contains("has an unmatched quote"));
        assert!(documented(&["memory", "time"]).unwrap_err().contains("unexpected argument `time`"));
    }

    #[test]
    fn containers_are_refused_with_advice() {
        let refused = "`docker` starts a container outside the sandbox, where IronCurtain cannot limit it";
        for words in [
            &["docker", "run", "-i", "mcp/time"][..],
            &["docker run -i mcp/time"],
            &["docker"],
            &[r#"{ "mcpServers": { "t": { "command": "docker", "args": ["run", "mcp/time"] } } }"#],
            &[r#"{ "t": { "command": "/usr/bin/docker", "args": ["run", "mcp/time"] } }"#],
        ] {
            let problem = documented(words).unwrap_err();
            assert!(problem.starts_with(refused) && problem.contains("npm:NAME"), "{problem}");
        }
        let allowed = documented(&["npx", "-y", "mcp-server-docker-tools"]);
        assert_eq!(allowed.unwrap().name, "mcp-server-docker-tools");
    }

    #[test]
    fn snippets_are_accepted_as_documentation_prints_them() {
        let entry = r#"{ "command": "npx", "args": ["-y", "some-mcp"] }"#;
        let expected = documented(&["npx", "-y", "some-mcp"]).unwrap();
        for text in [
            format!("```json\n{{ \"mcpServers\": {{ \"some-mcp\": {entry} }} }}\n```"),
            format!("{{ // for the editor\n \"servers\": {{ \"some-mcp\": {entry}, }}, }}"),
            format!("\"some-mcp\": {entry}"),
            format!("{{ \"mcp\": {{ \"servers\": {{ \"some-mcp\": {entry} }} }} }}"),
            format!("{{ \"context_servers\": {{ \"some-mcp\": {entry} }} }}"),
        ] {
            let added = documented(&[&text]).unwrap();
            assert_eq!((&added.name, &added.entry), (&expected.name, &expected.entry), "{text}");
        }
        assert!(documented(&["{ x: 1 }"]).unwrap_err().contains("failed to parse the snippet"));
        assert!(documented(&["{ 'x': {} }"]).unwrap_err().contains("failed to parse the snippet"));
    }

    #[test]
    fn a_name_that_either_registry_may_have_is_ambiguous() {
        let ambiguous = documented(&["repomix"]).unwrap_err();
        assert!(ambiguous.contains("write `npm:repomix` or `pypi:repomix`"), "{ambiguous}");
        assert_eq!(args(&["some-mcp==1.2"]), (json!("uvx"), json!(["some-mcp==1.2"])));
        assert_eq!(args(&["some-mcp@1.2"]), (json!("npx"), json!(["-y", "some-mcp@1.2"])));
        assert!(documented(&["no/name"]).unwrap_err().starts_with("unknown server `no/name`"));
    }
}
