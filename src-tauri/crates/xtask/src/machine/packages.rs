//! List of the system packages.

/// Purpose for which packages are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Compiling the workspace without the app.
    Compile,
    /// Running servers in sandboxes.
    Sandbox,
    /// Compiling and running the app.
    App,
    /// Building distribution packages.
    Packages,
    /// Testing the distribution packages in a bare system.
    CleanRoot,
    /// Tests of single crates, which need no server from npm or PyPI.
    CrateTests,
    /// Tests that need no display.
    Tests,
    /// Programs that servers from npm and PyPI use.
    Servers,
    /// Tests of the app on a private display.
    DisplayTests,
}

/// System package and its name in each distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Package {
    /// Name in Debian and Ubuntu.
    pub(crate) apt: &'static str,
    /// Name in Fedora, if known.
    pub(crate) dnf: Option<&'static str>,
    /// Name in Arch Linux, if known.
    pub(crate) pacman: Option<&'static str>,
    /// Evidence that the package is installed.
    pub(crate) proof: Proof,
}

/// Evidence that a package is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proof {
    /// This program is found on `PATH`.
    Program(&'static str),
    /// This `pkg-config` module exists. On Debian, the package manager is queried instead.
    Module(&'static str),
    /// The Debian package manager reports the package as installed. In other distributions, a different package
    /// contains it.
    Apt,
}

/// Returns the packages for these purposes, in a fixed order.
pub(crate) fn wanted(purposes: &[Purpose]) -> impl Iterator<Item = &'static Package> {
    let wanted = |purpose: &Purpose| purposes.contains(purpose);
    LIST.iter().filter(move |(purpose, _)| wanted(purpose)).map(|(_, package)| package)
}

use Proof::{Apt, Module, Program};
use Purpose::{App, CleanRoot, Compile, CrateTests, DisplayTests, Packages, Sandbox, Servers, Tests};

