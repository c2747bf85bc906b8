//! Tests that a grant stays visible while other grants are added and removed, and that later removals are proved.

use std::fs;

use ironcurtain_sandbox::{ControlAnswer, ControlOp, Mount, MountAccess::*, MountRefusal, UnmountProof};

use crate::harness::{Fixture, Probe};

/// Number of times each change is repeated.
const ROUNDS: usize = 20;

#[test]
fn temporarily_widened_folder_never_disappears() {
    let (fixture, mut probe, dir) = staring();
    probe.add(&dir, ReadOnly);
    probe.add(&fixture.path("dir/inner"), ReadOnly);
    never_missed(
        &mut probe,
        &[dir.clone(), fixture.path("dir/file"), fixture.path("dir/inner/file")],
        |probe| {
            probe.add(&dir, ReadWrite);
            assert_eq!(probe.narrow(&dir), UnmountProof::Proved);
        },
    );
    assert_eq!(probe.send_command(&format!("write {dir}/file x")), "err EROFS");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command(&format!("write {dir}/file x")), "ok");
}

#[test]
fn grant_on_a_changing_folder_never_disappears() {
    let (fixture, mut probe, dir) = staring();
    let (file, inner) = (fixture.path("dir/file"), fixture.path("dir/inner"));
    probe.add(&file, ReadOnly);
    probe.add(&inner, ReadWrite);
    never_missed(&mut probe, &[file, inner.clone(), format!("{inner}/file")], |probe| {
        for access in [ReadOnly, ReadWrite] {
            probe.add(&dir, access);
            assert_eq!(probe.remove(&dir), UnmountProof::Proved);
        }
    });
    assert_eq!(probe.send_command(&format!("exists {dir}/other")), "err ENOENT");
    assert_eq!(probe.send_command(&format!("write {inner}/file x")), "ok");
}

#[test]
fn folder_under_a_changing_grant_never_disappears() {
    let (fixture, mut probe, dir) = staring();
    let (file, inner) = (fixture.path("dir/file"), fixture.path("dir/inner"));
    probe.add(&dir, ReadOnly);
    never_missed(&mut probe, &[dir.clone(), file.clone(), inner.clone(), format!("{inner}/file")], |probe| {
        for path in [&file, &inner] {
            probe.add(path, ReadWrite);
            assert_eq!(probe.remove(path), UnmountProof::Proved);
        }
    });
    assert_eq!(probe.send_command(&format!("write {file} x")), "err EROFS");
}

#[test]
fn narrowing_proof_considers_writers_not_readers() {
    for (request, proof) in [("hold", UnmountProof::Proved), ("hold-writing", UnmountProof::StillOpen)] {
        let (fixture, mut probe, dir) = staring();
        let file = fixture.path("dir/file");
        probe.add(&dir, ReadWrite);
        assert_eq!(probe.send_command(&format!("{request} {file}")), "ok");
        assert_eq!(probe.narrow(&dir), proof, "{request}");
        assert_eq!(probe.send_command(&format!("write {file} x")), "err EROFS");
        assert_eq!(probe.send_command(&format!("write {dir}/new x")), "err EROFS");
        assert_eq!(probe.mounts(), [Mount::new(&dir, ReadOnly)]);
        if proof == UnmountProof::Proved {
            assert_eq!(probe.send_command("read-held"), "ok dir/file");
            // A process opened the file before the change, and no other grant shows the file.
            assert_eq!(probe.remove(&dir), UnmountProof::StillOpen);
        }
    }
}

#[test]
fn file_closed_in_time_is_narrowed_with_proof() {
    let (fixture, mut probe, dir) = staring();
    let file = fixture.path("dir/file");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command(&format!("hold-writing {file}")), "ok");
    assert_eq!(probe.send_command("write-held  and more"), "ok");
    assert_eq!(probe.send_command("let-go"), "ok");
    assert_eq!(probe.narrow(&dir), UnmountProof::Proved);
    assert_eq!(fs::read_to_string(&file).unwrap(), "dir/file and more");
    assert_eq!(probe.remove(&dir), UnmountProof::Proved);
    assert_eq!(probe.send_command(&format!("exists {dir}")), "err ENOENT");
}

