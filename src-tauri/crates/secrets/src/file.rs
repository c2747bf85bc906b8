//! Encrypted file for secrets on machines without a keyring: JSON in `age` format, protected by one passphrase.
//!
//! - The file is replaced atomically, and only this user can read it (mode 0600).
//! - INVARIANT: decrypted secrets are overwritten in memory when the store is locked or its last handle is
//!   dropped.

use super::{Secret, SecretFileError, SecretName, age};
use ironcurtain_paths::atomic_file;
use ironcurtain_paths::bounded_read;
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Minimum length of a new passphrase in characters.
const MIN_LEN: usize = 10;

pub(super) type Contents = BTreeMap<SecretName, Secret>;

/// Unlocked file: its passphrase, and the secrets as they were last read.
#[derive(Debug)]
pub(super) struct OpenFile {
    path: PathBuf,
    passphrase: Secret,
    stamp: ContentStamp,
    contents: Contents,
}

/// Metadata that changes whenever another process writes the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ContentStamp {
    inode: (u64, u64),
    length: u64,
    changed: (i64, i64),
}

impl OpenFile {
    /// Creates the file without secrets. Fails if the file already exists.
    pub(super) fn create(path: &Path, passphrase: Secret) -> Result<Self, SecretFileError> {
        if passphrase.reveal().chars().count() < MIN_LEN {
            return Err(SecretFileError::PassphraseTooShort(MIN_LEN));
        }
        let _lock = lock_folder(path)?;
        if file_exists(path)? {
            return Err(SecretFileError::AlreadyExists(path.to_path_buf()));
        }
        let stamp = write(path, &passphrase, &Contents::new())?;
        Ok(Self { path: path.to_path_buf(), passphrase, stamp, contents: Contents::new() })
    }

    /// Decrypts an existing file with its passphrase.
    pub(super) fn open(path: &Path, passphrase: Secret) -> Result<Self, SecretFileError> {
        let (stamp, contents) = read(path, &passphrase)?;
        Ok(Self { path: path.to_path_buf(), passphrase, stamp, contents })
    }

    /// Returns the secrets, after reading them again if another process has written the file.
    pub(super) fn contents(&mut self) -> Result<&Contents, SecretFileError> {
        let at = |source| SecretFileError::Io { path: self.path.clone(), source };
        if ContentStamp::read(&bounded_read::open(&self.path).map_err(at)?).map_err(at)? != self.stamp {
            (self.stamp, self.contents) = read(&self.path, &self.passphrase)?;
        }
        Ok(&self.contents)
    }

    /// Applies `change` to the secrets and writes the file, while holding the folder's lock.
    pub(super) fn change<T>(
        &mut self,
        change: impl FnOnce(&mut Contents) -> Result<T, SecretFileError>,
    ) -> Result<T, SecretFileError> {
        let _lock = lock_folder(&self.path)?;
        let mut contents = self.contents()?.clone();
        let done = change(&mut contents)?;
        self.stamp = write(&self.path, &self.passphrase, &contents)?;
        self.contents = contents;
        Ok(done)
    }
}

impl ContentStamp {
    fn read(file: &File) -> io::Result<Self> {
        let found = file.metadata()?;
        let changed = (found.mtime(), found.mtime_nsec());
        Ok(Self { inode: (found.dev(), found.ino()), length: found.len(), changed })
    }
}

/// Returns `true` if the file exists. If the check fails, the caller must not use the keyring instead.
pub(super) fn file_exists(path: &Path) -> Result<bool, SecretFileError> {
    match path.symlink_metadata() {
        Ok(_) => Ok(true),
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(SecretFileError::Io { path: path.to_path_buf(), source }),
    }
}

fn read(path: &Path, passphrase: &Secret) -> Result<(ContentStamp, Contents), SecretFileError> {
    let at = |source| SecretFileError::Io { path: path.to_path_buf(), source };
    let file = bounded_read::open(path).map_err(at)?;
    let (stamp, mut bytes) = (ContentStamp::read(&file).map_err(at)?, Vec::new());
    file.take(bounded_read::MAX_LEN + 1).read_to_end(&mut bytes).map_err(at)?;
    check_length(path, &bytes)?;
    let content = age::decrypt(passphrase, &bytes);
    let content = content.map_err(|source| SecretFileError::Decrypt { path: path.to_path_buf(), source })?;
    let invalid_contents = || SecretFileError::InvalidContents(path.to_path_buf());
    let texts: BTreeMap<String, String> = serde_json::from_slice(&content).map_err(|_| invalid_contents())?;
    let parse_entry = |(name, text): (String, String)| {
        let name = SecretName::stored(&name).map_err(|_| invalid_contents())?;
        Ok((name, Secret::new(text)))
    };
    Ok((stamp, texts.into_iter().map(parse_entry).collect::<Result<_, SecretFileError>>()?))
}

fn write(path: &Path, passphrase: &Secret, contents: &Contents) -> Result<ContentStamp, SecretFileError> {
    let at = |source| SecretFileError::Io { path: path.to_path_buf(), source };
    let texts: BTreeMap<&str, &str> =
        contents.iter().map(|(name, secret)| (name.as_str(), secret.reveal())).collect();
    // Reserving the full capacity avoids a reallocation, which would leave a copy of the secrets in memory.
    let max_len = texts.iter().map(|(name, text)| name.len() + 6 * text.len() + 8).sum::<usize>() + 8;
    let mut content = Zeroizing::new(Vec::with_capacity(max_len));
    serde_json::to_writer(&mut *content, &texts).map_err(|problem| at(problem.into()))?;
    let file = age::encrypt(passphrase, &content);
    let file = file.map_err(|source| SecretFileError::Decrypt { path: path.to_path_buf(), source })?;
    check_length(path, &file)?;
    atomic_file::replace_bytes(path, &file).map_err(at)?;
    ContentStamp::read(&bounded_read::open(path).map_err(at)?).map_err(at)
}

fn check_length(path: &Path, bytes: &[u8]) -> Result<(), SecretFileError> {
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= bounded_read::MAX_LEN);
    if fits { Ok(()) } else { Err(SecretFileError::TooLarge(path.to_path_buf())) }
}

/// Locks the file's folder so that no other process writes the file. Dropping the returned handle releases the lock.
pub(super) fn lock_folder(path: &Path) -> Result<File, SecretFileError> {
    let at = |source| SecretFileError::Io { path: path.to_path_buf(), source };
    let folder = path.parent().ok_or_else(|| at(io::ErrorKind::NotFound.into()))?;
    let folder = File::open(folder).map_err(at)?;
    flock(&folder, FlockOperation::LockExclusive).map_err(|problem| at(problem.into()))?;
    Ok(folder)
}
