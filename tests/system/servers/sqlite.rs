//! The SQLite server, which needs version 1 of the Python SDK.

use super::{allowed, world};
use serde_json::json;

#[test]
fn sqlite_server_stores_database_in_named_folder_only() {
    let world = world("sqlite");
    let other = world.file("other/secret.db", "x");
    let mut client = world.connect("sqlite");
    let run = |query: &str| json!({ "query": query });
    allowed(&world, &mut client, "create_table", run("CREATE TABLE notes (text TEXT)")).ok();
    allowed(&world, &mut client, "write_query", run("INSERT INTO notes VALUES ('hello')")).ok();
    let read = allowed(&world, &mut client, "read_query", run("SELECT text FROM notes"));
    assert!(read.ok().contains("hello"), "{}", read.text);
    assert!(world.path("folder/database.db").is_file());
    let attach = format!("ATTACH DATABASE '{}' AS other", other.display());
    let attached = allowed(&world, &mut client, "write_query", run(&attach));
    assert!(attached.text.contains("unable to open database"), "{}", attached.text);
    client.call("read_query", run("SELECT 1")).refused("the user denied this call");
}
