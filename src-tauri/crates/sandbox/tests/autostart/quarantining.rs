//! Tests the quarantine of files that run automatically.

use std::{
    ffi::OsStr,
    fs,
    io::Write,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use ironcurtain_sandbox::autostart::{AutostartRules, Finding, Watcher, quarantine, real_path};

use ironcurtain_testkit::namespace::{is_inside, run_inside_through};
use rustix::fs::{CWD, FileType, RenameFlags, mknodat, renameat_with};

use crate::scene::{Scene, finish, summarize};

const SERVERS: &str = r#"{"mcpServers":{"evil":{"command":"evil"}}}"#;

#[test]
fn agent_settings_that_start_programs_are_quarantined_and_others_listed() {
    let mut scene = Scene::listed();
    scene.open();
    scene.write("root/.mcp.json", SERVERS);
    scene.write("root/.claude/settings.json", r#"{"model":"opus"}"#);
    scene.write("root/sub/.Cursor/MCP.json", SERVERS);
    let root = scene.root();
    let mut found = scene.wait_for_findings();
    found.retain(|finding| !matches!(finding, Finding::AutostartFile { .. }));
    found.extend(scene.finish());
    assert_eq!(
        summarize(&root, &found),
        ["new .claude/settings.json", "quarantined .mcp.json", "quarantined sub/.Cursor/MCP.json"]
    );
    assert_eq!(fs::read_dir(scene.at("state/quarantine")).unwrap().count(), 2);
}

#[test]
fn open_file_is_judged_by_its_content() {
    let mut scene = Scene::listed();
    scene.open();
    let mut file = fs::File::create(scene.at("root/.mcp.json")).unwrap();
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["new .mcp.json"]);
    file.write_all(SERVERS.as_bytes()).unwrap();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined .mcp.json"]);
    assert_eq!(scene.finish(), []);
}

#[test]
fn finds_files_moved_linked_and_copied_in() {
    let mut scene = Scene::listed();
    scene.write("root/servers", SERVERS);
    scene.write("outside/.mcp.json", SERVERS);
    scene.open();
    fs::create_dir(scene.at("root/linked")).unwrap();
    fs::hard_link(scene.at("root/servers"), scene.at("root/linked/.mcp.json")).unwrap();
    symlink("../servers", scene.at("root/linked/.envrc")).unwrap();
    fs::rename(scene.at("outside"), scene.at("root/moved")).unwrap();
    let root = scene.root();
    let mut found = scene.wait_for_findings();
    found.extend(scene.finish());
    assert_eq!(
        summarize(&root, &found),
        ["quarantined linked/.envrc", "quarantined linked/.mcp.json", "quarantined moved/.mcp.json"]
    );
    assert!(scene.exists("root/servers"));
}

#[test]
fn watches_deep_and_moved_folders() {
    let mut scene = Scene::listed();
    scene.open();
    fs::create_dir_all(scene.at("root/a/b/c")).unwrap();
    assert_eq!(scene.wait_for_findings(), []);
    fs::rename(scene.at("root/a"), scene.at("root/z")).unwrap();
    assert_eq!(scene.wait_for_findings(), []);
    scene.write("root/z/b/c/.mcp.json", SERVERS);
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined z/b/c/.mcp.json"]);
}

#[test]
fn named_file_stays_and_is_listed() {
    let mut scene = Scene::listed();
    scene.open();
    let path = scene.text("root/.mcp.json");
    scene.watcher.add_approved("s", &path);
    scene.write("root/.mcp.json", SERVERS);
    scene.write("root/sub/.mcp.json", SERVERS);
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["new .mcp.json", "quarantined sub/.mcp.json"]);
    assert_eq!(summarize(&root, &scene.finish()), ["new .mcp.json"]);
}

#[test]
fn named_existing_file_may_be_changed() {
    let mut scene = Scene::listed();
    scene.write("root/.envrc", "a\n");
    scene.open();
    let path = scene.text("root/.envrc");
    scene.watcher.add_approved("s", &path);
    scene.write("root/.envrc", "b\n");
    let found = scene.finish();
    let [Finding::AutostartFile { diff: Some(diff), .. }] = found.as_slice() else { panic!("{found:?}") };
    assert!(diff.contains("-a\n+b\n"), "{diff}");
}

