//! Injects input into terminals.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    os::{fd::AsRawFd, unix::fs::OpenOptionsExt},
};

use crate::{
    carrier::other_end,
    sys::{Outcome, check, descriptor},
};

pub(crate) fn act(words: &[&str]) -> Option<Outcome> {
    Some(match words {
        ["type", text] => type_everywhere(text),
        ["paste"] => paste(),
        ["terminal", path] => own_terminal(path),
        _ => return None,
    })
}

/// Types a line into every open terminal.
fn type_everywhere(text: &str) -> Outcome {
    let terminal = File::open("/dev/tty");
    let numbers = [0, 1, 2].into_iter().chain(terminal.as_ref().ok().map(AsRawFd::as_raw_fd));
    for number in numbers {
        for byte in text.bytes().chain([b'\n']) {
            // SAFETY: `TIOCSTI` reads one byte, which outlives the call; anything but a terminal refuses the request.
            unsafe { libc::ioctl(number, libc::TIOCSTI, &raw const byte) };
        }
    }
    Ok(())
}

/// Pastes the console's selection into the terminal's input.
fn paste() -> Outcome {
    let paste: u8 = 3;
    // SAFETY: `TIOCLINUX` reads one byte, which outlives the call.
    check(unsafe { libc::ioctl(0, libc::TIOCLINUX, &raw const paste) })?;
    Ok(())
}

/// Sends a file through a newly created terminal.
fn own_terminal(path: &str) -> Outcome {
    // SAFETY: `posix_openpt` takes no pointers.
    let master = descriptor(unsafe { libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY) })?;
    let slave =
        OpenOptions::new().read(true).write(true).custom_flags(libc::O_NOCTTY).open(other_end(&master)?)?;
    let mut master = File::from(master);
    master.write_all(format!("{}\n", fs::read_to_string(path)?).as_bytes())?;
    let mut line = String::new();
    BufReader::new(slave).read_line(&mut line)?;
    println!("{line}");
    Ok(())
}
