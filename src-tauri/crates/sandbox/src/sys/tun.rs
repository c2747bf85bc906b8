//! Creates TUN devices (`netdevice(7)`, and `tuntap.rst` of the kernel).

use std::{
    fs::{File, OpenOptions},
    io,
    mem::zeroed,
    net::{Ipv4Addr, UdpSocket},
    os::fd::{AsFd, AsRawFd},
    os::unix::fs::OpenOptionsExt,
};

/// Address and packet size of a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TunAddress {
    pub(crate) address: Ipv4Addr,
    /// Number of bits of the network's prefix.
    pub(crate) bits: u8,
    /// Maximum size of a packet in bytes.
    pub(crate) mtu: usize,
}

/// Device file that creates TUN devices. In some containers, only root can open it.
pub(crate) const DEVICE_FILE: &str = "/dev/net/tun";

/// Creates a device in this thread's network namespace, with a default route for IPv4. The device exists until the
/// returned descriptor, which is non-blocking, is closed.
pub(crate) fn create(name: &str, at: TunAddress) -> io::Result<File> {
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open(DEVICE_FILE)?;
    let mut request = request_for(name)?;
    request.ifr_ifru.ifru_flags = flags(libc::IFF_TUN | libc::IFF_NO_PI);
    control(&file, libc::TUNSETIFF, &mut request)?;

    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let netmask = u32::MAX.checked_shl(32 - u32::from(at.bits)).unwrap_or_default();
    request.ifr_ifru.ifru_addr = socket_address(at.address);
    control(&socket, libc::SIOCSIFADDR, &mut request)?;
    request.ifr_ifru.ifru_netmask = socket_address(Ipv4Addr::from(netmask));
    control(&socket, libc::SIOCSIFNETMASK, &mut request)?;
    request.ifr_ifru.ifru_mtu = at.mtu.try_into().map_err(|_| io::ErrorKind::InvalidInput)?;
    control(&socket, libc::SIOCSIFMTU, &mut request)?;
    request.ifr_ifru.ifru_flags = flags(libc::IFF_UP);
    control(&socket, libc::SIOCSIFFLAGS, &mut request)?;
    add_default_route(&socket, &mut request)?;
    Ok(file)
}

fn add_default_route(socket: &UdpSocket, device: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: all-zero is a valid value of this structure, which consists of numbers and a pointer.
    let mut route: libc::rtentry = unsafe { zeroed() };
    let any = socket_address(Ipv4Addr::UNSPECIFIED);
    (route.rt_dst, route.rt_gateway, route.rt_genmask) = (any, any, any);
    route.rt_flags = libc::RTF_UP;
    route.rt_dev = device.ifr_name.as_mut_ptr();
    // SAFETY: the descriptor is open for the length of the call. The kernel reads the structure and the name, which
    // ends with a zero byte. Both outlive the call.
    let added = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCADDRT, &raw mut route) };
    if added < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Returns a request for the device with this name.
fn request_for(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid value of this structure, which consists of numbers.
    let mut request: libc::ifreq = unsafe { zeroed() };
    // The last byte stays zero.
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}

fn flags(flags: libc::c_int) -> libc::c_short {
    libc::c_short::try_from(flags).unwrap_or_default()
}

/// Returns a kernel-format address.
fn socket_address(address: Ipv4Addr) -> libc::sockaddr {
    let mut data = [0; 14];
    // The port precedes the address.
    for (to, from) in data.iter_mut().skip(2).zip(address.octets()) {
        *to = from.cast_signed();
    }
    libc::sockaddr {
        sa_family: libc::sa_family_t::try_from(libc::AF_INET).unwrap_or_default(),
        sa_data: data,
    }
}

fn control(descriptor: impl AsFd, operation: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: the descriptor is open for the length of the call, and these operations read and write a structure of
    // this type, which outlives the call.
    let done = unsafe { libc::ioctl(descriptor.as_fd().as_raw_fd(), operation, &raw mut *request) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
