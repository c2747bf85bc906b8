//! A network of the test's own: the proxy on one side of a wire, servers with public and private addresses on the other.
//!
//! It needs no rights: the test is started again in a user namespace, where it may make what it likes.

use ironcurtain_testkit::namespace::{is_inside, run_inside};
use ironcurtain_testkit::outside::Outside;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The servers' public addresses, and one that no name may lead to.
pub const PUBLIC: &str = "9.9.9.9";
pub const PUBLIC_V6: &str = "2620:fe::9";
pub const PRIVATE: &str = "10.9.9.9";
/// The proxy's own public address.
pub const OWN: &str = "9.9.9.1";

pub struct World {
    dir: tempfile::TempDir,
    _outside: Outside,
}

/// Runs `body` in a network of its own. `test` is the whole name of the test that calls this.
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
        let world = Self { _outside: Outside::start(servers, &near, &far), dir };
        world.write("hello.txt", "hello from outside");
        world
    }

    /// Something of the world's own directory.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The certificate that signs the servers'.
    pub fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// Puts a file where the servers find it.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path("files").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Every connection that reached the servers: address, port, and whether a byte came.
    pub fn log(&self) -> Vec<(String, u16, bool)> {
        let log = std::fs::read_to_string(self.path("log")).unwrap_or_default();
        let line = |line: &str| {
            let mut words = line.split(' ');
            let (host, port) = (words.next().unwrap(), words.next().unwrap());
            (host.to_owned(), port.parse().unwrap(), words.next().is_some_and(|bytes| !bytes.is_empty()))
        };
        log.lines().map(line).collect()
    }

    /// The number of connections that got a byte to the servers.
    pub fn talks(&self) -> usize {
        self.log().iter().filter(|(_, _, bytes)| *bytes).count()
    }
}

/// An authority, and a certificate of it for the servers' names.
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

/// Runs a command that must succeed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}\n{said}\n{}", String::from_utf8_lossy(&output.stderr));
    said
}
