//! Private test network with the proxy on one side of a link, and servers with public and private addresses on the
//! other.
//!
//! Needs no privileges, because the test re-executes itself in a user namespace.

use ironcurtain_testkit::external_servers::ExternalServers;
use ironcurtain_testkit::namespace::{is_inside, run_inside};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Public IPv4 address of the servers.
pub const PUBLIC: &str = "9.9.9.9";
pub const PUBLIC_V6: &str = "2620:fe::9";
pub const PRIVATE: &str = "10.9.9.9";
/// Public address of the machine on which the proxy runs.
pub const OWN: &str = "9.9.9.1";

pub struct World {
    dir: tempfile::TempDir,
    _outside: ExternalServers,
}

/// Runs `body` in a new network namespace by executing the test with the full name `test` again in that namespace.
pub fn inside(test: &str, body: impl AsyncFnOnce(World)) {
    if !is_inside() {
        return run_inside(test, &["--net"]);
    }
    let world = World::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(body(world));
}

impl World {
    fn new() -> Self {
        let dir = tempfile::Builder::new().prefix("egress-").tempdir_in("/var/tmp").unwrap();
        certificates(dir.path());
        std::fs::create_dir(dir.path().join("files")).unwrap();
        let path = |name: &str| dir.path().join(name);
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/proxy/servers.py");
        let files = ["files", "server.pem", "server.key", "log", "ssh.sh"].map(path);
        let servers = [PathBuf::from("/usr/bin/python3"), script].into_iter().chain(files);
        let near = [format!("{OWN}/24"), "10.9.9.1/24".to_owned(), "2620:fe::1/64".to_owned()];
        let far = [format!("{PUBLIC}/24"), format!("{PRIVATE}/24"), format!("{PUBLIC_V6}/64")];
        let world = Self { _outside: ExternalServers::start(servers, &near, &far), dir };
        world.write("hello.txt", "hello from outside");
        world
    }

    /// Returns the path of a file in the world's directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the path of the certificate authority that signed the servers' certificates.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// Writes a file for the servers to serve over HTTP.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path("files").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Returns the address and port of every connection to the servers, and `true` if the connection sent any data.
    pub fn log(&self) -> Vec<(String, u16, bool)> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (host, port) = (words.next().unwrap(), words.next().unwrap());
            (host.to_owned(), port.parse().unwrap(), words.next().is_some_and(|bytes| !bytes.is_empty()))
        };
        log.lines().map(line).collect()
    }

    /// Returns the number of connections that sent data to the servers.
    pub fn connection_count(&self) -> usize {
        self.log().iter().filter(|(_, _, bytes)| *bytes).count()
    }
}

/// Creates a certificate authority and a certificate for the servers' names.
fn certificates(dir: &Path) {
    let script = "
        new='-newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes'
        openssl req -x509 $new -keyout ca.key -out ca.pem -days 3650 -subj /CN=tests \
            -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign
        openssl req $new -keyout server.key -out server.csr -subj /CN=files.example.test
        printf 'subjectAltName=DNS:*.example.test,IP:9.9.9.9\nextendedKeyUsage=serverAuth\n' > server.ext
        openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -out server.pem -days 3650 -extfile server.ext";
    run(Command::new("sh").args(["-ec", script]).current_dir(dir));
}

/// Runs a command that must succeed and returns its standard output.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}
