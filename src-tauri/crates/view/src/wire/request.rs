//! Parses requests. Every length is checked, although the kernel sends them.

use std::{ffi::OsStr, os::unix::ffi::OsStrExt};

use rustix::fs::{FallocateFlags, RenameFlags};

/// A request that does not have the protocol's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Request with its header.
#[derive(Debug, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) header: Header,
    pub(crate) operation: Operation<'a>,
}

/// Fields that every request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    opcode: u32,
    pub(crate) unique: u64,
    pub(crate) node: u64,
    /// Thread that made the system call, in the pid namespace of the mount.
    pub(crate) process: u32,
}

/// Operation with its arguments.
#[derive(Debug, PartialEq)]
pub(crate) enum Operation<'a> {
    Init {
        major: u32,
        max_readahead: u32,
        flags: u32,
    },
    Destroy,
    Lookup(&'a OsStr),
    Forget(Vec<(u64, u64)>),
    GetAttributes {
        handle: Option<u64>,
    },
    SetAttributes(AttributeChange),
    ReadLink,
    MakeLink,
    MakeNode {
        name: &'a OsStr,
        mode: u32,
    },
    MakeFolder {
        name: &'a OsStr,
        mode: u32,
    },
    Unlink(&'a OsStr),
    RemoveFolder(&'a OsStr),
    Rename {
        name: &'a OsStr,
        parent: u64,
        new_name: &'a OsStr,
        flags: RenameFlags,
    },
    HardLink {
        node: u64,
        name: &'a OsStr,
    },
    Open {
        flags: u32,
    },
    Read {
        handle: u64,
        offset: u64,
        size: u32,
    },
    Write {
        handle: u64,
        offset: u64,
        from_cache: bool,
        append: bool,
        data: &'a [u8],
    },
    Statistics,
    Release {
        handle: u64,
    },
    Sync {
        handle: u64,
        data_only: bool,
    },
    Flush,
    OpenFolder,
    ReadFolder {
        handle: u64,
        offset: u64,
        size: u32,
    },
    ReleaseFolder {
        handle: u64,
    },
    SyncFolder,
    Allocate {
        handle: u64,
        offset: u64,
        length: u64,
        mode: FallocateFlags,
    },
    Seek {
        handle: u64,
        offset: u64,
        whence: SeekFrom,
    },
    Interrupt {
        unique: u64,
    },
    /// Extended attributes, locks, `CREATE` and the rest, which the kernel then does itself or refuses.
    Unsupported,
}

/// Attributes to change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct AttributeChange {
    pub(crate) handle: Option<u64>,
    pub(crate) size: Option<u64>,
    pub(crate) mode: Option<u32>,
    pub(crate) owner: Option<u32>,
    pub(crate) group: Option<u32>,
    pub(crate) accessed: Option<NewTime>,
    pub(crate) modified: Option<NewTime>,
}

/// Time to set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum NewTime {
    Now,
    At { seconds: i64, nanoseconds: u32 },
}

/// Start of a search for data or holes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SeekFrom {
    Data,
    Hole,
}

impl<'a> Request<'a> {
    /// Parses one request.
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, (Option<Header>, Malformed)> {
        let (header, body) = Header::parse(bytes).map_err(|malformed| (None, malformed))?;
        let operation = Operation::parse(header, body).map_err(|malformed| (Some(header), malformed))?;
        Ok(Self { header, operation })
    }
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<(Self, Body<'_>), Malformed> {
        let mut body = Body(bytes);
        let length = body.u32()?;
        if usize::try_from(length).ok() != Some(bytes.len()) {
            return Err(Malformed);
        }
        let (opcode, unique, node) = (body.u32()?, body.u64()?, body.u64()?);
        body.skip(8)?;
        let process = body.u32()?;
        body.skip(4)?;
        Ok((Self { opcode, unique, node, process }, body))
    }
}

