//! Run profiles: the files, environment variables and hosts that an agent's program needs.
//!
//! - Shipped profiles are data files that name the source of each fact. A user's file in `run-profiles` of the
//!   configuration directory extends the shipped profile of the same name or defines a new one.
//! - A profile grants nothing by itself. A [`RunPlan`] resolves its paths and checks them against the protected paths.
//! - INVARIANT: only shipped profiles give access to credentials, and only to those of the profile's own
//!   agent.

mod arguments;
mod learn;
mod plan;
mod plan_context;
mod profile;
mod program;

pub use learn::{LearnedAccess, propose_profile};
pub use plan::{RunPlan, RunPlanError};
pub use plan_context::PlanContext;
pub use profile::{AddedArguments, ProgramPattern, RunProfile, SettingCondition};
pub use program::FoundProgram;

use crate::home::Home;
use crate::{ConfigError, read};
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::strict;
use ironcurtain_protocol::RunProfileChoice;
use std::path::{Path, PathBuf};

const SHIPPED: [(&str, &str); 8] = [
    ("claude", include_str!("../run-profiles/claude.json")),
    ("codex", include_str!("../run-profiles/codex.json")),
    ("gemini", include_str!("../run-profiles/gemini.json")),
    ("opencode", include_str!("../run-profiles/opencode.json")),
    ("copilot", include_str!("../run-profiles/copilot.json")),
    ("aider", include_str!("../run-profiles/aider.json")),
    ("goose", include_str!("../run-profiles/goose.json")),
    (RunProfiles::PLAIN, include_str!("../run-profiles/plain.json")),
];

/// Reason a run profile cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RunProfileError {
    /// A profile file cannot be read or is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The directory of the user's profiles cannot be read.
    #[error("failed to read `{folder}`: {source}")]
    Folder {
        /// Path of the directory.
        folder: PathBuf,
        /// Operating system error.
        source: std::io::Error,
    },
    /// No profile has the requested name.
    #[error("unknown run profile `{0}`; run `ironcurtain profiles` to list them")]
    Unknown(String),
}

/// All shipped and user profiles, each extended with the `plain` profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunProfiles {
    all: Vec<RunProfile>,
    plain: RunProfile,
}

impl RunProfiles {
    /// Name of the profile for unknown programs. All other profiles include it.
    pub const PLAIN: &str = "plain";

    /// Loads the shipped profiles and those of the user.
    ///
    /// # Errors
    /// Returns a [`RunProfileError`] that names the file and the field.
    pub fn load(home: &Home) -> Result<Self, RunProfileError> {
        let mut all = shipped()?;
        let folder = home.run_profiles();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries.collect::<Result<Vec<_>, _>>(),
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(source),
        };
        let entries = entries.map_err(|source| RunProfileError::Folder { folder, source })?;
        let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "json"));
        files.sort();
        for file in files {
            let own = RunProfile::parse_user_file(&file, &read(&file)?.unwrap_or_default())?;
            match all.iter_mut().find(|known| known.name == own.name) {
                Some(known) => known.add(own),
                None => all.push(own),
            }
        }
        let plain = all.iter().find(|profile| profile.name == Self::PLAIN).cloned();
        let plain = plain.ok_or_else(|| RunProfileError::Unknown(Self::PLAIN.to_owned()))?;
        for profile in all.iter_mut().filter(|profile| profile.name != Self::PLAIN) {
            profile.add(plain.clone());
        }
        Ok(Self { all, plain })
    }

    /// Iterates over all profiles.
    pub fn iter(&self) -> impl Iterator<Item = &RunProfile> {
        self.all.iter()
    }

    /// Returns the profile to save for the user: `base` extended with the paths in `learned`, except those of the
    /// `plain` profile.
    ///
    /// For a shipped `base`, the result contains only the new paths.
    #[must_use]
    pub fn with_learned(&self, base: RunProfile, learned: RunProfile) -> RunProfile {
        let is_shipped = SHIPPED.iter().any(|(name, _)| *name == base.name);
        let mut all = if is_shipped {
            learned
        } else {
            RunProfile { name: learned.name.clone(), ..base.with(learned) }
        };
        let plain = &self.plain;
        for (own, common) in
            [(&mut all.settings, &plain.settings), (&mut all.read, &plain.read), (&mut all.env, &plain.env)]
        {
            own.retain(|one| !common.contains(one));
        }
        all
    }

    /// Returns the profile with the requested name or, without a name, the profile that matches the program.
    ///
    /// # Errors
    /// Returns a [`RunProfileError`] if the requested profile does not exist.
    pub fn choose(
        &self,
        choice: Option<&RunProfileChoice>,
        program: Option<&FoundProgram>,
        home: &CanonicalPath,
        cwd: &Path,
    ) -> Result<RunProfile, RunProfileError> {
        match choice {
            Some(RunProfileChoice::Named(name)) => {
                let found = self.all.iter().find(|profile| profile.name == *name);
                found.cloned().ok_or_else(|| RunProfileError::Unknown(name.clone()))
            }
            Some(RunProfileChoice::Given { file, text }) => {
                let mut own = RunProfile::given(Path::new(file), text)?;
                own.add(self.plain.clone());
                Ok(own)
            }
            None => {
                let is_its = |profile: &&RunProfile| {
                    program.is_some_and(|program| program.is_recognized(&profile.program, home, cwd))
                };
                Ok(self.all.iter().find(is_its).unwrap_or(&self.plain).clone())
            }
        }
    }
}

