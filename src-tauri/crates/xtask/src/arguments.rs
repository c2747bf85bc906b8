//! Command line of `cargo xtask`.

use anyhow::bail;

/// Text printed by `cargo xtask help`.
pub(crate) const HELP: &str = "\
usage: cargo xtask TASK

  run       build and start the app, or the demo if there is no display
  demo      show a whole session in a temporary home with a real client, sandbox and server
  check     check formatting, lints, documentation, dependencies and structure
  test      run every test
  bench     compare IronCurtain's overhead with other programs
  servers   add servers from npm and PyPI as a user does, and call them
  soak      repeat tests with random seeds for a while
  fuzz      feed random bytes to the parsers and the judge; needs a nightly compiler
  pictures  draw the documentation's pictures from the app
  book      build the documentation in target/book and check its links
  package   build the .deb, the .rpm, the bundle and the bill of materials from a debug build
  release   build the same from a release build
  help      print this text

options:
  run -- ARGUMENTS                     arguments of the app
  demo --answer allow|deny|timeout     answer the questions without a user
  demo --desktop                       ask with the app's dialog
  check --fast, test --fast            run only the quick ones, without a display
  check --cross                        check types for macOS and Windows instead
  bench --write                        write the tables to docs/reference/benchmarks.md
  bench --with-srt                     compare with srt, installed from npm into target
  bench --smoke                        compute every row once in a debug build
  bench --desktop                      measure the app instead
  bench --fleet                        simulate 10,000 desktops instead
  servers [NAME]                       add and call one server only
  soak [NAME] [--minutes N]            run one campaign, for N minutes (10)
  fuzz [TARGET] [--seconds N]          fuzz one target, for N seconds (60)
  package --clean-root                 also install it in a bare Debian and run the demo there (root, on Debian)

Each task installs missing system packages first: directly as root and in CI, otherwise with sudo.";

/// A task.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Help,
    Run { arguments: Vec<String> },
    Demo { arguments: Vec<String> },
    Release,
    Package { in_clean_root: bool },
    Test(Scope),
    Bench(Measuring),
    BenchDesktop { write: bool },
    BenchFleet { write: bool },
    Pictures,
    Fuzz { target: Option<String>, seconds: u32 },
    Soak { campaign: Option<String>, minutes: u32 },
    Servers { name: Option<String> },
    Check(Scope),
    CheckCross,
    Book,
}

/// Options of `cargo xtask bench`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Measuring {
    /// `true` to write the tables to the documentation.
    pub(crate) write: bool,
    /// `true` to also measure `srt`.
    pub(crate) with_srt: bool,
    /// `true` to measure each row only once, which checks that the benchmarks work. The results are meaningless.
    pub(crate) smoke: bool,
}

/// Part of the project to which a task applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The whole project.
    Everything,
    /// For checks, everything except the app. For tests, only those that need no display, sandbox, network or package
    /// registry.
    Fast,
}

/// Parses the arguments after the program name.
pub(crate) fn read(arguments: impl IntoIterator<Item = String>) -> anyhow::Result<Task> {
    let mut arguments = arguments.into_iter();
    let task = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let passed_on = || rest.iter().filter(|a| *a != "--").cloned().collect();
    match task.as_deref() {
        None | Some("help" | "--help" | "-h") => Ok(Task::Help),
        Some("run") => Ok(Task::Run { arguments: passed_on() }),
        Some("demo") => Ok(Task::Demo { arguments: passed_on() }),
        Some("pictures") => flags([], &rest).map(|[]| Task::Pictures),
        Some("release") => flags([], &rest).map(|[]| Task::Release),
        Some("package") => {
            flags(["--clean-root"], &rest).map(|[in_clean_root]| Task::Package { in_clean_root })
        }
        Some("test") => Ok(Task::Test(scope(&rest)?)),
        Some("bench") => {
            let [write, with_srt, smoke, desktop, fleet] =
                flags(["--write", "--with-srt", "--smoke", "--desktop", "--fleet"], &rest)?;
            if write && smoke {
                bail!(
                    "`--smoke` cannot be used with `--write`, because its figures are meaningless\n\n{HELP}"
                );
            }
            match (desktop, fleet) {
                (false, false) => Ok(Task::Bench(Measuring { write, with_srt, smoke })),
                (true, false) if !with_srt && !smoke => Ok(Task::BenchDesktop { write }),
                (false, true) if !with_srt && !smoke => Ok(Task::BenchFleet { write }),
                (true, _) | (_, true) => {
                    bail!("`--desktop` and `--fleet` can only be used with `--write`\n\n{HELP}")
                }
            }
        }
        Some("fuzz") => {
            named_for(&rest, "--seconds", 60).map(|(target, seconds)| Task::Fuzz { target, seconds })
        }
        Some("soak") => {
            named_for(&rest, "--minutes", 10).map(|(campaign, minutes)| Task::Soak { campaign, minutes })
        }
        Some("servers") => match rest.as_slice() {
            [] => Ok(Task::Servers { name: None }),
            [name] if !name.starts_with('-') => Ok(Task::Servers { name: Some(name.clone()) }),
            _ => bail!("`servers` takes the name of one server\n\n{HELP}"),
        },
        Some("book") => flags([], &rest).map(|[]| Task::Book),
        Some("check") if rest == ["--cross"] => Ok(Task::CheckCross),
        Some("check") => Ok(Task::Check(scope(&rest)?)),
        Some(other) => bail!("unknown task `{other}`\n\n{HELP}"),
    }
}

