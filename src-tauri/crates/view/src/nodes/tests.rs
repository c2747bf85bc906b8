//! Tests the node table without a kernel.

use std::path::Path;

use super::*;

fn file(inode: u64) -> FileId {
    FileId { device: 1, inode }
}

fn at(inode: u64) -> FoundAt {
    FoundAt { file: file(inode), is_folder: false, is_mounted: false }
}

fn folder_at(inode: u64) -> FoundAt {
    FoundAt { is_folder: true, ..at(inode) }
}

fn name(text: &str) -> &OsStr {
    OsStr::new(text)
}

#[test]
fn a_replaced_file_is_another_node_and_numbers_are_not_used_again() {
    let nodes = Nodes::new(file(1));
    let first = nodes.look_up_file(ROOT, name("a"), at(2)).unwrap();
    assert_eq!(nodes.look_up_file(ROOT, name("a"), at(2)).unwrap(), first);
    let second = nodes.look_up_file(ROOT, name("a"), at(3)).unwrap();
    assert_ne!(first, second);
    assert_eq!(nodes.path(first), Err(Errno::NOENT));
    assert_eq!(nodes.path(second).unwrap(), Path::new("a"));
    nodes.forget(second, 1);
    nodes.forget(first, 2);
    assert_eq!(nodes.len(), 1);
    assert!(nodes.look_up_file(ROOT, name("a"), at(3)).unwrap() > second);
}

#[test]
fn a_folder_that_is_moved_takes_its_entries_along() {
    let nodes = Nodes::new(file(1));
    let folder = nodes.look_up_file(ROOT, name("d"), folder_at(2)).unwrap();
    let inner = nodes.look_up_file(folder, name("x"), at(3)).unwrap();
    nodes.move_name((ROOT, name("d")), (ROOT, name("e")));
    assert_eq!(nodes.path(inner).unwrap(), Path::new("e/x"));
    // The parent is kept while the kernel knows a child.
    nodes.forget(folder, 1);
    assert_eq!(nodes.path(inner).unwrap(), Path::new("e/x"));
    nodes.forget(inner, 1);
    assert_eq!(nodes.len(), 1);
}

#[test]
fn names_can_be_exchanged() {
    let nodes = Nodes::new(file(1));
    let [one, two] = [("a", 2), ("b", 3)].map(|(n, i)| nodes.look_up_file(ROOT, name(n), at(i)).unwrap());
    nodes.exchange_names((ROOT, name("a")), (ROOT, name("b")));
    assert_eq!(nodes.path(one).unwrap(), Path::new("b"));
    assert_eq!(nodes.path(two).unwrap(), Path::new("a"));
}

#[test]
fn virtual_entries_stay_without_lookups_until_they_are_removed() {
    let nodes = Nodes::new(file(1));
    nodes.create_virtual(ROOT, name("v"), 0o100_600).unwrap();
    let (node, mode) = nodes.look_up_virtual(ROOT, name("v")).unwrap();
    assert_eq!(mode, 0o100_600);
    nodes.forget(node, 1);
    assert_eq!(nodes.virtual_children(ROOT), [(name("v").to_owned(), node, 0o100_600)]);
    nodes.retire(ROOT, name("v"));
    assert_eq!((nodes.len(), nodes.virtual_children(ROOT)), (1, vec![]));
}

#[test]
fn a_virtual_entry_keeps_its_node_when_its_own_file_appears() {
    let nodes = Nodes::new(file(1));
    nodes.create_virtual(ROOT, name("d"), FOLDER_TYPE | 0o755).unwrap();
    let (folder, _) = nodes.look_up_virtual(ROOT, name("d")).unwrap();
    assert_eq!(nodes.look_up_file(ROOT, name("d"), folder_at(2)).unwrap(), folder);
    assert_eq!(nodes.kind(folder), Ok(NodeKind::Real(file(2))));
    // Another program's file is another node, unless the run is just creating the file.
    nodes.create_virtual(folder, name("a"), 0o100_600).unwrap();
    let (first, _) = nodes.look_up_virtual(folder, name("a")).unwrap();
    let other = nodes.look_up_file(folder, name("a"), at(3)).unwrap();
    assert_ne!(other, first);
    nodes.create_virtual(folder, name("b"), 0o100_600).unwrap();
    let (created, _) = nodes.look_up_virtual(folder, name("b")).unwrap();
    nodes.begin_creation(created);
    assert_eq!(nodes.look_up_file(folder, name("b"), at(4)).unwrap(), created);
    assert_eq!(nodes.all_virtual(), []);
}

#[test]
fn a_folder_keeps_its_node_while_something_is_mounted_in_it() {
    let nodes = Nodes::new(file(1));
    let folder = nodes.look_up_file(ROOT, name("d"), folder_at(2)).unwrap();
    assert_eq!(
        nodes.look_up_file(ROOT, name("d"), FoundAt { is_mounted: true, ..folder_at(3) }).unwrap(),
        folder
    );
    assert_eq!(nodes.kind(folder), Ok(NodeKind::Real(file(3))));
    // A file that replaces the folder is another node.
    assert_ne!(nodes.look_up_file(ROOT, name("d"), FoundAt { is_mounted: true, ..at(4) }).unwrap(), folder);
}

#[test]
fn virtual_entries_are_bounded() {
    let nodes = Nodes::new(file(1));
    for number in 0..MAX_VIRTUAL {
        nodes.create_virtual(ROOT, name(&number.to_string()), 0o100_600).unwrap();
    }
    assert_eq!(nodes.create_virtual(ROOT, name("one more"), 0o100_600), Err(Errno::NOSPC));
    nodes.retire(ROOT, name("0"));
    nodes.create_virtual(ROOT, name("one more"), 0o100_600).unwrap();
}

#[test]
fn a_file_that_is_open_keeps_its_node() {
    let nodes = Nodes::new(file(1));
    let node = nodes.look_up_file(ROOT, name("a"), at(2)).unwrap();
    nodes.add_handle(node);
    nodes.forget(node, 1);
    nodes.retire(ROOT, name("a"));
    assert_eq!((nodes.path(node), nodes.len()), (Err(Errno::NOENT), 2));
    nodes.remove_handle(node);
    assert_eq!(nodes.len(), 1);
}

#[test]
fn the_kernel_is_told_to_forget_files_in_turn() {
    let nodes = Nodes::new(file(1));
    let folder = nodes.look_up_file(ROOT, name("d"), folder_at(2)).unwrap();
    for number in 0..20_000_u64 {
        let node = nodes.look_up_file(folder, name(&number.to_string()), at(number + 10)).unwrap();
        nodes.mark_as_file(node);
    }
    let mut table = nodes.lock();
    assert_eq!(table.names_to_forget(30_000), []);
    let first = table.names_to_forget(10_000);
    // Returns nothing until nodes are added, and then returns other names.
    assert_eq!((first.len(), table.names_to_forget(10_000)), (8192, vec![]));
    drop(table);
    for number in 20_000..24_096_u64 {
        nodes.mark_as_file(nodes.look_up_file(folder, name(&number.to_string()), at(number + 10)).unwrap());
    }
    let second = nodes.lock().names_to_forget(10_000);
    assert_eq!(second.len(), 8192);
    assert!(first.iter().chain(&second).all(|(parent, _)| *parent == folder));
    assert!(!second.contains(&first[0]));
}
