//! Follows the guide "Manage a team" from the first command to the last. Programs that stand in for `ssh`, `scp` and `sudo`
//! run the commands on this computer.

use super::bundle_server::{Behaviour, BundleServer};
use super::world;
use crate::client::TIMEOUT;
use crate::private_etc::replace_etc;
use crate::world::{eventually, programs};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const GUIDE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/guide/teams.md"));

/// Programs of the administrator's computer. All hosts share its folder.
const STANDINS: [(&str, &str); 3] = [
    ("sudo", "exec \"$@\""),
    // Copies to the folder of the host, or to a path on it.
    ("scp", "for last; do :; done; to=${last#*:}; [ -n \"$to\" ] || exit 0; cp \"$1\" \"$to\""),
    ("ssh", "[ \"$1\" = -n ] && shift; shift; exec sh -c \"$*\""),
];

/// Returns the blocks of a page in this language.
fn blocks(language: &str) -> Vec<&'static str> {
    let start = format!("```{language}\n");
    GUIDE.split(start.as_str()).skip(1).map(|block| block.split("```").next().unwrap()).collect()
}

/// Returns the commands of the section with this title.
fn commands(title: &str) -> Vec<&'static str> {
    let section = GUIDE.split("\n## ").find(|section| section.lines().next() == Some(title)).unwrap();
    section.lines().filter_map(|line| line.strip_prefix("$ ")).collect()
}

/// Runs the commands of a section, with `www` as the folder of the web server. Returns what they print.
fn follow(title: &str, dir: &Path, www: &Path, home: &Path) -> String {
    let path = format!("{}:{}", dir.join("bin").display(), programs().display());
    let mut printed = String::new();
    for line in commands(title) {
        let done = Command::new("sh")
            .args(["-c", &line.replace("/var/www/bundles", www.to_str().unwrap())])
            .env("PATH", format!("{path}:{}", std::env::var("PATH").unwrap()))
            .env("IRONCURTAIN_HOME", home)
            .current_dir(dir)
            .output()
            .unwrap();
        printed += &String::from_utf8_lossy(&done.stdout);
        let error = String::from_utf8_lossy(&done.stderr);
        // `doctor` also reports what this machine lacks.
        assert!(done.status.success() || line.ends_with("doctor"), "`{line}`: {printed}{error}");
    }
    printed
}

#[test]
fn a_team_is_set_up_by_the_commands_of_the_guide() {
    if !is_inside() {
        let name = "managed::teams_guide::a_team_is_set_up_by_the_commands_of_the_guide";
        return run_inside(name, &["--mount"]);
    }
    let dir = tempfile::tempdir().unwrap();
    replace_etc(dir.path());
    let (dir, www) = (dir.path(), dir.path().join("www"));
    for folder in ["rules", "bin", "www"] {
        std::fs::create_dir(dir.join(folder)).unwrap();
    }
    for (name, script) in STANDINS {
        let path = dir.join("bin").join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let json = blocks("json");
    std::fs::write(dir.join("rules/compiled-policy.json"), json[0]).unwrap();
    std::fs::write(dir.join("rules/scenarios.json"), json[1]).unwrap();
    std::fs::write(dir.join("deploy.sh"), blocks("sh")[0]).unwrap();
    std::fs::write(dir.join("hosts.txt"), "laptop1\nlaptop2\n").unwrap();

    let scratch = dir.join("scratch");
    for title in ["Create the keys", "Build and check the bundle", "Publish the bundle"] {
        follow(title, dir, &www, &scratch);
    }
    let server = BundleServer::start(Behaviour::Publish(std::fs::read(www.join("bundle.tar.gz")).unwrap()));
    let url = format!("http://127.0.0.1:{}/bundle.tar.gz", server.port);
    let managed = json[2].replace("https://bundles.example.com/bundle.tar.gz", &url);
    std::fs::write(dir.join("managed.json"), managed).unwrap();
    let deployed = commands("Set up the computers");
    assert_eq!(deployed, ["sh deploy.sh", "ironcurtain doctor"]);
    follow("Set up the computers", dir, &www, &scratch);
    let world = world();
    eventually("doctor shows the revision", TIMEOUT, || {
        let mut doctor = Command::new(programs().join("ironcurtain"));
        let output = doctor.arg("doctor").env("IRONCURTAIN_HOME", world.ours()).output().unwrap();
        String::from_utf8_lossy(&output.stdout)
            .contains("organization: Example Inc. manages the rules: revision `")
    });
    let changes = follow("Change the rules", dir, &www, &world.ours());
    assert!(changes.contains(" from deny (`managed:no-customer-data`) to escalate"), "{changes}");
}

#[test]
fn nginx_serves_the_bundle_with_the_configuration_of_the_guide() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let openssl = "req -x509 -newkey rsa:2048 -nodes -keyout bundles.key -out bundles.pem -subj /CN=bundles.example.com";
    let made = Command::new("openssl").args(openssl.split(' ')).current_dir(dir).output().unwrap();
    assert!(made.status.success());
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = blocks("nginx")[0]
        .replace("443", &format!("127.0.0.1:{port}"))
        .replace("/etc/ssl/private/", &format!("{}/", dir.display()))
        .replace("/etc/ssl/", &format!("{}/", dir.display()))
        .replace("/var/www/bundles", dir.to_str().unwrap());
    std::fs::write(dir.join("bundle.tar.gz"), "bundle").unwrap();
    let _nginx = super::nginx::Nginx::run(dir, port, &server);
    let url = format!("https://127.0.0.1:{port}/bundle.tar.gz");
    let fetched = Command::new("curl").args(["-sSki", &url]).output().unwrap();
    let response = String::from_utf8(fetched.stdout).unwrap();
    assert!(response.starts_with("HTTP/1.1 200") && response.ends_with("\r\n\r\nbundle"), "{response}");
    assert!(response.contains("\r\nETag: "), "{response}");
}
