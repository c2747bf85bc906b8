//! Tests files of every kind: huge, binary, linked and special files, and files on two file systems.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use crate::client::{Client, directory};

#[test]
fn the_ends_of_a_huge_file_are_read_without_the_rest() {
    let (_keep, root) = directory();
    let path = root.join("huge");
    fs::write(&path, "first\nsecond\n").expect("file");
    let mut file = File::options().append(true).open(&path).expect("file");
    file.set_len(1 << 30).expect("sparse");
    std::io::Write::write_all(&mut file, b"\nlast but one\nlast\n").expect("written");
    let mut client = Client::ours(&root);
    let mut read = |more: serde_json::Value| {
        let mut arguments = more;
        arguments["path"] = json!(path);
        client.call("read_text_file", &arguments)["content"][0]["text"].as_str().expect("text").to_owned()
    };
    assert_eq!(read(json!({ "head": 2 })), "first\nsecond");
    assert_eq!(read(json!({ "tail": 3 })), "last but one\nlast\n");
    assert_eq!(
        read(json!({})),
        format!("Answer too large: {} is over the limit of 67108864 bytes; use head or tail", path.display())
    );
    assert!(read(json!({ "head": 3 })).starts_with("Answer too large: "));
    assert!(read(json!({ "tail": 4 })).starts_with("Answer too large: "));
    #[cfg(target_os = "linux")]
    assert!(peak_kib(client.child.id()) < 200 * 1024, "{} KiB", peak_kib(client.child.id()));
}

#[test]
fn bytes_that_are_not_text_are_read_but_never_edited() {
    let (_keep, root) = directory();
    fs::write(root.join("latin"), b"caf\xe9\n").expect("file");
    fs::write(root.join(std::ffi::OsStr::from_bytes(b"n\xffme")), "x").expect("file");
    let mut client = Client::ours(&root);
    assert_eq!(client.text("read_text_file", &json!({ "path": "latin" })), "caf\u{fffd}\n");
    let edit = json!({ "path": "latin", "edits": [{ "oldText": "caf", "newText": "tea" }] });
    assert_eq!(
        client.refusal("edit_file", &edit),
        format!("Cannot edit a file that is not UTF-8 text: {}/latin", root.display())
    );
    assert_eq!(fs::read(root.join("latin")).expect("file"), b"caf\xe9\n");
    assert_eq!(client.text("list_directory", &json!({ "path": root })), "[FILE] latin\n[FILE] n\u{fffd}me");
    assert!(client.text("list_directory_with_sizes", &json!({ "path": root })).contains("Total: 2 files"));
}

#[test]
fn pipes_and_devices_are_refused_without_blocking() {
    let (_keep, root) = directory();
    let pipe = root.join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let _socket = std::os::unix::net::UnixListener::bind(root.join("socket")).expect("socket");
    let mut client = Client::ours(&root);
    for name in ["pipe", "socket"] {
        let refusal = format!("Access denied - not a regular file: {}/{name}", root.display());
        for (tool, arguments) in [
            ("read_text_file", json!({ "path": name })),
            ("read_text_file", json!({ "path": name, "head": 1 })),
            ("read_text_file", json!({ "path": name, "tail": 1 })),
            ("read_media_file", json!({ "path": name })),
            ("write_file", json!({ "path": name, "content": "x" })),
            ("edit_file", json!({ "path": name, "edits": [] })),
        ] {
            assert_eq!(client.refusal(tool, &arguments), refusal, "{tool}");
        }
    }
    let mut devices = Client::ours(Path::new("/dev"));
    let refusal = "Access denied - not a regular file: /dev/zero";
    assert_eq!(devices.refusal("read_text_file", &json!({ "path": "/dev/zero" })), refusal);
    // A regular file at the same path can be written and read.
    client.text("write_file", &json!({ "path": "file", "content": "x" }));
    assert_eq!(client.text("read_text_file", &json!({ "path": "file" })), "x");
}

