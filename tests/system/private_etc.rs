//! A private copy of `/etc`, for tests of files that only root can change.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts a new root directory that belongs to this user namespace's root. Its directories are those of the previous
/// root directory, except `/etc`, which is the copy in the directory `$1`.
///
/// In a namespace that an ordinary user created, the previous root directory belongs to no user.
const REPLACE_ROOT: &str = r#"
set -e
mkdir "$1/root"
mount -t tmpfs -o mode=755 tmpfs "$1/root"
for each in /*; do
    if [ -L "$each" ]; then
        cp -P "$each" "$1/root$each"
    elif [ "$each" = /etc ]; then
        mkdir "$1/root/etc"
        mount --bind "$1/etc" "$1/root/etc"
    elif [ -d "$each" ]; then
        mkdir "$1/root$each"
        mount --rbind "$each" "$1/root$each"
    fi
done
cd "$1/root"
mkdir previous
pivot_root . previous
umount -l previous
rmdir previous
"#;

/// Replaces `/etc` with a copy that belongs to root and has an empty folder `ironcurtain`. Call this as root in the
/// test's own mount namespace.
///
/// The copy is kept in `dir`. Returns the path of the folder `/etc/ironcurtain`.
pub(crate) fn replace_etc(dir: &Path) -> PathBuf {
    let etc = dir.join("etc");
    // Files that this user cannot read are skipped. The tests do not need them.
    Command::new("cp")
        .args(["-r", "--no-dereference", "--preserve=mode,links"])
        .arg("/etc")
        .arg(&etc)
        .output()
        .unwrap();
    let ours = etc.join("ironcurtain");
    if ours.exists() {
        std::fs::remove_dir_all(&ours).unwrap();
    }
    std::fs::create_dir(&ours).unwrap();
    let replaced = Command::new("sh").args(["-c", REPLACE_ROOT, "sh"]).arg(dir).status().unwrap();
    assert!(replaced.success());
    PathBuf::from("/etc/ironcurtain")
}
