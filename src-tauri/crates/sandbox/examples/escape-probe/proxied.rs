//! Servers outside a proxied sandbox, and a client of the proxy. The servers log their clients.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    net::{Ipv6Addr, Shutdown, TcpListener, TcpStream, UdpSocket},
    sync::Arc,
    thread,
    time::Duration,
};

use crate::sys::Outcome;

/// Address of the proxy in every proxied sandbox.
const PROXY: (&str, u16) = ("127.0.0.1", 3128);

/// Maximum time to wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["serve", log, ports @ ..] => serve(log, ports),
        ["proxy"] => talk(TcpStream::connect(PROXY), None),
        ["tunnel", target] => talk(TcpStream::connect(PROXY), Some(target)),
        ["hello", "-", text] => say_hello(None, text),
        ["hello", name, text] => say_hello(Some(name), text),
        _ => return None,
    })
}

/// Listens on all addresses, logs clients and their messages, and echoes the messages. Exits when standard input
/// reaches EOF.
fn serve(log: &str, ports: &[&str]) -> Outcome {
    let log = Arc::new(OpenOptions::new().create(true).append(true).open(log)?);
    for port in ports {
        let port: u16 = port.parse()?;
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port))?;
        let tcp = Arc::clone(&log);
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let log = Arc::clone(&tcp);
                thread::spawn(move || answer(caller, &log));
            }
        });
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port))?;
        let udp = Arc::clone(&log);
        thread::spawn(move || -> io::Result<()> {
            let mut bytes = [0; 512];
            loop {
                let (length, from) = socket.recv_from(&mut bytes)?;
                note(
                    &udp,
                    &format!("datagram {} from {from}", shown(bytes.get(..length).unwrap_or_default())),
                )?;
            }
        });
    }
    println!("ready");
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

/// Writes a line with a single call, because several threads write concurrently.
fn note(mut log: &File, line: &str) -> io::Result<()> {
    log.write_all(format!("{line}\n").as_bytes())
}

fn answer(mut caller: TcpStream, log: &File) -> io::Result<()> {
    let address = caller.local_addr()?;
    let (address, port) = (address.ip().to_canonical(), address.port());
    note(log, &format!("{address} {port} opened"))?;
    caller.set_read_timeout(Some(TIMEOUT))?;
    let mut bytes = [0; 4096];
    let length = caller.read(&mut bytes)?;
    let said = bytes.get(..length).unwrap_or_default();
    if length > 0 {
        note(log, &format!("{address} {port} heard {}", shown(said)))?;
    }
    let text = shown(said);
    let elsewhere =
        if text.contains("/redirect") { "302 Found\r\nLocation: http://denied.test/" } else { "200 OK" };
    write!(
        caller,
        "HTTP/1.1 {elsewhere}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )?;
    caller.shutdown(Shutdown::Both)
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_default().to_string()
}

/// Sends standard input to the proxy, through a tunnel if requested, and prints the response.
fn talk(proxy: io::Result<TcpStream>, tunnel: Option<&str>) -> Outcome {
    let mut proxy = proxy?;
    proxy.set_read_timeout(Some(TIMEOUT))?;
    if let Some(target) = tunnel {
        write!(proxy, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            proxy.read_exact(&mut byte)?;
            head.extend(byte);
        }
        print!("{}", String::from_utf8_lossy(&head));
    }
    let mut said = Vec::new();
    io::stdin().read_to_end(&mut said)?;
    proxy.write_all(&said)?;
    let mut heard = Vec::new();
    // Bytes received before a timeout count too.
    let ended = proxy.read_to_end(&mut heard);
    println!("{}", String::from_utf8_lossy(&heard));
    Ok(ended.map(drop)?)
}

/// Sends a minimal TLS `ClientHello` whose random bytes are `text`, so that the message can be found in the log.
fn say_hello(name: Option<&str>, text: &str) -> Outcome {
    let length = |bytes: usize| u16::try_from(bytes).map(u16::to_be_bytes);
    let mut extensions = Vec::new();
    if let Some(name) = name {
        extensions.extend([0, 0]);
        extensions.extend(length(name.len() + 5)?);
        extensions.extend(length(name.len() + 3)?);
        extensions.push(0);
        extensions.extend(length(name.len())?);
        extensions.extend(name.bytes());
    }
    // Supported versions: 1.3 and 1.2.
    extensions.extend([0, 43, 0, 5, 4, 3, 4, 3, 3]);
    let mut hello = vec![3, 3];
    hello.extend(text.bytes().chain(std::iter::repeat(b'.')).take(32));
    hello.extend([0, 0, 2, 0x13, 1, 1, 0]);
    hello.extend(length(extensions.len())?);
    hello.extend(extensions);
    let mut record = vec![22, 3, 1];
    record.extend(length(hello.len() + 4)?);
    record.extend([1, 0]);
    record.extend(length(hello.len())?);
    record.extend(hello);
    Ok(io::stdout().write_all(&record)?)
}
