//! Determines a signature's purpose from the data to sign.

use crate::wire::{Malformed, Reader};

/// `SSH_MSG_USERAUTH_REQUEST`.
const USERAUTH_REQUEST: u8 = 50;

/// Prefix of the data to sign for a file or a commit.
const SSHSIG_MAGIC: &[u8] = b"SSHSIG";

/// Maximum length of an account name or namespace, in bytes. A question cannot show a longer name.
const MAX_NAME_LEN: usize = 256;

/// Purpose of a signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignaturePurpose {
    /// Login to a host.
    Login {
        /// Account on the host.
        user: String,
        /// The host's key, if the signed data includes it. A host accepts such a signature only if the key is its own.
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
    pub fn from_data(data: &[u8], key: &[u8]) -> Result<Self, Malformed> {
        match data.strip_prefix(SSHSIG_MAGIC) {
            Some(rest) => parse_sshsig(Reader::new(rest)),
            None => parse_login(Reader::new(data), key),
        }
    }
}

fn parse_sshsig(mut reader: Reader<'_>) -> Result<SignaturePurpose, Malformed> {
    let namespace = read_name(&mut reader)?;
    let (_reserved, algorithm, hash) = (reader.read_string()?, reader.read_string()?, reader.read_string()?);
    reader.expect_end()?;
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

fn parse_login(mut reader: Reader<'_>, key: &[u8]) -> Result<SignaturePurpose, Malformed> {
    if reader.read_string()?.is_empty() || reader.read_byte()? != USERAUTH_REQUEST {
        return Err(Malformed);
    }
    let user = read_name(&mut reader)?;
    if reader.read_string()? != b"ssh-connection" {
        return Err(Malformed);
    }
    let has_host = match reader.read_string()? {
        b"publickey" => false,
        b"publickey-hostbound-v00@openssh.com" => true,
        _ => return Err(Malformed),
    };
    if !reader.read_bool()? {
        return Err(Malformed);
    }
    let _algorithm = reader.read_string()?;
    if reader.read_string()? != key {
        return Err(Malformed);
    }
    let host_key = if has_host { Some(reader.read_string()?.to_vec()) } else { None };
    reader.expect_end()?;
    Ok(SignaturePurpose::Login { user, host_key })
}

fn read_name(reader: &mut Reader<'_>) -> Result<String, Malformed> {
    let name = reader.read_utf8()?;
    if name.len() > MAX_NAME_LEN { Err(Malformed) } else { Ok(name.to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &[u8]) -> Vec<u8> {
        [&u32::try_from(text.len()).unwrap().to_be_bytes()[..], text].concat()
    }

    #[test]
    fn a_name_that_is_too_long_to_show_has_no_purpose() {
        let data = |name: &str| {
            let parts = [string(name.as_bytes()), string(b""), string(b"sha256"), string(&[0; 32])];
            [SSHSIG_MAGIC.to_vec(), parts.concat()].concat()
        };
        let (longest, longer) = ("n".repeat(MAX_NAME_LEN), "n".repeat(MAX_NAME_LEN + 1));
        let purpose = SignaturePurpose::from_data(&data(&longest), b"key");
        assert_eq!(purpose, Ok(SignaturePurpose::File { namespace: longest }));
        assert_eq!(SignaturePurpose::from_data(&data(&longer), b"key"), Err(Malformed));
    }
}