impl<'a> Operation<'a> {
    fn parse(header: Header, mut body: Body<'a>) -> Result<Self, Malformed> {
        let operation = match header.opcode {
            1 => Self::Lookup(body.name()?),
            2 => Self::Forget(vec![(header.node, body.u64()?)]),
            3 => {
                const BY_HANDLE: u32 = 1;
                let flags = body.u32()?;
                body.skip(4)?;
                let handle = body.u64()?;
                Self::GetAttributes { handle: (flags & BY_HANDLE != 0).then_some(handle) }
            }
            4 => Self::SetAttributes(AttributeChange::parse(&mut body)?),
            5 => Self::ReadLink,
            6 => Self::MakeLink,
            8 => {
                let mode = body.u32()?;
                body.skip(12)?;
                Self::MakeNode { name: body.name()?, mode }
            }
            9 => {
                let mode = body.u32()?;
                body.skip(4)?;
                Self::MakeFolder { name: body.name()?, mode }
            }
            10 => Self::Unlink(body.name()?),
            11 => Self::RemoveFolder(body.name()?),
            12 => Self::rename(body.u64()?, 0, &mut body)?,
            13 => Self::HardLink { node: body.u64()?, name: body.name()? },
            14 => Self::Open { flags: body.u32()? },
            15 => {
                let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()?);
                Self::Read { handle, offset, size }
            }
            16 => Self::write(&mut body)?,
            17 => Self::Statistics,
            18 => Self::Release { handle: body.u64()? },
            20 => {
                const DATA_ONLY: u32 = 1;
                Self::Sync { handle: body.u64()?, data_only: body.u32()? & DATA_ONLY != 0 }
            }
            25 => Self::Flush,
            26 => {
                let major = body.u32()?;
                body.skip(4)?;
                Self::Init { major, max_readahead: body.u32()?, flags: body.u32()? }
            }
            27 => Self::OpenFolder,
            28 => {
                let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()?);
                Self::ReadFolder { handle, offset, size }
            }
            29 => Self::ReleaseFolder { handle: body.u64()? },
            30 => Self::SyncFolder,
            36 => Self::Interrupt { unique: body.u64()? },
            38 => Self::Destroy,
            42 => Self::forget_all(&mut body)?,
            43 => {
                let (handle, offset, length) = (body.u64()?, body.u64()?, body.u64()?);
                Self::Allocate { handle, offset, length, mode: FallocateFlags::from_bits_retain(body.u32()?) }
            }
            45 => {
                let (parent, flags) = (body.u64()?, body.u32()?);
                body.skip(4)?;
                Self::rename(parent, flags, &mut body)?
            }
            46 => {
                let (handle, offset, whence) = (body.u64()?, body.u64()?, body.u32()?);
                let whence = SeekFrom::parse(whence)?;
                Self::Seek { handle, offset, whence }
            }
            _ => Self::Unsupported,
        };
        Ok(operation)
    }

    fn rename(parent: u64, flags: u32, body: &mut Body<'a>) -> Result<Self, Malformed> {
        let (name, new_name) = (body.name()?, body.name()?);
        Ok(Self::Rename { name, parent, new_name, flags: RenameFlags::from_bits_retain(flags) })
    }

    fn write(body: &mut Body<'a>) -> Result<Self, Malformed> {
        const FROM_CACHE: u32 = 1;
        let (handle, offset, size, write_flags) = (body.u64()?, body.u64()?, body.u32()?, body.u32()?);
        body.skip(8)?;
        let flags = body.u32()?;
        body.skip(4)?;
        let data = body.take(usize::try_from(size).map_err(|_| Malformed)?)?;
        Ok(Self::Write {
            handle,
            offset,
            from_cache: write_flags & FROM_CACHE != 0,
            append: flags & rustix::fs::OFlags::APPEND.bits() != 0,
            data,
        })
    }

    fn forget_all(body: &mut Body<'_>) -> Result<Self, Malformed> {
        const EACH: usize = 16;
        let count = usize::try_from(body.u32()?).map_err(|_| Malformed)?;
        body.skip(4)?;
        if body.0.len() / EACH < count {
            return Err(Malformed);
        }
        (0..count).map(|_| Ok((body.u64()?, body.u64()?))).collect::<Result<_, _>>().map(Self::Forget)
    }
}

impl AttributeChange {
    fn parse(body: &mut Body<'_>) -> Result<Self, Malformed> {
        let valid = body.u32()?;
        body.skip(4)?;
        let has = |bit: u32| valid & (1 << bit) != 0;
        let (handle, size) = (body.u64()?, body.u64()?);
        body.skip(8)?;
        let (accessed, modified) = (body.u64()?, body.u64()?);
        body.skip(8)?;
        let (accessed_part, modified_part) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        let mode = body.u32()?;
        body.skip(4)?;
        let (owner, group) = (body.u32()?, body.u32()?);
        let time = |bit, now, seconds: u64, nanoseconds| match (has(bit), has(now)) {
            (false, _) => None,
            (true, true) => Some(NewTime::Now),
            (true, false) => Some(NewTime::At { seconds: seconds.cast_signed(), nanoseconds }),
        };
        Ok(Self {
            mode: has(0).then_some(mode),
            owner: has(1).then_some(owner),
            group: has(2).then_some(group),
            size: has(3).then_some(size),
            accessed: time(4, 7, accessed, accessed_part),
            modified: time(5, 8, modified, modified_part),
            handle: has(6).then_some(handle),
        })
    }
}

impl SeekFrom {
    fn parse(whence: u32) -> Result<Self, Malformed> {
        match whence {
            3 => Ok(Self::Data),
            4 => Ok(Self::Hole),
            _ => Err(Malformed),
        }
    }
}

/// Flag of an open that truncates the file.
pub(crate) const TRUNCATE: u32 = rustix::fs::OFlags::TRUNC.bits();

