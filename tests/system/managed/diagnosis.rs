//! `ironcurtain doctor` describes the organization's rules in exactly one line, and what applies until they are updated.

use super::bundle_server::{Behaviour, BundleServer};
use super::{Organization, command, has_no_trouble, has_trouble, key_pair, rule, world};
use crate::client::TIMEOUT;
use crate::scripted_user::Next;
use crate::world::{World, eventually, programs};
use ironcurtain_config::MANAGED_FILE;
use ironcurtain_consent::{Lifetime, Reach};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// Returns the doctor's line about the organization. Asserts that no other line is about its rules.
#[track_caller]
fn organization_line(world: &World) -> String {
    let (_, said) = command(world, &["doctor"]);
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("  organization: ")).collect();
    assert_eq!(lines.len(), 1, "{said}");
    assert!(
        !said.contains("  IronCurtain: running") || said.contains("ok       IronCurtain: running"),
        "{said}"
    );
    lines[0].to_owned()
}

/// Returns the doctor's output for IronCurtain's folder `ours`, while the daemon is stopped.
fn stopped_doctor(ours: &Path) -> String {
    let program = programs().join("ironcurtain");
    let output = Command::new(program).arg("doctor").env("IRONCURTAIN_HOME", ours).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn without(organization: &Organization, port: u16, decision: &str) {
    let url = format!("http://127.0.0.1:{port}/bundle.tar.gz");
    let mut managed: Value = Organization::managed_at(&url, &json!({}));
    managed["bundle"]["without"] = decision.into();
    organization.writes(&managed);
}

#[test]
fn doctor_and_calls_agree_while_there_is_no_bundle() {
    if !is_inside() {
        return run_inside(
            "managed::diagnosis::doctor_and_calls_agree_while_there_is_no_bundle",
            &["--mount"],
        );
    }
    let organization = Organization::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    without(&organization, port, "deny");
    let mut world = world();
    let file = world.file("docs/a.txt", "content");
    has_trouble(&world, "failed to connect to the bundle server");
    let line = organization_line(&world);
    let start = "PROBLEM  organization: Your organization's rules were not updated: failed to connect";
    assert!(
        line.starts_with(start) && line.ends_with("Until they are downloaded, every call is denied."),
        "{line}"
    );
    world.connect("hostile").open(&file).refused("managed:no-bundle");
    assert_eq!(world.user.count(), 0);

    let mut stopped = Vec::new();
    let ours = world.ours();
    world.restart_after(|| {
        stopped.push(stopped_doctor(&ours));
        without(&organization, port, "ask");
        stopped.push(stopped_doctor(&ours));
    });
    let never = "PROBLEM  organization: the rules of Example were never downloaded, so";
    assert!(stopped[0].contains(&format!("{never} every call is denied\n")), "{}", stopped[0]);
    assert!(stopped[1].contains(&format!("{never} every call requires your approval\n")), "{}", stopped[1]);
    has_trouble(&world, "Until they are downloaded, every call requires your approval.");
    let line = organization_line(&world);
    assert!(line.ends_with("Until they are downloaded, every call requires your approval."), "{line}");

    let mut client = world.connect("hostile");
    client.open(&file).refused("DENIED");
    world.user.will(Next::Allow(Reach::Folders, Lifetime::Session));
    assert_eq!(client.open(&file).ok(), "content");
    let asked = world.user.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    for question in &asked {
        assert_eq!(question.rule, "managed:no-bundle");
        assert_eq!(question.reason, "the rules of Example have not been downloaded yet");
    }
    // A call without a path requires approval too, although the user's own rules allow it.
    client.plain("now").refused("DENIED");
    assert_eq!(world.user.count(), 1);
}

#[test]
fn doctor_reports_a_failed_update_once_and_keeps_the_last_good_rules() {
    if !is_inside() {
        let test = "managed::diagnosis::doctor_reports_a_failed_update_once_and_keeps_the_last_good_rules";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let rules = json!([rule("quiet", "heard", "deny")]);
    let server = BundleServer::start(Behaviour::Serve(organization.bundle(10, &rules)));
    organization.manages(server.port, &json!({}));
    let mut world = world();
    let good = "organization: Example manages the rules: revision `r10`, number 10";
    eventually("the bundle applies", TIMEOUT, || organization_line(&world) == format!("ok       {good}"));
    has_no_trouble(&world);
    let other_key = key_pair(organization.dir.path(), "other.pem");
    let forged = organization.signed_by(&other_key, 11, &json!([]));
    let older = organization.bundle(9, &json!([]));
    for (behaviour, why) in [
        (Behaviour::Serve(forged), "the signature does not match the public key"),
        (Behaviour::Serve(older), "its sequence number 9 is lower than the current 10"),
        (Behaviour::Status(503), "status 503"),
    ] {
        server.behave(behaviour);
        has_trouble(&world, why);
        let line = organization_line(&world);
        let start = format!("PROBLEM  {good}. Your organization's rules were not updated: ");
        assert!(line.starts_with(&start) && line.contains(why), "{line}");
        assert!(line.ends_with("The last good rules stay in effect."), "{line}");
        world.connect("hostile").plain("heard").refused("managed:quiet");
    }
    // Without a running daemon, nothing has failed, unless the stored bundle was changed.
    let kept = world.home.state.join("managed/bundle.tar.gz");
    let ours = world.ours();
    let mut stopped = Vec::new();
    world.restart_after(|| {
        stopped.push(stopped_doctor(&ours));
        std::fs::write(&kept, "changed").unwrap();
        stopped.push(stopped_doctor(&ours));
        let file = std::fs::read_to_string(MANAGED_FILE).unwrap();
        std::fs::write(MANAGED_FILE, "{").unwrap();
        stopped.push(stopped_doctor(&ours));
        std::fs::write(MANAGED_FILE, file).unwrap();
    });
    assert!(stopped[0].contains(&format!("ok       {good}\n")), "{}", stopped[0]);
    let damaged = "PROBLEM  organization: the last downloaded bundle is not used: ";
    let line =
        stopped[1].lines().find(|line| line.starts_with(damaged)).unwrap_or_else(|| panic!("{}", stopped[1]));
    assert!(line.ends_with("; every call is denied"), "{line}");
    assert!(stopped[2].contains("PROBLEM  organization: `/etc/ironcurtain/managed.json`"), "{}", stopped[2]);
}