#[test]
fn links_never_lead_out_of_the_allowed_directories() {
    let (_keep, root) = directory();
    let (inside, outside) = (root.join("in"), root.join("out"));
    for directory in [&inside, &outside] {
        fs::create_dir(directory).expect("directory");
        fs::write(directory.join("file"), "content").expect("file");
    }
    symlink(inside.join("file"), inside.join("absolute")).expect("link");
    symlink("../out/file", inside.join("file link")).expect("link");
    symlink("../out", inside.join("link")).expect("link");
    symlink("loop", inside.join("loop")).expect("link");
    symlink("../out/new", inside.join("dangling")).expect("link");
    let mut client = Client::ours(&inside);
    assert_eq!(client.text("read_text_file", &json!({ "path": "absolute" })), "content");
    let denied = "Access denied - symlink target outside allowed directories: ";
    for (tool, arguments) in [
        ("read_text_file", json!({ "path": "file link" })),
        ("read_text_file", json!({ "path": "link/file" })),
        ("write_file", json!({ "path": "link/file", "content": "changed" })),
        ("write_file", json!({ "path": "link/new", "content": "new" })),
        ("create_directory", json!({ "path": "link/new" })),
        ("list_directory", json!({ "path": "link" })),
        ("move_file", json!({ "source": "file", "destination": "link/moved" })),
        ("move_file", json!({ "source": "link/file", "destination": "moved" })),
    ] {
        let refusal = client.refusal(tool, &arguments);
        assert!(refusal.starts_with(denied), "{tool} {arguments}: {refusal}");
    }
    let write = |path: &str| json!({ "path": path, "content": "x" });
    assert!(client.refusal("write_file", &write("dangling")).starts_with("Parent directory does not exist"));
    assert!(client.refusal("write_file", &write("loop")).starts_with("ELOOP"));
    let found = client.text("search_files", &json!({ "path": inside, "pattern": "**" }));
    let expected = ["absolute", "file"].map(|name| inside.join(name).display().to_string());
    assert_eq!(found, expected.join("\n"));
    assert_eq!(fs::read_to_string(outside.join("file")).expect("file"), "content");
    assert_eq!(fs::read_dir(outside).expect("directory").count(), 1);
}

#[test]
fn link_created_during_calls_is_not_followed() {
    let (_keep, root) = directory();
    let (inside, outside) = (root.join("in"), root.join("out"));
    for directory in [&inside, &outside, &inside.join("real")] {
        fs::create_dir(directory).expect("directory");
    }
    fs::write(inside.join("real/file"), "mine").expect("file");
    fs::write(outside.join("file"), "secret").expect("file");
    symlink(&outside, inside.join("link")).expect("link");
    let mut client = Client::ours(&inside);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let spot = inside.join("spot");
            while !done.load(Ordering::Relaxed) {
                for name in ["real", "link"] {
                    let name = inside.join(name);
                    fs::rename(&name, &spot).expect("there");
                    fs::rename(&spot, &name).expect("and back");
                }
            }
        });
        let mut mine = 0;
        for round in 0..1500 {
            let read = client.call("read_text_file", &json!({ "path": "spot/file" })).to_string();
            assert!(!read.contains("secret"), "{read}");
            mine += usize::from(read.contains("mine"));
            let name = format!("spot/new {round}");
            client.call("write_file", &json!({ "path": name, "content": "x" }));
            client.call("list_directory", &json!({ "path": "spot" }));
        }
        done.store(true, Ordering::Relaxed);
        assert!(mine > 0, "the allowed file was never read");
    });
    assert_eq!(fs::read_dir(outside).expect("directory").count(), 1);
}

