//! Tests the pins of tool definitions.

use super::*;

struct PinStore {
    pins: Pins,
    key: PinKey,
    _dir: tempfile::TempDir,
}

impl PinStore {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let database = dir.path().join("state.db");
        drop(schema::open(&database).unwrap());
        let key = PinKey { server: "s".to_owned(), capabilities: String::new() };
        Self { pins: Pins::of(&database), key, _dir: dir }
    }

    /// Compares a list that contains one tool with this definition, and returns the tool's state.
    fn list_one(&self, definition: &str) -> PinState {
        self.compare(&self.key, definition, false)
    }

    fn compare(&self, key: &PinKey, definition: &str, only_warn: bool) -> PinState {
        self.pins.compare(key, whole(&[listed("t", definition)]), only_warn, 1).unwrap().remove(0)
    }

    /// Lists these tools, and returns the tools as stored: name, position and `is_new`.
    fn list_and_load(&self, tools: &[&str], is_complete: bool) -> Vec<(String, Option<u64>, bool)> {
        let tools: Vec<_> = tools.iter().map(|tool| listed(tool, "a")).collect();
        self.pins.compare(&self.key, Listing { tools: &tools, is_complete }, false, 1).unwrap();
        let pins = self.pins.for_server("s").unwrap();
        pins.into_iter().map(|pin| (pin.tool, pin.position, pin.is_new)).collect()
    }

    fn decide(&self, found: &str, decision: PinDecision) -> bool {
        self.pins.decide("s", ("t", found), decision).unwrap()
    }
}

fn listed(tool: &str, definition: &str) -> ListedDefinition {
    ListedDefinition { tool: tool.to_owned(), definition: definition.to_owned() }
}

fn whole(tools: &[ListedDefinition]) -> Listing<'_> {
    Listing { tools, is_complete: true }
}

fn suspended(pinned: &str, is_first_seen: bool) -> PinState {
    PinState::Suspended { pinned: pinned.to_owned(), is_first_seen }
}

#[test]
fn a_changed_definition_suspends_the_tool_until_the_user_decides() {
    let fixture = PinStore::new();
    assert_eq!((fixture.list_one("a"), fixture.list_one("a")), (PinState::New, PinState::Unchanged));
    assert_eq!((fixture.list_one("b"), fixture.list_one("b")), (suspended("a", true), suspended("a", false)));
    assert!(fixture.pins.for_server("s").unwrap()[0].is_suspended());
    assert_eq!(fixture.list_one("a"), PinState::Unchanged, "the pinned definition needs no decision");
    assert!(!fixture.pins.for_server("s").unwrap()[0].is_suspended());
    assert_eq!(fixture.list_one("b"), suspended("a", true));
    assert!(!fixture.decide("c", PinDecision::Update), "the user saw another definition");
    assert!(fixture.decide("b", PinDecision::Update));
    assert_eq!((fixture.list_one("b"), fixture.list_one("a")), (PinState::Unchanged, suspended("b", true)));
}

#[test]
fn a_kept_pin_covers_only_the_change_that_the_user_saw() {
    let fixture = PinStore::new();
    fixture.list_one("a");
    fixture.list_one("b");
    assert!(fixture.decide("b", PinDecision::Keep));
    assert_eq!(fixture.list_one("b"), PinState::Kept { pinned: "a".to_owned() });
    assert_eq!(fixture.list_one("c"), suspended("a", true));
    assert!(fixture.decide("c", PinDecision::Remove));
    // A removed tool stays removed, even if its definition changes again.
    assert_eq!((fixture.list_one("c"), fixture.list_one("a")), (PinState::Removed, PinState::Removed));
    assert!(fixture.decide("c", PinDecision::Update));
    assert_eq!(fixture.list_one("c"), PinState::Unchanged);
}

#[test]
fn a_tool_that_disappears_keeps_its_pin() {
    let fixture = PinStore::new();
    fixture.list_one("a");
    assert_eq!(fixture.pins.compare(&fixture.key, whole(&[]), false, 1).unwrap(), []);
    assert_eq!(fixture.pins.for_server("s").unwrap()[0].position, None);
    assert_eq!(fixture.list_one("b"), suspended("a", true));
    // A suspended tool that disappears stays suspended. Otherwise, its next call would reach the server.
    assert_eq!(fixture.pins.compare(&fixture.key, whole(&[]), false, 1).unwrap(), []);
    assert!(fixture.pins.for_server("s").unwrap()[0].is_suspended());
}

#[test]
fn a_tool_that_is_added_later_is_new_until_the_user_decides() {
    let fixture = PinStore::new();
    let at = |tool: &str, position, is_new| (tool.to_owned(), position, is_new);
    assert_eq!(fixture.list_and_load(&["a", "b"], true), [at("a", Some(0), false), at("b", Some(1), false)]);
    let added = [at("a", Some(1), false), at("b", None, false), at("c", Some(0), true)];
    assert_eq!(fixture.list_and_load(&["c", "a"], true), added);
    assert!(!fixture.pins.decide("s", ("c", "other"), PinDecision::Update).unwrap());
    assert!(fixture.pins.decide("s", ("c", "a"), PinDecision::Update).unwrap());
    assert_eq!(fixture.list_and_load(&["c", "a"], true)[2], at("c", Some(0), false));
    assert!(fixture.pins.decide("s", ("c", "a"), PinDecision::Remove).unwrap());
    let states = fixture.pins.compare(&fixture.key, whole(&[listed("c", "a"), listed("a", "a")]), false, 1);
    assert_eq!(states.unwrap(), [PinState::Removed, PinState::Unchanged]);
    // One page of several does not show that other tools were removed.
    assert_eq!(fixture.list_and_load(&["d"], false)[3], at("d", Some(0), false));
    assert_eq!(fixture.list_and_load(&["d"], false)[0], at("a", Some(1), false));
}

#[test]
fn pins_of_other_servers_and_clients_are_separate() {
    let fixture = PinStore::new();
    fixture.list_one("a");
    let other = PinKey { capabilities: "elicitation".to_owned(), ..fixture.key.clone() };
    assert_eq!(fixture.compare(&other, "b", false), PinState::New);
    let server = PinKey { server: "other".to_owned(), ..fixture.key.clone() };
    assert_eq!(fixture.compare(&server, "b", false), PinState::New);
    assert_eq!(fixture.list_one("a"), PinState::Unchanged);
    fixture.pins.forget("s").unwrap();
    assert_eq!(fixture.list_one("b"), PinState::New);
}

#[test]
fn a_pin_that_only_warns_follows_the_server() {
    let fixture = PinStore::new();
    fixture.list_one("a");
    assert_eq!(fixture.compare(&fixture.key, "b", true), suspended("a", true));
    assert_eq!(fixture.compare(&fixture.key, "b", true), PinState::Unchanged);
    assert!(!fixture.pins.for_server("s").unwrap()[0].is_suspended());
}

#[test]
fn a_repeated_name_is_compared_with_the_first_of_the_list() {
    let fixture = PinStore::new();
    let tools = ["a", "b"].map(|definition| listed("t", definition));
    let states = fixture.pins.compare(&fixture.key, whole(&tools), false, 1).unwrap();
    assert_eq!(states, [PinState::New, suspended("a", true)]);
}
