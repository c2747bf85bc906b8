//! Launcher that tests kill. Launches the spec in its second argument with the program in its first, and waits.

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
