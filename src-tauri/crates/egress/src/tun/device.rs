//! Reads and writes IP packets.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Write};
use tokio::net::unix::pipe::Receiver;

/// Maximum size of a packet in bytes. Large packets need fewer system calls.
pub const MTU: usize = 32 * 1024;

/// TUN device. A read returns one packet, and a write sends one.
#[derive(Debug)]
pub(super) struct TunDevice {
    /// The device, as the only type of tokio that reads from any descriptor without unsafe code.
    incoming: Receiver,
    device: File,
    /// Memory for the packet that is being sent.
    outgoing: RefCell<Box<[u8]>>,
}

impl TunDevice {
    /// Takes a device in non-blocking mode.
    pub(super) fn new(device: File) -> io::Result<Self> {
        let incoming = Receiver::from_file_unchecked(device.try_clone()?)?;
        Ok(Self { incoming, device, outgoing: RefCell::new(vec![0; MTU].into()) })
    }

    /// Waits until a packet can be read.
    pub(super) async fn readable(&self) -> io::Result<()> {
        self.incoming.readable().await
    }

    /// Reads a packet and returns its length. Fails with `WouldBlock` if there is none.
    pub(super) fn try_read(&self, packet: &mut [u8]) -> io::Result<usize> {
        self.incoming.try_read(packet)
    }

    /// Sends a packet.
    pub(super) fn write(&self, packet: &[u8]) {
        // Ignores the error: a lost packet is sent again, and reading reports a broken device.
        let _ = (&self.device).write(packet);
    }

    /// Sends a packet that `fill` writes. A packet that is too long is not sent.
    pub(super) fn write_with<R>(&self, length: usize, fill: impl FnOnce(&mut [u8]) -> R) -> R {
        let mut outgoing = self.outgoing.borrow_mut();
        match outgoing.get_mut(..length) {
            Some(packet) => {
                let filled = fill(packet);
                self.write(packet);
                filled
            }
            None => fill(&mut vec![0; length]),
        }
    }
}
