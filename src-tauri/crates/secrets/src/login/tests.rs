//! Tests that logins are listed, replaced and locked.

use super::*;
use crate::secret_reference;

#[test]
fn a_login_is_listed_until_it_ends_and_never_a_secret_of_settings() {
    let dir = tempfile::tempdir().unwrap();
    let store = SecretStore::of(dir.path());
    store.create_file(Secret::new("four words are enough".into())).unwrap();
    let logins = Logins::of(&store);
    let record = LoginRecord::new("1", "https://a.example/mcp", "https://auth.example", &["read".into()]);
    let tokens = Secret::new("tokens-1".into());
    logins.save("far", (&record, &tokens), None).unwrap();
    assert_eq!((logins.record("far"), logins.tokens("far").unwrap()), (Some(record.clone()), tokens.clone()));
    assert_eq!(store.list().unwrap(), []);
    assert!(secret_reference("keyring:login:far").is_err(), "settings cannot refer to it");
    let written = std::fs::read_to_string(dir.path().join("logins.json")).unwrap();
    assert!(written.contains("https://auth.example") && !written.contains("tokens-1"));

    let renewed = Secret::new("tokens-2".into());
    assert!(!logins.renew("far", ("another login", None), &renewed).unwrap());
    assert_eq!(logins.tokens("far").unwrap(), tokens, "a login that was replaced is not renewed");
    assert!(logins.renew("far", (&record.id, None), &renewed).unwrap());
    assert_eq!(logins.tokens("far").unwrap(), renewed);

    let ended = |at: u64| logins.record("far").unwrap().has_expired(UNIX_EPOCH + Duration::from_secs(at));
    logins.record_expired("far", "another login").unwrap();
    assert!(!ended(u64::from(u32::MAX)));
    logins.record_expired("far", &record.id).unwrap();
    assert!(ended(0));
    logins.renew("far", (&record.id, Some(100)), &renewed).unwrap();
    assert!(!ended(99) && ended(100));

    store.lock();
    assert_eq!(logins.remove_record("far").unwrap().map(|record| record.id), Some(record.id));
    assert!(logins.remove_tokens("far").is_err());
    assert_eq!(logins.record("far"), None, "it ends even if its tokens cannot be removed");
    store.unlock(Secret::new("four words are enough".into())).unwrap();
    assert_eq!(logins.stored_tokens("far").unwrap(), Some(renewed));
    logins.remove_tokens("far").unwrap();
    assert_eq!(logins.stored_tokens("far").unwrap(), None);
}

#[test]
fn a_required_login_is_remembered_until_the_server_accepts_one() {
    let dir = tempfile::tempdir().unwrap();
    let logins = || Logins::of(&SecretStore::of(dir.path()));
    let url = "https://a.example/mcp";
    assert!(logins().record_required("far", url).unwrap());
    assert!(!logins().record_required("far", url).unwrap(), "it is known");
    assert!(logins().record_required("far", "https://b.example/mcp").unwrap(), "its address has changed");
    assert_eq!(logins().required().unwrap().into_keys().collect::<Vec<_>>(), ["far"]);
    logins().record_accepted("other").unwrap();
    assert_eq!(logins().required().unwrap().len(), 1);
    let record = LoginRecord::new("1", url, "https://auth.example", &[]);
    logins().insert_record("far", &record).unwrap();
    assert!(logins().required().unwrap().is_empty());
}

#[test]
fn a_login_that_cannot_be_listed_leaves_the_earlier_login() {
    let dir = tempfile::tempdir().unwrap();
    let store = SecretStore::of(dir.path());
    store.create_file(Secret::new("four words are enough".into())).unwrap();
    let logins = Logins::of(&store);
    let record = |id: &str| LoginRecord::new(id, "https://a.example/mcp", "https://auth.example", &[]);
    let tokens = |text: &str| Secret::new(text.to_owned());
    let stored = || (logins.record("far").map(|record| record.id), logins.stored_tokens("far").unwrap());
    let save = |id: &str| logins.save("far", (&record(id), &tokens(id)), stored().1.as_ref());
    save("1").unwrap();
    save("2").unwrap();
    assert_eq!(stored(), (Some("2".into()), Some(tokens("2"))));

    let list = dir.path().join("logins.json");
    let text = std::fs::read(&list).unwrap();
    std::fs::write(&list, "{").unwrap();
    assert!(save("3").is_err());
    std::fs::write(&list, &text).unwrap();
    assert_eq!(stored(), (Some("2".into()), Some(tokens("2"))));
    // The list of required logins is only a hint.
    std::fs::write(dir.path().join("logins-required.json"), "{").unwrap();
    save("4").unwrap();
    assert_eq!(stored(), (Some("4".into()), Some(tokens("4"))));
}

#[tokio::test]
async fn only_one_caller_at_a_time_changes_the_tokens_of_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let logins = Logins::of(&SecretStore::of(dir.path()));
    let limit = Duration::from_secs(60);
    let guard = logins.lock("far", limit).await.unwrap();
    let refused = logins.lock("far", Duration::ZERO).await.unwrap_err().to_string();
    assert_eq!(refused, "another change of the login to `far` did not finish within 0 s; try again");
    let lock = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let other = bounded_read::open_own(&lock).unwrap();
    let tried = || flock(&other, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(tried(), Err(rustix::io::Errno::WOULDBLOCK));
    drop(logins.lock("near", limit).await.unwrap());
    drop(guard);
    drop(logins.lock("far", limit).await.unwrap());
}

#[test]
fn a_list_that_is_a_pipe_or_endless_is_an_error_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let logins = Logins::of(&SecretStore::of(dir.path()));
    let list = dir.path().join("logins.json");
    let refused = || logins.all().unwrap_err().to_string();
    rustix::fs::mkfifoat(rustix::fs::CWD, &list, rustix::fs::Mode::RUSR).unwrap();
    assert!(refused().contains("it is a named pipe, not a regular file"), "{}", refused());
    assert_eq!(logins.record("far"), None);
    std::fs::remove_file(&list).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &list).unwrap();
    assert!(refused().contains("it is a device, not a regular file"), "{}", refused());
    std::fs::remove_file(&list).unwrap();
    std::fs::write(&list, "{}").unwrap();
    assert_eq!(logins.all().unwrap(), BTreeMap::new());
}