fn scope(given: &[String]) -> anyhow::Result<Scope> {
    let [fast] = flags(["--fast"], given)?;
    Ok(if fast { Scope::Fast } else { Scope::Everything })
}

/// Returns the given name, if any, and the value of an option that takes a positive number.
fn named_for(given: &[String], option: &str, default: u32) -> anyhow::Result<(Option<String>, u32)> {
    let (mut name, mut number) = (None, default);
    let mut given = given.iter();
    while let Some(word) = given.next() {
        if word == option {
            let value = given.next().and_then(|value| value.parse().ok()).filter(|value| *value > 0);
            number = value.ok_or_else(|| anyhow::anyhow!("`{option}` needs a number\n\n{HELP}"))?;
        } else if word.starts_with('-') || name.is_some() {
            bail!("unknown option `{word}` for this task\n\n{HELP}");
        } else {
            name = Some(word.clone());
        }
    }
    Ok((name, number))
}

/// Returns `true` for each option name that was given.
fn flags<const N: usize>(names: [&str; N], given: &[String]) -> anyhow::Result<[bool; N]> {
    if let Some(other) = given.iter().find(|g| !names.contains(&g.as_str())) {
        bail!("unknown option `{other}` for this task\n\n{HELP}");
    }
    Ok(names.map(|name| given.iter().any(|g| g == name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(line: &str) -> Option<Task> {
        read(line.split_whitespace().map(str::to_owned)).ok()
    }

    #[test]
    fn tasks_and_their_options() {
        assert_eq!(task(""), Some(Task::Help));
        assert_eq!(task("release"), Some(Task::Release));
        assert_eq!(task("release --fast"), None);
        assert_eq!(task("package"), Some(Task::Package { in_clean_root: false }));
        assert_eq!(task("test"), Some(Task::Test(Scope::Everything)));
        assert_eq!(task("test --fast"), Some(Task::Test(Scope::Fast)));
        let writing = Measuring { write: true, ..Measuring::default() };
        assert_eq!(task("bench --write"), Some(Task::Bench(writing)));
        let both = Measuring { with_srt: true, ..writing };
        assert_eq!(task("bench --with-srt --write"), Some(Task::Bench(both)));
        let smoke = Measuring { smoke: true, ..Measuring::default() };
        assert_eq!(task("bench --smoke"), Some(Task::Bench(smoke)));
        assert_eq!(task("bench --desktop"), Some(Task::BenchDesktop { write: false }));
        assert_eq!(task("bench --desktop --write"), Some(Task::BenchDesktop { write: true }));
        assert_eq!(task("bench --fleet --write"), Some(Task::BenchFleet { write: true }));
        assert_eq!(task("pictures"), Some(Task::Pictures));
        assert_eq!(task("book"), Some(Task::Book));
        assert_eq!(task("check --cross"), Some(Task::CheckCross));
        assert_eq!(task("check --cross --fast"), None);
        assert_eq!(task("fuzz"), Some(Task::Fuzz { target: None, seconds: 60 }));
        let one = Task::Fuzz { target: Some("paths".into()), seconds: 600 };
        assert_eq!(task("fuzz paths --seconds 600"), Some(one));
        assert_eq!(task("soak"), Some(Task::Soak { campaign: None, minutes: 10 }));
        let kills = Task::Soak { campaign: Some("kills".into()), minutes: 90 };
        assert_eq!(task("soak kills --minutes 90"), Some(kills));
        assert_eq!(task("servers"), Some(Task::Servers { name: None }));
        assert_eq!(task("servers repomix"), Some(Task::Servers { name: Some("repomix".into()) }));
        let arguments = vec!["--answer".to_owned(), "deny".to_owned()];
        assert_eq!(task("demo --answer deny"), Some(Task::Demo { arguments }));
        assert_eq!(task("run -- --background"), Some(Task::Run { arguments: vec!["--background".into()] }));
    }

    #[test]
    fn invalid_arguments_are_refused() {
        assert_eq!(task("tset"), None);
        assert_eq!(task("test --quick"), None);
        assert_eq!(task("check --write"), None);
        assert_eq!(task("bench --smoke --write"), None);
        assert_eq!(task("bench --desktop --smoke"), None);
        assert_eq!(task("bench --fleet --with-srt"), None);
        assert_eq!(task("bench --fleet --desktop"), None);
        assert_eq!(task("fuzz --seconds"), None);
        assert_eq!(task("fuzz --seconds 0"), None);
        assert_eq!(task("fuzz paths judge"), None);
        assert_eq!(task("soak --seconds 5"), None);
        assert_eq!(task("servers --all"), None);
        assert_eq!(task("servers one two"), None);
    }
}
