//! Parses requests. Every length is checked, even though requests come from the kernel.

mod attribute_change;
mod body;
mod lock_range;

use std::ffi::OsStr;

use rustix::fs::{FallocateFlags, RenameFlags};

pub(crate) use attribute_change::{AttributeChange, NewTime};
use body::Body;
pub(crate) use lock_range::{LockKind, LockRange};

/// Bytes that are not a valid request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Malformed;

/// Parsed request.
#[derive(Debug, PartialEq)]
pub(crate) struct Request<'a> {
    pub(crate) header: Header,
    pub(crate) operation: Operation<'a>,
}

/// Fields common to all requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    opcode: u32,
    pub(crate) unique: u64,
    pub(crate) node: u64,
    /// Id of the thread that made the system call, in the mount's PID namespace.
    pub(crate) process: u32,
}

/// Operation of a request, with its arguments.
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
    MakeLink {
        name: &'a OsStr,
        target: &'a OsStr,
    },
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
    /// A descriptor was closed. This releases its owner's locks.
    Flush {
        handle: u64,
        owner: u64,
    },
    GetLock(LockRange),
    SetLock {
        lock: LockRange,
        waits: bool,
    },
    OpenFolder,
    ReadFolder {
        handle: u64,
        offset: u64,
        size: u32,
        /// `true` if the kernel also wants each entry's node and attributes.
        with_nodes: bool,
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
    /// Operation that the view does not implement, such as extended attributes and `CREATE`. The kernel then uses a
    /// different operation or fails the system call.
    Unsupported,
}

/// Target of `lseek` with `SEEK_DATA` or `SEEK_HOLE`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum SeekFrom {
    Data,
    Hole,
}

impl<'a> Request<'a> {
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
            6 => Self::MakeLink { name: body.name()?, target: body.c_string()? },
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
            25 => {
                let handle = body.u64()?;
                body.skip(8)?;
                Self::Flush { handle, owner: body.u64()? }
            }
            26 => {
                let major = body.u32()?;
                body.skip(4)?;
                Self::Init { major, max_readahead: body.u32()?, flags: body.u32()? }
            }
            27 => Self::OpenFolder,
            28 => Self::read_folder(&mut body, false)?,
            29 => Self::ReleaseFolder { handle: body.u64()? },
            30 => Self::SyncFolder,
            31 => Self::GetLock(LockRange::parse(&mut body)?),
            32 => Self::SetLock { lock: LockRange::parse(&mut body)?, waits: false },
            33 => Self::SetLock { lock: LockRange::parse(&mut body)?, waits: true },
            36 => Self::Interrupt { unique: body.u64()? },
            38 => Self::Destroy,
            42 => Self::forget_all(&mut body)?,
            43 => {
                let (handle, offset, length) = (body.u64()?, body.u64()?, body.u64()?);
                Self::Allocate { handle, offset, length, mode: FallocateFlags::from_bits_retain(body.u32()?) }
            }
            44 => Self::read_folder(&mut body, true)?,
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

    fn read_folder(body: &mut Body<'_>, with_nodes: bool) -> Result<Self, Malformed> {
        let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()?);
        Ok(Self::ReadFolder { handle, offset, size, with_nodes })
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

impl SeekFrom {
    fn parse(whence: u32) -> Result<Self, Malformed> {
        match whence {
            3 => Ok(Self::Data),
            4 => Ok(Self::Hole),
            _ => Err(Malformed),
        }
    }
}

/// Flag of `open` that truncates the file.
pub(crate) const TRUNCATE: u32 = rustix::fs::OFlags::TRUNC.bits();

#[cfg(test)]
mod tests;