#[test]
fn names_that_are_not_utf8_hide_nothing() {
    for is_seen in [true, false] {
        let mut scene = Scene::guarded();
        scene.open();
        let folder = scene.at("root").join(OsStr::from_bytes(b"bad\xff"));
        fs::create_dir(&folder).unwrap();
        crate::scene::git(&folder, &["init", "-q"]);
        crate::scene::git(&folder, &["config", "core.fsmonitor", "evil"]);
        let planted =
            [".git/hooks/pre-commit", ".mcp.json", ".claude/settings.json"].map(|name| folder.join(name));
        fs::create_dir(folder.join(".claude")).unwrap();
        planted.iter().for_each(|path| fs::write(path, SERVERS).unwrap());
        fs::write(folder.join("Makefile"), "all:\n").unwrap();
        let found = if is_seen { scene.wait_for_findings() } else { scene.finish() };
        let root = scene.root();
        let expected = [
            "new bad\u{10ffff}/Makefile",
            "quarantined bad\u{10ffff}/.claude/settings.json",
            "quarantined bad\u{10ffff}/.git/hooks/pre-commit",
            "quarantined bad\u{10ffff}/.mcp.json",
            "restored bad\u{10ffff}/.git/config core.fsmonitor",
        ];
        assert_eq!(summarize(&root, &found), expected);
        assert!(planted.iter().all(|path| !path.exists()));
        assert!(!fs::read_to_string(folder.join(".git/config")).unwrap().contains("evil"));
        // The user can still quarantine a file that was reported.
        let listed = format!("{root}/bad\u{10ffff}/Makefile");
        assert_eq!(real_path(&listed), folder.join("Makefile"));
        let to = quarantine(&scene.at("state"), &listed).unwrap();
        assert_eq!(
            (fs::read_to_string(to).unwrap().as_str(), folder.join("Makefile").exists()),
            ("all:\n", false)
        );
    }
}

