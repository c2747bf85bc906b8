//! Secrets and control files of the computer, outside any home directory.

use super::{KnownPath, known};

/// Absolute paths.
#[rustfmt::skip]
pub(super) const MACHINE: &[KnownPath] = &[
    // Memory and environment of other processes, devices, and kernel settings.
    known("/proc", "processes and kernel switches", "proc(5)"),
    known("/sys", "devices and kernel switches", "sysfs(5)"),
    known("/dev", "devices", "hier(7)"),
    // Sockets of the desktop session, key agents and daemons, and secrets passed to services.
    known("/run/user", "session sockets: key agents, the bus, the display", "file-hierarchy(7)"),
    known("/run/secrets", "container secrets", "docs.docker.com/engine/swarm/secrets"),
    known("/run/credentials", "secrets handed to services", "systemd.exec(5)"),
    known("/run/docker.sock", "makes anyone root", "docs.docker.com/engine/security"),
    known("/run/containerd", "makes anyone root", "containerd.io/docs"),
    known("/run/podman", "makes anyone root", "podman-system-service(1)"),
    known("/run/libvirt", "makes anyone root", "libvirt.org/daemons.html"),
    known("/run/dbus", "the system bus", "dbus-daemon(1)"),
    known("/run/systemd", "the service manager", "file-hierarchy(7)"),
    known("/tmp/.X11-unix", "the display", "Xserver(1)"),
    known("/tmp/.ICE-unix", "the session manager", "iceauth(1)"),
    // Password hashes, sudo rights, host keys, and network passwords.
    known("/etc/shadow", "password hashes", "shadow(5)"),
    known("/etc/shadow-", "password hashes", "shadow(5)"),
    known("/etc/gshadow", "group password hashes", "gshadow(5)"),
    known("/etc/gshadow-", "group password hashes", "gshadow(5)"),
    known("/etc/master.passwd", "password hashes", "passwd(5)"),
    known("/etc/sudoers", "who may become root", "sudoers(5)"),
    known("/etc/sudoers.d", "who may become root", "sudoers(5)"),
    known("/etc/security/opasswd", "former passwords", "pam_unix(8)"),
    known("/etc/ssh", "host keys", "sshd(8)"),
    known("/etc/ssl/private", "certificate keys", "wiki.debian.org/Self-Signed_Certificate"),
    known("/etc/pki/tls/private", "certificate keys", "docs.fedoraproject.org"),
    known("/etc/letsencrypt", "certificate keys", "eff-certbot.readthedocs.io"),
    known("/etc/krb5.keytab", "service keys", "krb5.conf(5)"),
    known("/etc/wireguard", "tunnel keys", "wg-quick(8)"),
    known("/etc/openvpn", "tunnel keys", "openvpn(8)"),
    known("/etc/NetworkManager/system-connections", "network passwords", "nm-settings-keyfile(5)"),
    known("/etc/wpa_supplicant", "network passwords", "wpa_supplicant.conf(5)"),
    known("/etc/ppp", "network passwords", "pppd(8)"),
    known("/etc/kubernetes", "cluster keys", "kubernetes.io/docs/setup"),
    known("/etc/rancher", "cluster keys", "docs.k3s.io/cluster-access"),
    known("/root/.ssh", "root's keys", "ssh(1)"),
    known("/var/lib/docker", "container files", "docs.docker.com/engine/storage"),
    known("/var/lib/containerd", "container files", "containerd.io/docs"),
    known("/var/lib/NetworkManager", "network secrets", "NetworkManager(8)"),
    known("/var/lib/sss", "cached logins", "sssd(8)"),
    known("/Library/Keychains", "key chains", "security(1)"),
    known("/private/etc/master.passwd", "password hashes", "passwd(5)"),
    known("/var/db/dslocal", "users and their hashes", "opendirectoryd(8)"),
];
