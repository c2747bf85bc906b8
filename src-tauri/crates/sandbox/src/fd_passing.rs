//! Descriptor and credential passing over unix streams.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    net::TcpListener,
    os::fd::{AsFd, OwnedFd},
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use rustix::process::Pid;

use crate::sys;

/// Size in bytes of the control message for one descriptor.
const SPACE: usize = rustix::cmsg_space!(ScmRights(1));

/// Sends `descriptor` together with one byte.
pub(crate) fn send(stream: impl AsFd, descriptor: impl AsFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    let descriptors = [descriptor.as_fd()];
    if !ancillary.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    sendmsg(stream, &[IoSlice::new(b"d")], &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Blocks until a descriptor arrives. Fails at EOF.
pub(crate) fn receive(stream: impl AsFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let received = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        RecvAncillaryMessage::ScmCredentials(_) | _ => None,
    });
    received.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// Blocks until a message arrives and returns its descriptor. For a message without a descriptor, returns its byte, or
/// `None` at EOF.
pub(crate) fn receive_or_byte(stream: impl AsFd) -> io::Result<Result<OwnedFd, Option<u8>>> {
    // The message may also carry credentials.
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1), ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received =
        recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let descriptor = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        RecvAncillaryMessage::ScmCredentials(_) | _ => None,
    });
    let [byte] = byte;
    Ok(descriptor.ok_or((received.bytes == 1).then_some(byte)))
}

/// Blocks until the listener arrives over the inherited socket with descriptor `number`, which is an argument of the
/// proxy program.
pub fn receive_listener(number: &str) -> io::Result<TcpListener> {
    Ok(receive(sys::process::take_descriptor(number)?)?.into())
}

/// Receives one byte (`None` at EOF) and the sender's process id. `SO_PASSCRED` must be set on the stream.
pub(crate) fn receive_byte_and_sender(stream: impl AsFd) -> io::Result<(Option<u8>, Option<Pid>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmCredentials(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let received =
        recvmsg(stream, &mut [IoSliceMut::new(&mut byte)], &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
    let sender = ancillary.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmCredentials(sender) => Some(sender.pid),
        RecvAncillaryMessage::ScmRights(_) | _ => None,
    });
    let [word] = byte;
    Ok(((received.bytes == 1).then_some(word), sender))
}
