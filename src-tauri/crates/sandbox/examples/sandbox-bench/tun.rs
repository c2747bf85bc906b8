//! Measures how fast a program that ignores the proxy receives data through the TUN device of its sandbox.

use super::{Fallible, others::Setting};
use ironcurtain_egress::{
    BoxFuture, ConnectionEvent, Connections, HostRules, Proxy, ProxyLimits, Record, RecordError, Resolve,
};
use ironcurtain_sandbox::{NetworkAccess, ResourceLimits, Spec, UnixSockets, View, launch};
use std::{
    env,
    fs::{self, File},
    io::{self, Read, Write},
    net::{IpAddr, Ipv4Addr, TcpListener, TcpStream},
    path::Path,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};
use tokio::sync::watch;

/// Name of the sender, which only the benchmark's resolver knows.
const HOST: &str = "sender.example.test";

/// Size of the buffers, in bytes.
const BUFFER: usize = 1 << 16;

/// Sends `mib` MiB to a program in a sandbox and to one without a sandbox, and returns a sentence with both rates.
pub(crate) fn measure(setting: &Setting, mib: u32, rounds: usize) -> Fallible<String> {
    let sender = TcpListener::bind("127.0.0.1:0")?;
    let port = sender.local_addr()?.port();
    thread::spawn(move || send_to_all(&sender, mib));
    let direct = best(rounds, || receive("127.0.0.1", port))?;
    let through = best(rounds, || in_sandbox(setting, port))?;
    let [direct, through] = [direct, through].map(|took| gigabits(mib, took));
    Ok(format!(
        "A program that ignores the proxy receives {through:.2} Gbit/s through the TUN device, and {direct:.2} Gbit/s \
         without a sandbox (goal: >= 0.5 Gbit/s)."
    ))
}

/// Receives everything from a sender. Returns the time from the connection to the last byte.
pub(crate) fn receive(host: &str, port: u16) -> Fallible<Duration> {
    let mut stream = TcpStream::connect((host, port))?;
    let began = Instant::now();
    let mut buffer = vec![0; BUFFER];
    while stream.read(&mut buffer)? > 0 {}
    Ok(began.elapsed())
}

fn send_to_all(listener: &TcpListener, mib: u32) {
    let (buffer, count) = (vec![7; BUFFER], (u64::from(mib) << 20) / BUFFER as u64);
    for mut stream in listener.incoming().map_while(Result::ok) {
        // A receiver that hangs up reports its error itself.
        let _ = (0..count).try_for_each(|_| stream.write_all(&buffer));
    }
}

fn in_sandbox(setting: &Setting, port: u16) -> Fallible<Duration> {
    let (own, session) = (env::current_exe()?, setting.dir.path().join("session"));
    fs::create_dir_all(&session)?;
    let text =
        |path: &Path| Ok::<_, Box<dyn std::error::Error>>(path.to_str().ok_or("not UTF-8")?.to_owned());
    let spec = Spec {
        argv: vec![text(&own)?, "--receive".to_owned(), HOST.to_owned(), port.to_string()],
        env: [].into(),
        cwd: None,
        home: None,
        view: View::Roots { session_dir: text(&session)?, programs: vec![text(&own)?] },
        mounts: vec![],
        network: NetworkAccess::ProxiedWithServices,
        unix_sockets: UnixSockets::None,
        read_only: vec![],
        pinned: vec![],
        hidden: vec![],
        limits: ResourceLimits::default(),
        state_dir: format!("{}.state", text(&session)?),
        allow_root: true,
    };
    let launched = launch(&spec, Path::new(setting.ours()), |_| ())?;
    let listener = launched.egress.ok_or("no proxy")?.listener()?;
    let (_rules, watched) = watch::channel(Arc::new(HostRules::new(
        &[format!("{HOST}:{port}"), format!("127.0.0.1:{port}")],
        [""; 0],
        false,
    )?));
    let proxy = Proxy {
        server: "bench".into(),
        rules: watched,
        ask: None,
        record: Arc::new(Loopback),
        resolve: Arc::new(Loopback),
        connections: Connections::default(),
        limits: ProxyLimits::default(),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.spawn(ironcurtain_egress::serve(listener, proxy));
    let mut output = String::new();
    File::from(launched.stdout).read_to_string(&mut output)?;
    let mut complaints = String::new();
    File::from(launched.stderr).read_to_string(&mut complaints)?;
    let nanoseconds = output.trim().parse().map_err(|_| format!("the receiver failed: {complaints}"))?;
    Ok(Duration::from_nanos(nanoseconds))
}

/// Resolves every name to this computer, and records nothing.
struct Loopback;

impl Resolve for Loopback {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(std::future::ready(Ok(vec![Ipv4Addr::LOCALHOST.into()])))
    }
}

impl Record for Loopback {
    fn record(&self, _: ConnectionEvent) -> BoxFuture<'_, Result<(), RecordError>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Returns the shortest duration, which other programs disturbed least.
fn best(rounds: usize, mut once: impl FnMut() -> Fallible<Duration>) -> Fallible<Duration> {
    let all = (0..rounds).map(|_| once()).collect::<Fallible<Vec<_>>>()?;
    all.into_iter().min().ok_or_else(|| "no rounds".into())
}

fn gigabits(mib: u32, took: Duration) -> f64 {
    f64::from(mib) * 8.0 * 1_048_576.0 / 1e9 / took.as_secs_f64()
}
