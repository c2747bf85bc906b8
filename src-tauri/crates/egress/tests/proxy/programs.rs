//! Tests common network programs that are configured only by a sandboxed server's environment variables.

use crate::fixture::TestProxy;
use crate::namespace::{PRIVATE, PUBLIC, World, inside, run};
use ironcurtain_egress::environment;
use std::ffi::OsStr;
use std::process::{Command, Output};

fn proxy() -> TestProxy {
    let proxy = TestProxy::new(&["files.example.test", "sly.example.test"], &[]);
    for (name, address) in [("files", PUBLIC), ("other", PUBLIC), ("sly", PRIVATE)] {
        proxy.names.set(&format!("{name}.example.test"), &[address]);
    }
    proxy
}

/// Runs a program in a sandboxed server's environment. The program trusts the tests' certificate authority.
pub async fn client<S: AsRef<OsStr>>(proxy: &TestProxy, world: &World, program: &str, args: &[S]) -> Output {
    const TRUST: [&str; 6] = [
        "CURL_CA_BUNDLE",
        "SSL_CERT_FILE",
        "GIT_SSL_CAINFO",
        "NODE_EXTRA_CA_CERTS",
        "PIP_CERT",
        "npm_config_cafile",
    ];
    let mut command = Command::new(program);
    command.args(args).env_clear().env("HOME", world.path("")).current_dir(world.path(""));
    command.env("PATH", std::env::var_os("PATH").unwrap());
    command.envs(environment(proxy.address.port(), None)).envs(TRUST.map(|name| (name, world.ca())));
    tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap()
}

/// Returns a successful program's standard output, or both outputs if it failed.
pub fn outcome(output: &Output) -> Result<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    if output.status.success() { Ok(said) } else { Err(format!("{said}{complained}")) }
}

#[test]
fn curl() {
    inside("programs::curl", async |world| {
        let proxy = proxy();
        let hello = Ok("hello from outside".to_owned());
        for more in [
            &["https://files.example.test/hello.txt"][..],
            &["http://files.example.test/hello.txt"],
            &["--proxytunnel", "http://files.example.test/hello.txt"],
            &[
                "--noproxy",
                "",
                "--socks5-hostname",
                &proxy.address.to_string(),
                "https://files.example.test/hello.txt",
            ],
            &["-L", "http://files.example.test/redirect?https://files.example.test/hello.txt"],
        ] {
            let got = client(&proxy, &world, "curl", &[&["-sS"], more].concat()).await;
            assert_eq!(outcome(&got), hello, "{more:?}");
        }
        for url in [
            "https://other.example.test/",
            "https://files.example.test:8443/",
            "https://9.9.9.9/",
            "https://0x9090909/",
            "https://sly.example.test/",
            "http://other.example.test/",
            "http://localhost:1/",
            "http://127.0.0.1:1/",
            "http://files.example.test/redirect?http://10.9.9.9/hello.txt",
            "http://files.example.test/redirect?http://sly.example.test/hello.txt",
            "http://files.example.test/redirect?https://other.example.test/",
        ] {
            let got = outcome(&client(&proxy, &world, "curl", &["-sS", "-f", "-L", url]).await);
            assert!(got.as_ref().is_err_and(|text| text.contains("403")), "{url}: {got:?}");
        }
        assert!(world.log().iter().all(|(host, ..)| host == PUBLIC));
    });
}

#[test]
fn git_over_https() {
    inside("programs::git_over_https", async |world| {
        let repository = world.path("files/repo.git");
        let work = world.path("work");
        let script = "git init -q work && cd work && echo one > a && git add a \
            && git -c user.name=t -c user.email=t@example.test commit -qm first \
            && git clone -q --bare . \"$1\" && git --git-dir \"$1\" update-server-info";
        run(Command::new("sh")
            .args(["-ec", script, "sh"])
            .arg(&repository)
            .current_dir(work.parent().unwrap()));
        let proxy = proxy();
        let clone = |host: &str| {
            [String::from("clone"), "-q".into(), format!("https://{host}/repo.git"), host.into()]
        };
        assert_eq!(
            outcome(&client(&proxy, &world, "git", &clone("files.example.test")).await),
            Ok(String::new())
        );
        assert_eq!(std::fs::read_to_string(world.path("files.example.test/a")).unwrap(), "one\n");
        let refused = outcome(&client(&proxy, &world, "git", &clone("other.example.test")).await);
        assert!(refused.as_ref().is_err_and(|text| text.contains("403")), "{refused:?}");
    });
}