#[test]
fn name_that_is_not_utf8_is_moved_with_its_folder_or_alone() {
    let mut scene = Scene::guarded();
    scene.git("root", &["init", "-q", "repo"]);
    fs::remove_dir_all(scene.at("root/repo/.git/hooks")).unwrap();
    scene.open();
    let hook = scene.at("root/repo/.git/hooks").join(OsStr::from_bytes(b"post-\xff"));
    fs::create_dir(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "evil").unwrap();
    let found = scene.wait_for_findings();
    let [Finding::Quarantined { moved_to, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((fs::read_to_string(real_path(moved_to)).unwrap().as_str(), hook.exists()), ("evil", false));
}

#[test]
fn allowed_files_are_not_checked() {
    let mut scene =
        Scene::new(AutostartRules { allow: vec![".mcp.json".into()], ..AutostartRules::default() });
    scene.open();
    scene.write("root/.mcp.json", SERVERS);
    assert_eq!((scene.wait_for_findings(), scene.finish()), (vec![], vec![]));
}

#[test]
fn startup_files_of_the_home_are_quarantined() {
    let mut scene = Scene::listed();
    let home = scene.root();
    let rules = AutostartRules { home: Some(home.clone()), ..AutostartRules::default() };
    scene.watcher.add_sandbox("home", rules).unwrap();
    scene.watcher.open_root("home", &home).unwrap();
    scene.write("root/.bashrc", "evil");
    scene.write("root/.config/autostart/evil.desktop", "evil");
    let found: Vec<Finding> = finish(&mut scene.watcher, "home");
    assert_eq!(summarize(&home, &found), ["quarantined .bashrc", "quarantined .config/autostart"]);
}

#[test]
fn strict_mode_quarantines_the_strict_list() {
    let mut scene = Scene::strict();
    scene.write("root/.idea/a", "");
    scene.open();
    for path in [
        ".gitattributes",
        ".npmrc",
        ".vscode/settings.json",
        ".vscode/x/y",
        ".envrc",
        "Makefile",
        "package.json",
    ] {
        scene.write(&format!("root/{path}"), r#"{"scripts":{"a":"b"}}"#);
    }
    let root = scene.root();
    let found = summarize(&root, &scene.finish());
    assert_eq!(
        found,
        [
            "new Makefile",
            "new package.json",
            "quarantined .envrc",
            "quarantined .gitattributes",
            "quarantined .npmrc",
            "quarantined .vscode"
        ]
    );
    assert!(scene.exists("root/.idea/a"));
}

#[test]
fn moves_a_file_once_and_reports_to_every_possible_creator() {
    let mut scene = Scene::listed();
    fs::create_dir(scene.at("root/sub")).unwrap();
    scene.open();
    for name in ["below", "apart"] {
        scene.watcher.add_sandbox(name, AutostartRules::default()).unwrap();
    }
    let (sub, apart) = (scene.text("root/sub"), scene.text("apart"));
    fs::create_dir(&apart).unwrap();
    scene.watcher.open_root("below", &sub).unwrap();
    scene.watcher.open_root("apart", &apart).unwrap();
    scene.write("root/sub/.mcp.json", SERVERS);
    let findings: Vec<String> = scene.watcher.process_events().into_iter().map(|(name, _)| name).collect();
    assert_eq!(findings, ["below", "s"]);
    assert_eq!(fs::read_dir(scene.at("state/quarantine")).unwrap().count(), 1);
    // The folder was closed for one sandbox, but is still watched for the other sandbox.
    assert_eq!(finish(&mut scene.watcher, "below"), []);
    scene.write("root/sub/.mcp.json", SERVERS);
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined sub/.mcp.json"]);
}

#[test]
fn reports_are_limited_but_every_file_is_quarantined() {
    let mut scene = Scene::listed();
    scene.open();
    for file in 0..1_100 {
        scene.write(&format!("root/{file}/.mcp.json"), SERVERS);
    }
    let found = scene.finish();
    // The last finding reports that the server is stopped.
    assert_eq!(found.len(), 1_001);
    assert!((0..1_100).all(|file| !scene.exists(&format!("root/{file}/.mcp.json"))));
}

#[test]
fn listed_files_are_limited_too() {
    let mut scene = Scene::listed();
    scene.open();
    for file in 0..1_200 {
        scene.write(&format!("root/{file}/Makefile"), "all:\n");
    }
    let findings = scene.wait_for_findings();
    assert!(matches!(findings.last(), Some(Finding::Unfinished { .. })), "{:?}", findings.last());
    assert_eq!((findings.len(), scene.finish().len()), (1_000, 1_000));
}

#[test]
fn many_moved_folders_are_checked_in_slices() {
    let mut scene = Scene::listed();
    for folder in 0..200 {
        fs::create_dir_all(scene.at(&format!("outside/{folder}"))).unwrap();
        for name in 0..500 {
            fs::write(scene.at(&format!("outside/{folder}/{name}")), "").unwrap();
        }
    }
    scene.write("outside/199/.mcp.json", SERVERS);
    scene.open();
    for folder in 0..200 {
        fs::rename(scene.at(&format!("outside/{folder}")), scene.at(&format!("root/{folder}"))).unwrap();
    }
    let first = scene.watcher.process_events();
    assert_eq!(scene.watcher.poll_timeout(), Some(Duration::ZERO), "everything was checked in one slice");
    let mut found: Vec<Finding> = first.into_iter().map(|(_, finding)| finding).collect();
    found.extend(scene.poll_findings());
    assert_eq!(summarize(&scene.root(), &found), ["quarantined 199/.mcp.json"]);
}

#[test]
fn finds_files_after_dropped_events() {
    let mut scene = Scene::listed();
    scene.write("root/sub/x", "");
    scene.open();
    let most: usize =
        fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap().trim().parse().unwrap();
    // Causes more events than fit in the queue. Alternates between two names, because the kernel merges equal
    // consecutive events.
    for file in 0..most + most / 4 {
        fs::write(scene.at(["root/a", "root/b"][file % 2]), "").unwrap();
    }
    scene.write("root/sub/.mcp.json", SERVERS);
    let root = scene.root();
    assert_eq!(summarize(&root, &scene.wait_for_findings()), ["quarantined sub/.mcp.json"]);
    assert_eq!(scene.watcher.take_uncovered(), ["s"]);
}

#[test]
fn kernel_limit_is_reported_by_name() {
    if !is_inside() {
        // Runs in its own user namespace, so that the limit for other tests does not change.
        let limited = "echo 1 >/proc/sys/user/max_inotify_instances && exec \"$0\" \"$@\"";
        let (test, own) = ("quarantining::kernel_limit_is_reported_by_name", std::env::current_exe());
        return run_inside_through(test, &[], &["sh", "-c", limited, own.unwrap().to_str().unwrap()]);
    }
    let dir = tempfile::tempdir().unwrap();
    let state = dir.path().join("state");
    let one = Watcher::new(&state).unwrap();
    let refused = Watcher::new(&state).unwrap_err().to_string();
    assert!(refused.contains("limit `fs.inotify.max_user_instances` reached; raise it"), "{refused}");
    drop(one);
}

#[test]
fn user_can_quarantine_a_file() {
    let mut scene = Scene::listed();
    scene.open();
    scene.write("root/Makefile", "all:\n");
    let to = quarantine(&scene.at("state"), &scene.text("root/Makefile")).unwrap();
    assert_eq!(fs::read_to_string(to).unwrap(), "all:\n");
    assert_eq!(scene.finish(), []);
}

#[test]
fn writes_through_a_mapping_are_noticed() {
    let mut scene = Scene::listed();
    scene.open();
    let harmless = format!("{{\"mcpServers\": {{}}}}{}", " ".repeat(100));
    scene.write("root/.mcp.json", &harmless);
    scene.poll_findings();
    assert!(scene.exists("root/.mcp.json"));
    // Closes the file before writing through the mapping, so that the kernel reports no event.
    let program = "import mmap,sys\nf=open(sys.argv[1],'r+b')\nm=mmap.mmap(f.fileno(),0)\nf.close()\nt=b'{\"mcpServers\": {\"x\": {\"command\": \"evil\"}}}'\nm[0:len(m)]=t+b' '*(len(m)-len(t))\nprint('written',flush=True)\nsys.stdin.read()\n";
    let mut child = std::process::Command::new("python3")
        .args(["-c", program, scene.text("root/.mcp.json").as_str()])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(child.stdout.take().unwrap()), &mut line)
        .unwrap();
    assert_eq!(line, "written\n");
    let patience = scene.watcher.poll_timeout().unwrap();
    let deadline = Instant::now() + patience * 20;
    while scene.exists("root/.mcp.json") {
        assert!(Instant::now() < deadline, "the file was not quarantined");
        scene.poll_findings();
    }
    drop(child.stdin.take());
    child.wait().unwrap();
}

#[test]
fn swapping_names_during_a_copy_delays_nothing() {
    let scene = Scene::listed();
    let state = tempfile::tempdir_in("/dev/shm").unwrap();
    scene.write("secret", "secret");
    for round in 0..200 {
        let path = scene.text(&format!("root/{round}"));
        let at = |name: &str| Path::new(&path).join(name);
        scene.write(&format!("root/{round}/a"), "text");
        mknodat(CWD, at("b"), FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
        symlink(scene.at("secret"), at("c")).unwrap();
        // Swaps two names in the folder continuously.
        let dir = fs::File::open(&path).unwrap();
        let over = AtomicBool::new(false);
        let to = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    for other in ["b", "c"] {
                        let _ = renameat_with(&dir, "a", &dir, other, RenameFlags::EXCHANGE);
                    }
                }
            });
            let (done, moved) = std::sync::mpsc::channel();
            let (place, path) = (state.path().join("state"), path.clone());
            std::thread::spawn(move || done.send(quarantine(&place, &path)));
            let to = moved.recv_timeout(Duration::from_secs(20));
            over.store(true, Ordering::Relaxed);
            to.expect("the move did not finish").unwrap()
        });
        // A file that cannot be copied stays in its folder, under a disarmed name.
        assert!(!Path::new(&path).exists());
        for name in ["a", "b", "c"] {
            let at = Path::new(&to).join(name);
            let is_file = at.symlink_metadata().is_ok_and(|about| about.is_file());
            assert!(!is_file || fs::read(&at).unwrap() == b"text", "a symlink was followed");
        }
    }
}
