//! Command line that runs a server in an `srt` sandbox.
//!
//! - `srt` passes the value of `-c` to a shell, so every word is quoted.

use super::ServerFiles;

/// Program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Path or name of the program.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
}

/// Word that cannot be quoted for a shell.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` contains a NUL character, which a command line cannot contain")]
pub struct QuoteError(String);

/// Returns the `srt` command line that runs a program with the settings in `files`.
///
/// # Errors
/// Returns a [`QuoteError`] with the word that contains a NUL character.
pub fn launch(srt: &str, program: &Launch, files: &ServerFiles) -> Result<Launch, QuoteError> {
    let words = std::iter::once(&program.command).chain(&program.args).map(String::as_str);
    let line = words.map(quote).collect::<Result<Vec<_>, _>>()?.join(" ");
    let settings = files.settings.display().to_string();
    Ok(Launch { command: srt.to_owned(), args: vec!["-s".into(), settings, "-c".into(), line] })
}

fn quote(word: &str) -> Result<String, QuoteError> {
    let quoted = shlex::try_quote(word).map_err(|_| QuoteError(word.escape_default().to_string()))?;
    Ok(quoted.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::path::Path;
    use std::process::Command;

    fn launched(words: &[String]) -> Launch {
        let (command, args) = words.split_first().unwrap();
        let program = Launch { command: command.clone(), args: args.to_vec() };
        launch("/n/srt", &program, &ServerFiles::of("x", Path::new("/s")).unwrap()).unwrap()
    }

    #[test]
    fn the_whole_command_line() {
        let launch = launched(&["node".into(), "./a b.js".into(), "--x=$HOME/*".into(), String::new()]);
        let line = "node './a b.js' '--x=$HOME/*' ''";
        let expected = ["-s", "/s/x.srt-settings.json", "-c", line].map(str::to_owned).to_vec();
        assert_eq!(launch, Launch { command: "/n/srt".into(), args: expected });
        assert_eq!(quote("a\0"), Err(QuoteError("a\\u{0}".into())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn a_shell_splits_the_line_into_the_original_words(words in prop::collection::vec("[^\0]{0,12}", 1..5)) {
            let launch = launched(&words);
            let say = format!("printf '%s\\0' {}", launch.args[3]);
            for shell in ["sh", "bash"] {
                let output = Command::new(shell).args(["-c", &say]).output().unwrap();
                let expected: Vec<u8> = words.iter().flat_map(|w| w.bytes().chain([0])).collect();
                prop_assert_eq!(&output.stdout, &expected, "{}", shell);
            }
        }
    }
}
