//! The organization requires the export of the record, and sets the form of its paths.

use super::{Organization, command, refusal, world};
use crate::client::TIMEOUT;
use crate::hostile;
use crate::record_export::Collector;
use crate::scripted_user::ScriptedUser;
use crate::test_home::TestHome;
use crate::world::{World, eventually, programs};
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use serde_json::{Value, json};
use std::path::Path;

/// Waits until the denied call with this path is exported. Returns its paths, or `null` if they are not exported.
fn exported(collector: &Collector, count: usize) -> Value {
    let calls = || -> Vec<Value> {
        let records = collector.records().into_iter();
        let is_call = |record: &Value| {
            record["event"] == "ironcurtain.decision" && record["attributes"]["gen_ai.tool.name"] == "open"
        };
        records.filter(is_call).map(|record| record["attributes"]["ironcurtain.paths"].clone()).collect()
    };
    eventually(&format!("call {count} is exported"), TIMEOUT, || calls().len() >= count);
    assert_eq!(calls().len(), count);
    calls().pop().unwrap()
}

#[test]
fn paths_arrive_in_the_organizations_form_whatever_the_user_chose() {
    if !is_inside() {
        let test = "managed::export_settings::paths_arrive_in_the_organizations_form_whatever_the_user_chose";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let collector = Collector::start();
    organization.manages_settings(&json!({ "exportPaths": "none" }));
    let home = TestHome::new(|prepared| {
        hostile::install(prepared);
        let config = json!({ "export": { "url": collector.url(), "paths": "full" } });
        std::fs::write(prepared.home.config.join("config.json"), config.to_string()).unwrap();
    });
    let mut world = World::of(home, programs(), ScriptedUser::default());
    // IronCurtain's own files are denied without a question.
    let denied = |world: &World, name: &str| {
        let path = world.home.audit().join(name);
        world.connect("hostile").open(&path).refused("DENIED");
        path
    };
    denied(&world, "planted-none");
    assert_eq!(exported(&collector, 1), Value::Null);
    collector.assert_without(&["planted-none"]);
    world.restart_after(|| organization.manages_settings(&json!({ "exportPaths": "hashed" })));
    denied(&world, "planted-hashed");
    let hashed = exported(&collector, 2);
    assert!(hashed[0].as_str().is_some_and(|hash| hash.starts_with("hmac-sha256:")), "{hashed}");
    collector.assert_without(&["planted-none", "planted-hashed"]);
    world.restart_after(|| organization.manages_settings(&json!({})));
    let path = denied(&world, "planted-full");
    assert_eq!(exported(&collector, 3), json!([path]), "the user's choice applies again");
    let (_, status) = command(&world, &["export", "status"]);
    assert!(status.contains("Paths are exported in full.\n"), "{status}");

    // A change of the setting applies to the running export.
    organization.manages_settings(&json!({ "exportPaths": "none" }));
    let forms = || -> Vec<bool> {
        let records = collector.records();
        let paths = records.iter().filter(|record| record["attributes"]["gen_ai.tool.name"] == "open");
        paths.map(|record| record["attributes"]["ironcurtain.paths"].is_null()).collect()
    };
    eventually("paths are no longer exported", TIMEOUT, || {
        let before = forms().len();
        denied(&world, "planted-later");
        eventually("the call is exported", TIMEOUT, || forms().len() > before);
        forms().last() == Some(&true)
    });
    let (_, status) = command(&world, &["export", "status"]);
    assert!(status.contains("Paths are not exported; Example has set this.\n"), "{status}");
    let (_, sample) = command(&world, &["export", "sample"]);
    assert!(sample.contains("ironcurtain.decision") && !sample.contains("ironcurtain.paths"), "{sample}");
    // The organization sets the form, but does not require the export.
    let (done, said) = command(&world, &["export", "disable"]);
    assert!(done && said.contains("The record is not exported."), "{said}");
}

fn run(world: &World) -> (bool, String) {
    command(world, &["run", "--", "/bin/true"])
}

#[test]
fn nothing_starts_until_the_required_export_is_on_and_it_cannot_be_turned_off() {
    if !is_inside() {
        let test = "managed::export_settings::nothing_starts_until_the_required_export_is_on_and_it_cannot_be_turned_off";
        return run_inside(test, &["--mount"]);
    }
    let organization = Organization::new();
    let collector = Collector::start();
    let url = collector.url();
    organization.manages_settings(&json!({ "requireExport": true }));
    let mut world = world();
    let required = "Example requires the export of the audit log; run `ironcurtain export enable`";
    assert_eq!(refusal(&world), format!("the server `hostile` is not running: {required}"));
    let (done, said) = run(&world);
    assert!(!done && said.contains(required), "{said}");
    let (_, status) = command(&world, &["export", "status"]);
    assert!(status.contains(&format!("No server and no run starts: {required}")), "{status}");
    let (_, doctor) = command(&world, &["doctor"]);
    let problem = format!("PROBLEM  export: no server and no run starts: {required}");
    assert!(doctor.contains(&problem), "{doctor}");

    // The organization's collector and form of paths are the only ones.
    world.restart_after(|| {
        organization.manages_settings(&json!({ "exportUrl": url, "exportPaths": "none" }));
    });
    let required = format!(
        "Example requires the export of the audit log to `{url}`; run `ironcurtain export enable {url}`"
    );
    assert_eq!(refusal(&world), format!("the server `hostile` is not running: {required}"));
    let form = "Example has set the form of exported paths to `none`, so it cannot be `full`";
    for (arguments, why) in [
        (&["export", "enable", "http://127.0.0.1:1", "--yes"][..], required.as_str()),
        (&["export", "enable", &url, "--paths", "full", "--yes"], form),
        (&["export", "sample", "--paths", "full"], form),
        (&["export", "ocsf", "/dev/null", "--paths", "full"], form),
    ] {
        let (done, said) = command(&world, arguments);
        assert!(!done && said.contains(why), "{arguments:?}: {said}");
    }
    assert!(!has_export(&world.home.config));

    let (done, said) = command(&world, &["export", "enable", &url, "--yes"]);
    assert!(done, "{said}");
    eventually("the server starts", TIMEOUT, || refusal(&world).is_empty());
    world.connect("hostile").plain("now").ok();
    let (done, said) = run(&world);
    assert!(done, "{said}");
    eventually("the call is exported", TIMEOUT, || {
        collector.records().iter().any(|record| record["attributes"]["gen_ai.tool.name"] == "now")
    });

    let why = "Example requires the export of the audit log: without it, no server and no run would start";
    let (done, said) = command(&world, &["export", "disable"]);
    assert!(!done && said.contains(why), "{said}");
    assert!(has_export(&world.home.config));
    world.connect("hostile").plain("now").ok();
    // Any export is enough if the organization names no collector, and that one cannot be turned off either.
    world.restart_after(|| organization.manages_settings(&json!({ "requireExport": true })));
    world.connect("hostile").plain("now").ok();
    let (done, said) = command(&world, &["export", "disable"]);
    assert!(!done && said.contains(why), "{said}");
}

/// Returns `true` if `config.json` has the key `export`.
fn has_export(folder: &Path) -> bool {
    let config = std::fs::read_to_string(folder.join("config.json")).unwrap();
    serde_json::from_str::<Value>(&config).unwrap().get("export").is_some()
}
