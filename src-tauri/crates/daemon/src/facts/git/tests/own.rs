//! The configuration of the machine and the person, where the variables of the process say that it is.

use super::*;

/// Set in the process that looks.
const INSIDE: &str = "IRONCURTAIN_TEST_OF_GIT";

/// What this file calls the test, for the process that is to run it alone.
const TEST: &str =
    concat!(module_path!(), "::the_files_of_the_machine_and_the_person_are_where_their_variables_say");

/// Those whose addresses are replaced, each in a file of its own.
const HOSTS: [&str; 5] = ["machine", "usual", "base", "own", "global"];

/// Variables of a process.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Has a file lead an address to a host that tells of it.
fn leads(person: &Person, file: &str, host: &str) {
    person.file(file, &format!("[url \"https://{host}.example/\"]\n\tinsteadOf = {host}:\n"));
}

#[test]
fn the_files_of_the_machine_and_the_person_are_where_their_variables_say() {
    if std::env::var_os(INSIDE).is_some() {
        return look();
    }
    let person = Person::new();
    let urls: String = HOSTS.iter().map(|host| format!("\turl = {host}:x\n")).collect();
    person.config(&format!("[remote \"origin\"]\n{urls}"));
    leads(&person, "machine", "machine");
    leads(&person, ".config/git/config", "usual");
    leads(&person, "base/git/config", "base");
    leads(&person, ".gitconfig", "own");
    leads(&person, "global", "global");
    let at = |below: &str| person.path(below).to_string();
    let (machine, base, global) = (at("machine"), at("base"), at("global"));
    let machine = ("GIT_CONFIG_SYSTEM", machine.as_str());
    let no_machine = ("GIT_CONFIG_NOSYSTEM", "1");
    let all: [(Variables<'_>, &[&str]); 5] = [
        (&[], &["machine", "usual", "own"]),
        (&[("XDG_CONFIG_HOME", "")], &["machine", "usual", "own"]),
        (&[("XDG_CONFIG_HOME", &base)], &["machine", "base", "own"]),
        (&[("XDG_CONFIG_HOME", &base), ("GIT_CONFIG_GLOBAL", &global)], &["machine", "global"]),
        (&[no_machine], &["usual", "own"]),
    ];
    for (variables, known) in all {
        let mut expected = HOSTS.map(|host| address(host, known.contains(&host))).to_vec();
        let has_machine = !variables.contains(&no_machine);
        let variables = variables.iter().copied().chain([machine]);
        let mut git = Command::new("git");
        git.args(["remote", "get-url", "--all", "origin"]).current_dir(person.path("repo").as_path());
        let of_git = clean(&mut git, &person).envs(variables.clone()).output().unwrap();
        assert_eq!(String::from_utf8(of_git.stdout).unwrap().lines().collect::<Vec<_>>(), expected);
        if !has_machine {
            // A server may be without the variable: both count.
            let (with, without) = (address("machine", true), std::mem::take(&mut expected[0]));
            expected[0] = with;
            expected.push(without);
        }
        let mut again = Command::new(std::env::current_exe().unwrap());
        again
            .args(["--exact", TEST.split_once("::").unwrap().1, "--nocapture"])
            .env(INSIDE, expected.join(" "));
        let output = clean(&mut again, &person).envs(variables).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let complained = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.contains("1 passed"), "{said}\n{complained}");
    }
}

fn address(host: &str, is_known: bool) -> String {
    if is_known { format!("https://{host}.example/x") } else { format!("{host}:x") }
}

/// A command without the variables that are meant, for this person.
fn clean<'a>(command: &'a mut Command, person: &Person) -> &'a mut Command {
    for name in ["XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"] {
        command.env_remove(name);
    }
    command.env("HOME", person.path("").as_path())
}

/// Looks at the home that is the process's own.
fn look() {
    let home = CanonicalPath::assume_canonical(&std::env::var("HOME").unwrap()).unwrap();
    let question = RemoteQuestion {
        repositories: vec![home.join("repo").unwrap()],
        way: Way::Fetch,
        values: vec![(0, Some("origin".to_owned()))],
    };
    let answer = question.answer(&Git { person: home, in_sandbox: false }, &|_| true);
    let [(0, Fact::Remotes(all))] = answer.as_slice() else { panic!("{answer:?}") };
    assert_eq!(all.join(" "), std::env::var(INSIDE).unwrap());
}