/// Arguments of a request, which only its methods take apart.
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed)?;
        self.0 = rest;
        Ok(taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.take(count).map(drop)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        let bytes = self.take(4)?.first_chunk().ok_or(Malformed)?;
        Ok(u32::from_ne_bytes(*bytes))
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        let bytes = self.take(8)?.first_chunk().ok_or(Malformed)?;
        Ok(u64::from_ne_bytes(*bytes))
    }

    /// Takes text that ends with a zero byte.
    fn text(&mut self) -> Result<&'a OsStr, Malformed> {
        let end = self.0.iter().position(|byte| *byte == 0).ok_or(Malformed)?;
        let text = self.take(end)?;
        self.skip(1)?;
        Ok(OsStr::from_bytes(text))
    }

    /// Takes the name of one directory entry.
    fn name(&mut self) -> Result<&'a OsStr, Malformed> {
        let name = self.text()?;
        let bytes = name.as_bytes();
        if bytes.is_empty() || bytes.contains(&b'/') || bytes == b"." || bytes == b".." {
            return Err(Malformed);
        }
        Ok(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a request as the kernel sends it.
    fn bytes(opcode: u32, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(40 + body.len()).unwrap();
        let mut bytes = length.to_ne_bytes().to_vec();
        bytes.extend(opcode.to_ne_bytes());
        bytes.extend(7_u64.to_ne_bytes());
        bytes.extend(9_u64.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend(1234_u32.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes
    }

    fn parsed(opcode: u32, body: &[u8]) -> Result<String, Malformed> {
        let bytes = bytes(opcode, body);
        let request = Request::parse(&bytes).map_err(|(_, malformed)| malformed)?;
        assert_eq!((request.header.unique, request.header.node, request.header.process), (7, 9, 1234));
        Ok(format!("{:?}", request.operation))
    }

    #[test]
    fn names_end_with_a_zero_byte_and_name_one_entry() {
        assert_eq!(parsed(1, b"a.txt\0").unwrap(), "Lookup(\"a.txt\")");
        for bad in [&b"a.txt"[..], b"\0", b"", b"a/b\0", b".\0", b"..\0"] {
            assert_eq!(parsed(1, bad), Err(Malformed), "{bad:?}");
        }
        let two = [&7_u64.to_ne_bytes()[..], b"a\0b\0"].concat();
        assert_eq!(
            parsed(12, &two).unwrap(),
            "Rename { name: \"a\", parent: 7, new_name: \"b\", flags: RenameFlags(0x0) }"
        );
    }

    #[test]
    fn lengths_that_do_not_match_are_refused() {
        let mut short = bytes(1, b"a\0");
        short.pop();
        assert!(matches!(Request::parse(&short), Err((None, Malformed))));
        assert!(matches!(Request::parse(&[]), Err((None, Malformed))));
        // A write that claims more data than it has.
        let write = |size: u32, data: &[u8]| {
            let fields = [[0; 16].as_slice(), &size.to_ne_bytes(), &[0; 20], data].concat();
            parsed(16, &fields)
        };
        assert!(write(3, b"abc").unwrap().contains("data: [97, 98, 99]"));
        assert_eq!(write(4, b"abc"), Err(Malformed));
        assert_eq!(write(u32::MAX, b"abc"), Err(Malformed));
        // A list of nodes that claims more entries than it has.
        let forget = |count: u32, nodes: &[u64]| {
            let nodes = nodes.iter().flat_map(|number| number.to_ne_bytes());
            parsed(42, &count.to_ne_bytes().into_iter().chain([0; 4]).chain(nodes).collect::<Vec<u8>>())
        };
        assert_eq!(forget(1, &[5, 6]).unwrap(), "Forget([(5, 6)])");
        assert_eq!(forget(2, &[5, 6]), Err(Malformed));
        assert_eq!(forget(u32::MAX, &[5, 6]), Err(Malformed));
    }

    #[test]
    fn every_operation_refuses_a_truncated_body() {
        for opcode in [1, 2, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 26, 28, 29, 36, 42, 43, 45, 46] {
            assert_eq!(parsed(opcode, &[1, 2, 3]), Err(Malformed), "{opcode}");
        }
    }

    #[test]
    fn attribute_changes_have_only_the_fields_that_are_marked() {
        let mut body = vec![0_u8; 88];
        body[0..4].copy_from_slice(&((1_u32 << 3) | (1 << 6) | (1 << 5) | (1 << 8)).to_ne_bytes());
        body[8..16].copy_from_slice(&3_u64.to_ne_bytes());
        body[16..24].copy_from_slice(&100_u64.to_ne_bytes());
        let expected = AttributeChange {
            handle: Some(3),
            size: Some(100),
            modified: Some(NewTime::Now),
            ..AttributeChange::default()
        };
        assert_eq!(parsed(4, &body).unwrap(), format!("{:?}", Operation::SetAttributes(expected)));
    }
}
