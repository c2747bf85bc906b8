//! Determines a signature's purpose from the data to sign.

use crate::wire::{Malformed, Reader};

/// `SSH_MSG_USERAUTH_REQUEST`.
const LOGIN: u8 = 50;

/// Prefix of the data to sign for a file or a commit.
const SIGNED_FILE: &[u8] = b"SSHSIG";

/// Purpose of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignaturePurpose {
    /// Login to a host.
    Login {
        /// Account on the host.
        user: String,
        /// The host's key, if it is part of the data. A host then accepts the signature only if the key is its own.
        host_key: Option<Vec<u8>>,
    },
    /// Signature of a file, a commit or other data.
    File {
        /// Namespace, such as `git` or `file`.
        namespace: String,
    },
}

impl SignaturePurpose {
    /// Determines the purpose of data that is to be signed with `key`.
    ///
    /// # Errors
    /// Returns [`Malformed`] if the data has no known purpose.
    pub fn of(data: &[u8], key: &[u8]) -> Result<Self, Malformed> {
        match data.strip_prefix(SIGNED_FILE) {
            Some(rest) => file(Reader::new(rest)),
            None => login(Reader::new(data), key),
        }
    }
}

fn file(mut reader: Reader<'_>) -> Result<SignaturePurpose, Malformed> {
    let namespace = reader.text()?.to_owned();
    let (_reserved, algorithm, hash) = (reader.string()?, reader.string()?, reader.string()?);
    reader.end()?;
    let length = match algorithm {
        b"sha256" => 32,
        b"sha512" => 64,
        _ => return Err(Malformed),
    };
    if namespace.is_empty() || hash.len() != length {
        return Err(Malformed);
    }
    Ok(SignaturePurpose::File { namespace })
}

fn login(mut reader: Reader<'_>, key: &[u8]) -> Result<SignaturePurpose, Malformed> {
    if reader.string()?.is_empty() || reader.byte()? != LOGIN {
        return Err(Malformed);
    }
    let user = reader.text()?.to_owned();
    if reader.string()? != b"ssh-connection" {
        return Err(Malformed);
    }
    let has_host = match reader.string()? {
        b"publickey" => false,
        b"publickey-hostbound-v00@openssh.com" => true,
        _ => return Err(Malformed),
    };
    if !reader.bool()? {
        return Err(Malformed);
    }
    let _algorithm = reader.string()?;
    if reader.string()? != key {
        return Err(Malformed);
    }
    let host_key = if has_host { Some(reader.string()?.to_vec()) } else { None };
    reader.end()?;
    Ok(SignaturePurpose::Login { user, host_key })
}
