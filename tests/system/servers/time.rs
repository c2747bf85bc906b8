//! The Python time server.

use super::{free, world};
use serde_json::{Value, json};

#[test]
fn time_server_works_and_non_string_argument_is_refused() {
    let world = world("time");
    let mut client = world.connect("time");
    let now = free(&world, &mut client, "get_current_time", json!({ "timezone": "Europe/Berlin" }));
    assert_eq!(serde_json::from_str::<Value>(now.ok()).unwrap()["timezone"], json!("Europe/Berlin"));
    let noon = json!({ "source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "Asia/Kolkata" });
    let converted = free(&world, &mut client, "convert_time", noon);
    assert!(converted.ok().contains("T08:30:00+05:30"), "{}", converted.text);
    client
        .call("set_time", json!({ "time": "12:00" }))
        .refused("the tool `time/set_time` has not been reviewed yet");
    assert_eq!(world.user.asked().len(), 0);
}