#[test]
fn npm() {
    inside("programs::npm", async |world| {
        let script = "mkdir -p p/package && cd p && echo '{\"name\":\"tiny\",\"version\":\"1.0.0\"}' > package/package.json \
            && tar czf \"$1\" package";
        run(Command::new("sh")
            .args(["-ec", script, "sh"])
            .arg(world.path("files/tiny.tgz"))
            .current_dir(world.path("")));
        world.write(
            "npm/tiny",
            r#"{"name":"tiny","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"tiny","version":"1.0.0",
               "dist":{"tarball":"https://files.example.test/tiny.tgz"}}}}"#,
        );
        let proxy = proxy();
        let install = |host: &str| {
            let registry = format!("https://{host}/npm/");
            let quiet =
                ["--no-audit", "--no-fund", "--no-update-notifier", "--fetch-retries=0"].map(String::from);
            [&["install".into(), "--registry".into(), registry, "tiny".into()][..], &quiet].concat()
        };
        let refused = outcome(&client(&proxy, &world, "npm", &install("other.example.test")).await);
        assert!(refused.as_ref().is_err_and(|text| text.contains("403")), "{refused:?}");
        let installed = outcome(&client(&proxy, &world, "npm", &install("files.example.test")).await);
        assert!(installed.is_ok() && world.path("node_modules/tiny/package.json").exists(), "{installed:?}");
    });
}

#[test]
fn pip() {
    inside("programs::pip", async |world| {
        let script = "import zipfile, sys
w = zipfile.ZipFile(sys.argv[1], 'w')
w.writestr('tiny.py', 'x = 1')
w.writestr('tiny-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: tiny\\nVersion: 1.0\\n')
w.writestr('tiny-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
w.writestr('tiny-1.0.dist-info/RECORD', '')
w.close()";
        let wheel = "simple/tiny/tiny-1.0-py3-none-any.whl";
        world.write(wheel, "");
        run(Command::new("/usr/bin/python3").args(["-c", script]).arg(world.path("files").join(wheel)));
        let proxy = proxy();
        let download = |host: &str| {
            let index = format!("https://{host}/simple/");
            ["download", "--retries", "0", "--disable-pip-version-check", "--index-url", &index, "tiny"]
                .map(String::from)
        };
        let refused =
            outcome(&client(&proxy, &world, "/usr/bin/pip3", &download("other.example.test")).await);
        assert!(refused.as_ref().is_err_and(|text| text.contains("No matching distribution")), "{refused:?}");
        assert_eq!(proxy.events.lines(1).await, ["connect other.example.test:443 refused unknown-domain []"]);
        let got = outcome(&client(&proxy, &world, "/usr/bin/pip3", &download("files.example.test")).await);
        assert!(got.is_ok() && world.path("tiny-1.0-py3-none-any.whl").exists(), "{got:?}");
    });
}

#[test]
fn python() {
    inside("programs::python", async |world| {
        let proxy = proxy();
        let script = "import sys, urllib.request\nprint(urllib.request.urlopen(sys.argv[1]).read().decode())";
        let fetch = async |url: &str| {
            outcome(&client(&proxy, &world, "/usr/bin/python3", &["-c", script, url]).await)
        };
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://files.example.test/hello.txt");
            assert_eq!(fetch(&url).await, Ok("hello from outside\n".into()), "{url}");
            let refused = fetch(&format!("{scheme}://other.example.test/")).await;
            assert!(refused.as_ref().is_err_and(|text| text.contains("403")), "{refused:?}");
        }
        // A redirect is judged like any other request.
        let refused = fetch("http://files.example.test/redirect?http://10.9.9.9/hello.txt").await;
        assert!(refused.as_ref().is_err_and(|text| text.contains("403")), "{refused:?}");
    });
}

#[test]
fn node() {
    inside("programs::node", async |world| {
        let proxy = proxy();
        // Uses CONNECT, like Node.js proxy agents.
        let script = "
            const [host] = process.argv.slice(1), proxy = new URL(process.env.HTTPS_PROXY);
            const fail = (why) => { console.error(why); process.exit(1); };
            require('http').request({ host: proxy.hostname, port: proxy.port, method: 'CONNECT', path: host + ':443' })
                .on('error', fail)
                .on('connect', (answer, socket) => {
                    if (answer.statusCode !== 200) fail(answer.statusCode + ' ' + answer.headers['x-ironcurtain-reason']);
                    require('https').get({ host, path: '/hello.txt', socket, agent: false }, (page) => {
                        page.on('data', (part) => process.stdout.write(part));
                    }).on('error', fail);
                }).end();";
        let fetch = async |host: &str| outcome(&client(&proxy, &world, "node", &["-e", script, host]).await);
        assert_eq!(fetch("files.example.test").await, Ok("hello from outside".into()));
        assert_eq!(fetch("other.example.test").await, Err("403 unknown-domain\n".into()));
        assert_eq!(fetch("sly.example.test").await, Err("403 not-public\n".into()));
    });
}