const LIST: &[(Purpose, Package)] = &[
    (Compile, named("build-essential", "gcc", "base-devel", Program("cc"))),
    (Sandbox, named("bubblewrap", "bubblewrap", "bubblewrap", Program("bwrap"))),
    (App, named("pkg-config", "pkgconf-pkg-config", "pkgconf", Program("pkg-config"))),
    (App, named("libwebkit2gtk-4.1-dev", "webkit2gtk4.1-devel", "webkit2gtk-4.1", Module("webkit2gtk-4.1"))),
    (App, named("libgtk-3-dev", "gtk3-devel", "gtk3", Module("gtk+-3.0"))),
    (
        App,
        named(
            "libayatana-appindicator3-dev",
            "libayatana-appindicator-gtk3-devel",
            "libayatana-appindicator",
            Module("ayatana-appindicator3-0.1"),
        ),
    ),
    (App, named("librsvg2-dev", "librsvg2-devel", "librsvg", Module("librsvg-2.0"))),
    (App, named("libdbus-1-dev", "dbus-devel", "dbus", Module("dbus-1"))),
    (App, debian("libayatana-appindicator3-1", Apt)),
    (Packages, named("dpkg", "dpkg", "dpkg", Program("dpkg-deb"))),
    (Packages, named("fakeroot", "fakeroot", "fakeroot", Program("fakeroot"))),
    (Packages, named("zip", "zip", "zip", Program("zip"))),
    (Packages, named("rpm", "rpm-build", "rpm-tools", Program("rpmbuild"))),
    (Packages, debian("lintian", Program("lintian"))),
    (CleanRoot, debian("debootstrap", Program("debootstrap"))),
    (Tests, named("nodejs", "nodejs", "nodejs", Program("node"))),
    (Tests, named("npm", "nodejs-npm", "npm", Program("npm"))),
    // The browser controlled by the Playwright server.
    (Tests, debian("chromium-headless-shell", Program("chromium-headless-shell"))),
    // Subordinate user ids, with which tests create folders of two users without being root.
    (Tests, named("uidmap", "shadow-utils", "shadow", Program("newuidmap"))),
    // The system's Python, because sandboxes hide a Python in the home directory.
    (CrateTests, named("python3", "python3", "python", Program("/usr/bin/python3"))),
    (Tests, named("python3-pip", "python3-pip", "python-pip", Program("/usr/bin/pip3"))),
    (CrateTests, named("git", "git", "git", Program("git"))),
    // `srt` needs this program.
    (Tests, named("socat", "socat", "socat", Program("socat"))),
    (Tests, named("ripgrep", "ripgrep", "ripgrep", Program("rg"))),
    // Ordinary programs that tests start in runs.
    (Tests, named("vim", "vim-enhanced", "vim", Program("vim"))),
    (Tests, named("ed", "ed", "ed", Program("ed"))),
    (Tests, named("patch", "patch", "patch", Program("patch"))),
    (Tests, named("sqlite3", "sqlite", "sqlite", Program("sqlite3"))),
    (Tests, named("zip", "zip", "zip", Program("zip"))),
    (Tests, named("unzip", "unzip", "unzip", Program("unzip"))),
    // Linked into pjdfstest.
    (Tests, named("libacl1-dev", "libacl-devel", "acl", Module("libacl"))),
    (CrateTests, named("util-linux", "util-linux", "util-linux", Program("setpriv"))),
    (CrateTests, named("iproute2", "iproute", "iproute2", Program("ip"))),
    (CrateTests, named("openssl", "openssl", "openssl", Program("openssl"))),
    (CrateTests, named("curl", "curl", "curl", Program("curl"))),
    // Servers for an organization's bundles.
    (CrateTests, named("nginx", "nginx-core", "nginx", Program("nginx"))),
    (CrateTests, debian("docker-registry", Program("docker-registry"))),
    // A keyring on a private bus.
    (Tests, debian("dbus", Program("dbus-run-session"))),
    (Tests, debian("gnome-keyring", Program("gnome-keyring-daemon"))),
    (Tests, named("gnupg", "gnupg2", "gnupg", Program("gpg"))),
    (CrateTests, named("openssh-client", "openssh-clients", "openssh", Program("ssh"))),
    (CrateTests, named("dropbear-bin", "dropbear", "dropbear", Program("dropbearkey"))),
    (Servers, debian("postgresql", Apt)),
    (Servers, named("pandoc", "pandoc", "pandoc", Program("pandoc"))),
    (Tests, named("openssh-server", "openssh-server", "openssh", Apt)),
    (DisplayTests, debian("xvfb", Program("Xvfb"))),
    (DisplayTests, debian("xauth", Program("xauth"))),
    (DisplayTests, debian("dbus-x11", Apt)),
    (DisplayTests, debian("at-spi2-core", Apt)),
    (DisplayTests, debian("x11-utils", Program("xprop"))),
    (DisplayTests, debian("xdotool", Program("xdotool"))),
    (DisplayTests, debian("imagemagick", Program("import"))),
    (DisplayTests, debian("openbox", Program("openbox"))),
    // Other window managers, a compositor and Wayland, for testing race conditions of the dialog.
    (DisplayTests, debian("metacity", Program("metacity"))),
    (DisplayTests, debian("i3-wm", Program("i3"))),
    (DisplayTests, debian("xfwm4", Program("xfwm4"))),
    (DisplayTests, debian("mutter", Program("mutter"))),
    (DisplayTests, debian("picom", Program("picom"))),
    (DisplayTests, debian("sway", Program("sway"))),
    (DisplayTests, debian("dunst", Program("dunst"))),
    (DisplayTests, debian("libsecret-tools", Program("secret-tool"))),
    (DisplayTests, debian("webkit2gtk-driver", Program("WebKitWebDriver"))),
    (DisplayTests, debian("xfce4-panel", Program("xfce4-panel"))),
    // A panel that supports only XEmbed icons.
    (DisplayTests, debian("tint2", Program("tint2"))),
    (DisplayTests, debian("libglib2.0-bin", Program("gdbus"))),
    (DisplayTests, debian("fonts-dejavu-core", Apt)),
    (DisplayTests, debian("adwaita-icon-theme", Apt)),
    (DisplayTests, debian("hicolor-icon-theme", Apt)),
    (DisplayTests, debian("python3-gi", Apt)),
    (DisplayTests, debian("gir1.2-atspi-2.0", Apt)),
];

const fn named(apt: &'static str, dnf: &'static str, pacman: &'static str, proof: Proof) -> Package {
    Package { apt, dnf: Some(dnf), pacman: Some(pacman), proof }
}

const fn debian(apt: &'static str, proof: Proof) -> Package {
    Package { apt, dnf: None, pacman: None, proof }
}