#[test]
fn removing_a_deeper_grant_leaves_the_wider_one_visible() {
    let (fixture, mut probe, dir) = staring();
    let (file, other) = (fixture.path("dir/file"), fixture.path("dir/other"));
    probe.add(&dir, ReadOnly);
    // A process may continue to read, but a process that can still write is detected.
    for (request, path, proof) in
        [("hold", &file, UnmountProof::Proved), ("hold-writing", &other, UnmountProof::StillOpen)]
    {
        probe.add(path, ReadWrite);
        assert_eq!(probe.send_command(&format!("{request} {path}")), "ok");
        assert_eq!(probe.remove(path), proof, "{request}");
        assert_eq!(probe.send_command(&format!("write {path} x")), "err EROFS");
    }
    assert_eq!(probe.send_command("read-held"), "ok dir/file");
    // A file that is still held through the deeper grant counts when the wider grant is removed.
    assert_eq!(probe.remove(&dir), UnmountProof::StillOpen);
}

#[test]
fn file_held_before_widening_counts_on_removal() {
    let (fixture, mut probe, dir) = staring();
    probe.add(&dir, ReadOnly);
    assert_eq!(probe.send_command(&format!("hold {}", fixture.path("dir/file"))), "ok");
    probe.add(&dir, ReadWrite);
    assert_eq!(probe.send_command("read-held"), "ok dir/file");
    assert_eq!(probe.remove(&dir), UnmountProof::StillOpen);
}

#[test]
fn replaced_or_ungranted_path_is_not_narrowed() {
    let (fixture, mut probe, dir) = staring();
    let file = fixture.path("dir/file");
    let refused = |probe: &mut Probe, path: &str| {
        let answer = probe.control.request(ControlOp::Narrow { path: path.to_owned(), file: true }).unwrap();
        let ControlAnswer::Refused { code, .. } = answer else { panic!("{answer:?}") };
        code
    };
    assert_eq!(refused(&mut probe, &file), MountRefusal::NotGranted);
    probe.add(&file, ReadWrite);
    fs::write(fixture.path("new"), "new").unwrap();
    fs::rename(fixture.path("new"), &file).unwrap();
    assert_eq!(refused(&mut probe, &file), MountRefusal::Kind);
    assert_eq!(probe.mounts(), [Mount::new(&file, ReadWrite)]);
    assert_eq!(probe.remove(&file), UnmountProof::Proved);
    // A folder is refused where a file is required.
    probe.add(&dir, ReadWrite);
    assert_eq!(refused(&mut probe, &dir), MountRefusal::Kind);
    assert_eq!(probe.narrow(&dir), UnmountProof::Proved);
}

/// Creates a folder with `file`, `other` and `inner/file`, and starts a server that sees none of them.
fn staring() -> (Fixture, Probe, String) {
    let fixture = Fixture::new();
    for file in ["dir/file", "dir/other", "dir/inner/file"] {
        fixture.file(file);
    }
    let (probe, dir) = (fixture.probe(), fixture.path("dir"));
    (fixture, probe, dir)
}

/// Checks that a server that continuously reads these paths finds them at all times during the changes.
fn never_missed(probe: &mut Probe, paths: &[String], mut comes_and_goes: impl FnMut(&mut Probe)) {
    for path in paths {
        assert_eq!(probe.send_command(&format!("stare {path}")), "ok");
        (0..ROUNDS).for_each(|_| comes_and_goes(probe));
        let output = probe.send_command("blink");
        let looks = output.strip_prefix("ok ").and_then(|looks| looks.parse::<u64>().ok());
        assert!(looks.is_some_and(|looks| looks > 0), "{path}: {output}");
    }
}
