//! Launcher for tests that kill it. Launches the sandbox program in the first argument with the spec in the second, and
//! waits.

#![expect(clippy::print_stdout, reason = "the test waits for the line")]

use std::{env, error::Error, path::Path, sync::mpsc};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().collect();
    let [_, program, spec] = args.as_slice() else { return Err("two arguments".into()) };
    let spec = serde_json::from_str(spec)?;
    println!("about to launch");
    let (end, ended) = mpsc::channel();
    let launched = ironcurtain_sandbox::launch(&spec, Path::new(program), move |how| _ = end.send(how))?;
    ended.recv()?;
    drop(launched);
    Ok(())
}