fn shipped() -> Result<Vec<RunProfile>, ConfigError> {
    let read = |(name, text): &(&str, &str)| RunProfile::shipped(Path::new(&format!("{name}.json")), text);
    SHIPPED.iter().map(read).collect()
}

/// Creates an error about one field of a profile file.
fn invalid(file: &Path, text: &str, field: &str, problem: impl std::fmt::Display) -> ConfigError {
    let line = strict::line_of(text, &[field]);
    ConfigError::invalid(file, line, format!("`{field}`: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_paths::protected::{clients, secrets};
    use std::collections::BTreeSet;

    fn home_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::under(dir.path(), Path::new("/home/u"));
        home.prepare().unwrap();
        std::fs::create_dir(home.run_profiles()).unwrap();
        for (name, text) in files {
            std::fs::write(home.run_profiles().join(name), text).unwrap();
        }
        (dir, home)
    }

    fn error(name: &str, text: &str) -> String {
        let (dir, home) = home_with(&[(name, text)]);
        let refused = RunProfiles::load(&home).unwrap_err().to_string();
        refused.replace(&*dir.path().to_string_lossy(), "")
    }

    fn choose(profiles: &RunProfiles, choice: RunProfileChoice) -> Result<RunProfile, String> {
        let home = CanonicalPath::assume_canonical("/home/u").unwrap();
        profiles.choose(Some(&choice), None, &home, Path::new("/p")).map_err(|error| error.to_string())
    }

    #[test]
    fn shipped_profiles_are_valid_and_each_fact_has_a_source() {
        let shipped = shipped().unwrap();
        assert_eq!(shipped.len(), SHIPPED.len());
        for (profile, (name, text)) in shipped.iter().zip(SHIPPED) {
            assert_eq!(profile.name, name);
            let written: serde_json::Value = serde_json::from_str(text).unwrap();
            let fields = written.as_object().unwrap().keys().map(String::as_str);
            let facts: BTreeSet<&str> = fields
                .filter(|field| !["schemaVersion", "name", "title", "measured", "sources"].contains(field))
                .collect();
            let sources: BTreeSet<&str> = profile.sources.keys().map(String::as_str).collect();
            assert_eq!(facts, sources, "{name}");
            assert!(profile.sources.values().all(|source| !source.is_empty() && !source.ends_with('.')));
        }
    }

    #[test]
    fn shipped_profiles_open_no_secret_except_the_logins_that_they_name() {
        let home = CanonicalPath::assume_canonical("/home/u").unwrap();
        let known = secrets(&home);
        for profile in shipped().unwrap() {
            let at = |path: &String| CanonicalPath::assume_canonical(profile::expanded(path, &home).as_str());
            let settings: Vec<CanonicalPath> =
                profile.settings.iter().map(|path| at(path).unwrap()).collect();
            let logins: BTreeSet<CanonicalPath> =
                profile.logins.iter().map(|path| at(path).unwrap()).collect();
            let opened = known.iter().filter(|secret| settings.iter().any(|path| path.contains(secret)));
            assert_eq!(opened.cloned().collect::<BTreeSet<_>>(), logins, "{}", profile.name);
            for path in profile.settings.iter().chain(&profile.read) {
                let path = at(path).unwrap();
                let touches = |secret: &&CanonicalPath| secret.contains(&path) && !logins.contains(secret);
                assert_eq!(known.iter().find(touches), None, "{} {path}", profile.name);
            }
        }
        // The agent's settings file is also one of the known client configurations.
        let claude = CanonicalPath::assume_canonical("/home/u/.claude/settings.json").unwrap();
        assert!(clients(&home).contains(&claude));
    }

    #[test]
    fn a_users_file_adds_to_the_shipped_profile_or_is_a_new_one() {
        let more = r#"{ "schemaVersion": 1, "name": "claude", "settings": ["~/notes/"], "env": ["MY_KEY"] }"#;
        let new = r#"{ "schemaVersion": 1, "name": "mine", "program": { "names": ["mine"], "folders": ["/opt/mine"] } }"#;
        let (_dir, home) = home_with(&[("claude.json", more), ("mine.json", new), ("notes.txt", "no")]);
        let profiles = RunProfiles::load(&home).unwrap();
        let claude = choose(&profiles, RunProfileChoice::Named("claude".into())).unwrap();
        assert!(["~/.claude/", "~/notes/"].iter().all(|path| claude.settings.iter().any(|own| own == path)));
        assert!(claude.passes("MY_KEY") && claude.passes("ANTHROPIC_API_KEY") && claude.passes("TERM"));
        assert!(!claude.passes("GITHUB_TOKEN"));
        assert!(claude.read.contains(&"~/.gitconfig".to_owned()), "every profile has what `plain` has");
        assert_eq!(choose(&profiles, RunProfileChoice::Named("mine".into())).unwrap().name, "mine");
        let unknown = choose(&profiles, RunProfileChoice::Named("missing".into()));
        assert_eq!(
            unknown,
            Err("unknown run profile `missing`; run `ironcurtain profiles` to list them".into())
        );
    }

    #[test]
    fn errors_name_the_file_and_the_field() {
        let with =
            |field: &str| error("x.json", &format!("{{ \"schemaVersion\": 1,\n\"name\": \"x\",\n{field} }}"));
        for (field, problem) in [
            (r#""setings": []"#, "unknown field `setings`"),
            (r#""settings": ["notes"]"#, "`settings`: `notes` must start with `~/` or `/`"),
            (r#""settings": ["~/a/../.ssh/"]"#, "`settings`: `~/a/../.ssh/` contains `..`"),
            (r#""read": ["~"]"#, "`read`: `~` must start with `~/` or `/`"),
            (r#""logins": ["~/.ssh"]"#, "`logins`: only shipped profiles can access credentials"),
            (r#""env": ["*"]"#, "`env`: `*` is too wide; write at least two letters before the `*`"),
            (r#""env": ["A=B"]"#, "`env`: `A=B` is not the name of a variable"),
            (r#""hosts": ["https://a.example/"]"#, "`hosts`: `https://a.example/` is not a host name"),
        ] {
            let refused = with(field);
            assert!(refused.starts_with("`/config/run-profiles/x.json`, line 3: "), "{refused}");
            assert!(refused.contains(problem), "{refused}");
        }
        let other = error("x.json", r#"{ "schemaVersion": 1, "name": "y" }"#);
        assert_eq!(
            other,
            "`/config/run-profiles/x.json`, line 1: `name`: expected `x` as in the file's name, found `y`"
        );
        let version = error("x.json", r#"{ "schemaVersion": 2, "name": "x" }"#);
        assert!(version.ends_with("`schemaVersion`: unsupported version 2, expected 1"), "{version}");
    }

    #[test]
    fn a_given_file_is_named_in_errors_and_opens_no_login() {
        let (_dir, home) = home_with(&[]);
        let profiles = RunProfiles::load(&home).unwrap();
        let given = |text: &str| RunProfileChoice::Given { file: "p.json".into(), text: text.into() };
        let good = choose(&profiles, given(r#"{ "schemaVersion": 1, "name": "p", "settings": ["~/.p/"] }"#));
        assert_eq!(good.unwrap().settings, ["~/.p/"]);
        let bad = choose(&profiles, given(r#"{ "schemaVersion": 1, "name": "p", "logins": ["~/.p"] }"#));
        assert!(bad.unwrap_err().starts_with("`p.json`, line 1: `logins`: only shipped profiles"));
    }

    /// Returns the profile table as it appears in the reference manual.
    fn table() -> String {
        let code = |words: &[String]| {
            let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            words.join(" ")
        };
        let mut lines = vec![
            "| profile | program | measured | changes | of these, logins | reads | hosts | variables | arguments |".to_owned(),
            "|---|---|---|---|---|---|---|---|---|".to_owned(),
        ];
        for profile in shipped().unwrap() {
            let set = profile.set_env.iter().map(|(name, value)| format!("{name}={value}"));
            let variables: Vec<String> = profile.env.iter().cloned().chain(set).collect();
            let arguments: Vec<String> = profile.args.iter().map(|added| added.add.join(" ")).collect();
            let read: Vec<String> = profile.read.iter().chain(&profile.programs).cloned().collect();
            let cells = [
                profile.name.clone(),
                profile.title.unwrap_or_default(),
                profile.measured.unwrap_or_default(),
                code(&profile.settings),
                code(&profile.logins),
                code(&read),
                code(&profile.hosts),
                code(&variables),
                code(&arguments),
            ];
            lines.push(format!("| {} |", cells.join(" | ")));
        }
        lines.join("\n")
    }

    #[test]
    fn the_reference_lists_the_shipped_profiles() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/reference/run-profiles.md");
        let text = std::fs::read_to_string(page).unwrap();
        let table = table();
        if std::env::var_os("IRONCURTAIN_WRITE_SCHEMAS").is_some() {
            let is_row = |line: &&str| line.starts_with('|') && line.matches('|').count() == 10;
            let old: Vec<&str> = text.lines().filter(is_row).collect();
            std::fs::write(page, text.replace(&old.join("\n"), &table)).unwrap();
        }
        let text = std::fs::read_to_string(page).unwrap();
        assert!(text.contains(&table), "docs/reference/run-profiles.md must contain this table:\n{table}");
    }
}
