//! Tests the encrypted file: locked, unlocked, shared with another process, and damaged.

use super::*;
use std::os::unix::fs::PermissionsExt;

const PASSPHRASE: &str = "four words and more";

fn secret(text: &str) -> Secret {
    Secret::new(text.to_owned())
}

fn name(text: &str) -> SecretName {
    SecretName::try_from(text).unwrap()
}

/// Creates a store with an unlocked file.
fn made(folder: &Path) -> SecretStore {
    let store = SecretStore::of(folder);
    OpenFile::create(store.path(), secret(PASSPHRASE)).unwrap();
    store
}

#[test]
fn an_existing_file_is_locked_until_unlocked_and_can_be_locked_again() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(SecretStore::of(folder.path()).file_is_locked().unwrap(), None);
    let store = made(folder.path());
    let mode = std::fs::metadata(store.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let is_locked = |refused: SecretError| matches!(refused, SecretError::File(SecretFileError::Locked(_)));
    assert!(is_locked(store.get(&name("api")).unwrap_err()));
    assert!(is_locked(store.set(&name("api"), &secret("x")).unwrap_err()));
    let wrong = store.unlock(secret("four words and less")).unwrap_err().to_string();
    assert!(
        wrong.contains("the passphrase is wrong, or the file was changed; nothing in it was changed"),
        "{wrong}"
    );
    assert_eq!(store.file_is_locked().unwrap(), Some(true));
    store.unlock(secret(PASSPHRASE)).unwrap();
    store.set(&name("api"), &secret("k1")).unwrap();
    let clone = store.clone();
    assert_eq!(clone.get(&name("api")).unwrap(), secret("k1"));
    let missing = store.get(&name("other")).unwrap_err();
    assert!(matches!(missing, SecretError::File(SecretFileError::Missing(_))), "{missing}");
    store.lock();
    assert!(is_locked(clone.get(&name("api")).unwrap_err()));
}

#[test]
fn concurrent_writers_read_each_others_secrets_and_lose_none() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (made(folder.path()), SecretStore::of(folder.path()));
    for store in [&here, &there] {
        store.unlock(secret(PASSPHRASE)).unwrap();
    }
    there.set(&name("a"), &secret("1")).unwrap();
    here.set(&name("b"), &secret("2")).unwrap();
    assert_eq!(there.list().unwrap(), [name("a"), name("b")]);
    let taken =
        here.add([(&name("c"), &secret("3")), (&name("a"), &secret("other"))].into_iter()).unwrap_err();
    assert!(matches!(taken, SecretError::File(SecretFileError::NameInUse(_))), "{taken}");
    assert_eq!(there.list().unwrap(), [name("a"), name("b")], "all or none");
    // A file that was recreated with a different passphrase cannot be read with the old passphrase.
    std::fs::remove_file(here.path()).unwrap();
    OpenFile::create(here.path(), secret("another passphrase")).unwrap();
    assert!(there.get(&name("a")).is_err());
}

#[test]
fn a_truncated_or_replaced_file_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let store = made(folder.path());
    store.unlock(secret(PASSPHRASE)).unwrap();
    let whole = std::fs::read(store.path()).unwrap();
    for broken in [&whole[..whole.len() - 1], b"", b"no age at all"] {
        std::fs::write(store.path(), broken).unwrap();
        let refused = store.set(&name("api"), &secret("x")).unwrap_err();
        assert!(matches!(refused, SecretError::File(SecretFileError::Decrypt { .. })), "{refused}");
        assert_eq!(std::fs::read(store.path()).unwrap(), broken);
    }
    // A file above the limit is rejected without allocating memory for it.
    let long = std::fs::File::create(store.path()).unwrap();
    long.set_len(ironcurtain_paths::bounded_read::MAX_LEN + 1).unwrap();
    let refused = store.set(&name("api"), &secret("x")).unwrap_err();
    assert!(matches!(refused, SecretError::File(SecretFileError::TooLarge(_))), "{refused}");
    std::fs::write(store.path(), whole).unwrap();
    store.set(&name("api"), &secret("x")).unwrap();
    // A file that would be too large to read is not written.
    let large = secret(&"x".repeat(17 << 20));
    let refused = store.set(&name("large"), &large).unwrap_err();
    assert!(matches!(refused, SecretError::File(SecretFileError::TooLarge(_))), "{refused}");
    assert_eq!(store.list().unwrap(), [name("api")]);
}

#[test]
fn a_short_passphrase_or_an_existing_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("secrets.age");
    let short = OpenFile::create(&path, secret("password")).unwrap_err();
    assert!(matches!(short, SecretFileError::PassphraseTooShort(10)) && !path.exists(), "{short}");
    OpenFile::create(&path, secret(PASSPHRASE)).unwrap();
    let again = OpenFile::create(&path, secret(PASSPHRASE)).unwrap_err();
    assert!(matches!(again, SecretFileError::AlreadyExists(_)), "{again}");
}