#[test]
fn files_are_written_in_place() {
    let (_keep, root) = directory();
    let path = root.join("file");
    fs::write(&path, "a much longer content\r\nof two lines\r\n").expect("file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
    let before = fs::metadata(&path).expect("file");
    let mut client = Client::ours(&root);
    let edit = json!({ "path": path, "edits": [{ "oldText": "longer", "newText": "shorter" }] });
    client.text("edit_file", &edit);
    assert_eq!(fs::read(&path).expect("file"), b"a much shorter content\r\nof two lines\r\n");
    client.text("write_file", &json!({ "path": path, "content": "short" }));
    let after = fs::metadata(&path).expect("file");
    assert_eq!(fs::read(&path).expect("file"), b"short");
    assert_eq!((after.ino(), after.mode()), (before.ino(), before.mode()));
    assert_eq!(fs::read_dir(&root).expect("directory").count(), 1);
}

/// Simulates a sandbox in which a single granted file is a mount point.
#[cfg(target_os = "linux")]
#[test]
fn a_single_mounted_file_can_be_written() {
    let (_keep, root) = directory();
    let path = root.join("granted");
    fs::write(&path, "one\ntwo\n").expect("file");
    let server = crate::client::ours();
    let mut sandboxed = Command::new("bwrap");
    sandboxed.args(["--ro-bind", "/", "/", "--bind"]).args([&path, &path]);
    sandboxed.arg("--").arg(server.get_program()).arg(&root);
    let mut client = Client::start(&mut sandboxed);
    client.handshake("2025-06-18", &json!({}));
    client.text("edit_file", &json!({ "path": path, "edits": [{ "oldText": "one", "newText": "1" }] }));
    assert_eq!(fs::read_to_string(&path).expect("file"), "1\ntwo\n");
    client.text("write_file", &json!({ "path": path, "content": "new" }));
    assert_eq!(fs::read_to_string(&path).expect("file"), "new");
    let sibling = root.join("sibling");
    assert_eq!(
        client.refusal("write_file", &json!({ "path": sibling, "content": "x" })),
        format!("EROFS: read-only file system, open '{}'", sibling.display())
    );
    assert_eq!(
        client.refusal("move_file", &json!({ "source": path, "destination": sibling })),
        format!("EROFS: read-only file system, rename '{}' -> '{}'", path.display(), sibling.display())
    );
    assert_eq!(fs::read_to_string(&path).expect("file"), "new");
}

#[test]
fn a_failed_edit_changes_nothing() {
    let (_keep, root) = directory();
    fs::write(root.join("file"), "a\nb\n").expect("file");
    let mut client = Client::ours(&root);
    let edits = json!([{ "oldText": "a", "newText": "A" }, { "oldText": "missing", "newText": "" }]);
    assert_eq!(
        client.refusal("edit_file", &json!({ "path": "file", "edits": edits })),
        "Could not find exact match for edit:\nmissing"
    );
    assert_eq!(fs::read_to_string(root.join("file")).expect("file"), "a\nb\n");
}

#[test]
fn moves_replace_nothing_on_one_disk_or_between_two() {
    let (_keep, here) = directory();
    let keep_there = tempfile::tempdir_in("/dev/shm").expect("a directory on another disk");
    let there = keep_there.path().canonicalize().expect("a real path");
    let device = |path: &Path| fs::metadata(path).expect("directory").dev();
    assert_ne!(device(&here), device(&there), "this test needs two file systems");
    let mut client = Client::start(crate::client::ours().args([&here, &there]));
    client.handshake("2025-06-18", &json!({}));
    for target in [&here, &there] {
        fs::create_dir_all(here.join("tree/below")).expect("directory");
        fs::write(here.join("tree/below/file"), "content").expect("file");
        fs::set_permissions(here.join("tree/below/file"), fs::Permissions::from_mode(0o750)).expect("mode");
        symlink("/nowhere", here.join("tree/link")).expect("link");
        fs::write(target.join("taken"), "kept").expect("file");
        let moved = |name: &str| json!({ "source": here.join("tree"), "destination": target.join(name) });
        assert_eq!(
            client.refusal("move_file", &moved("taken")),
            format!("Destination already exists: {}/taken", target.display())
        );
        assert_eq!(fs::read_to_string(target.join("taken")).expect("file"), "kept");
        client.text("move_file", &moved("moved"));
        assert!(!here.join("tree").exists());
        let file = target.join("moved/below/file");
        assert_eq!(fs::read_to_string(&file).expect("file"), "content");
        assert_eq!(fs::metadata(&file).expect("file").mode() & 0o777, 0o750);
        assert_eq!(fs::read_link(target.join("moved/link")).expect("link"), Path::new("/nowhere"));
        client.text("move_file", &json!({ "source": file, "destination": here.join("file") }));
        assert_eq!(fs::read_to_string(here.join("file")).expect("file"), "content");
        fs::remove_file(here.join("file")).expect("removed");
    }
    fs::create_dir(here.join("tree")).expect("directory");
    fs::write(here.join("tree/a"), "content").expect("file");
    assert!(Command::new("mkfifo").arg(here.join("tree/pipe")).status().expect("mkfifo").success());
    let moved = json!({ "source": here.join("tree"), "destination": there.join("partial") });
    assert_eq!(
        client.refusal("move_file", &moved),
        format!("Access denied - not a regular file: {}/tree/pipe", here.display())
    );
    assert!(!there.join("partial").exists(), "a failed move leaves no partial copy");
    assert_eq!(fs::read_to_string(here.join("tree/a")).expect("file"), "content");
}

#[test]
fn many_entries_and_deep_trees_are_bounded() {
    let (_keep, root) = directory();
    let many = root.join("many");
    fs::create_dir(&many).expect("directory");
    for number in 0..20_000 {
        fs::write(many.join(format!("{number:05}")), "").expect("file");
    }
    let deep = root.join("deep/".to_owned() + &"d/".repeat(300));
    fs::create_dir_all(&deep).expect("directories");
    let mut client = Client::ours(&root);
    let listing = client.text("list_directory", &json!({ "path": many }));
    assert_eq!(listing.lines().count(), 20_000);
    assert!(listing.starts_with("[FILE] 00000\n[FILE] 00001\n"));
    let found = client.text("search_files", &json!({ "path": root, "pattern": "**/d" }));
    assert_eq!(found.lines().count(), 200);
    let refusal = client.refusal("directory_tree", &json!({ "path": root.join("deep") }));
    assert!(refusal.starts_with("Directory tree too deep: more than 200 levels at "), "{refusal}");
}

#[cfg(target_os = "linux")]
fn peak_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}
