//! Launches one sandbox through the library, with this process's standard streams. Arguments: the program, then files
//! with the spec, the autostart rules and, optionally, a proxy's rules. Writes the findings next to the spec.

#![cfg(target_os = "linux")]

mod answers;
mod proxy;
mod watching;

use std::{
    env,
    error::Error,
    fs::{self, File},
    io,
    path::Path,
    process::ExitCode,
    sync::mpsc,
    thread,
};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, program, place, autostart, rules @ ..] = args.as_slice() else {
        return Err("arguments: program, spec, autostart rules, proxy rules".into());
    };
    let mut spec = serde_json::from_str(&fs::read_to_string(place)?)?;
    let watched = watching::watch(&mut spec, serde_json::from_str(&fs::read_to_string(autostart)?)?)?;
    let (end, ended) = mpsc::channel();
    let launched = ironcurtain_sandbox::launch(&spec, Path::new(program), move |how| _ = end.send(how))?;
    if let Some(view) = launched.view {
        answers::serve(view, &spec, Path::new(place).with_file_name("readable"))?;
    }
    if let Some(services) = launched.services {
        answers::refuse(services);
    }
    let proxy = match (launched.egress, rules) {
        (Some(egress), [rules]) => {
            Some(proxy::serve(egress, serde_json::from_str(&fs::read_to_string(rules)?)?)?)
        }
        _ => None,
    };
    let (mut out, mut complaints) = (File::from(launched.stdout), File::from(launched.stderr));
    let complaining = thread::spawn(move || io::copy(&mut complaints, &mut io::stderr()));
    io::copy(&mut out, &mut io::stdout())?;
    // Ignores the error: only output that was not yet forwarded is lost.
    let _ = complaining.join();
    let status = ended.recv()?.status.and_then(|status| u8::try_from(status).ok());
    drop(proxy);
    fs::write(Path::new(place).with_file_name("found.json"), serde_json::to_string(&watched.end()?)?)?;
    Ok(ExitCode::from(status.unwrap_or(255)))
}
