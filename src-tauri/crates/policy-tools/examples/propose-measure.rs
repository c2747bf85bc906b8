//! Measures proposals against existing annotations: `propose-measure FILE... [--differences]`. Shows differences for the
//! first half of the tools only, so that the second half stays a fair test.
#![expect(clippy::print_stdout, reason = "its output is what it is for")]

#[path = "propose-measure/score.rs"]
mod score;

use score::{Count, Half, Score, score};
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let show = arguments.iter().any(|argument| argument == "--differences");
    for file in arguments.iter().filter(|argument| !argument.starts_with("--")) {
        for half in [Half::First, Half::Second] {
            match score(Path::new(file), half) {
                Ok(scores) => scores.iter().for_each(|(server, of)| print(server, half, of, show)),
                Err(problem) => {
                    println!("{problem}");
                    return ExitCode::FAILURE;
                }
            }
        }
    }
    ExitCode::SUCCESS
}

fn print(server: &str, half: Half, score: &Score, show: bool) {
    let half_name = match half {
        Half::First => "first half",
        Half::Second => "held-out half",
    };
    println!(
        "{server} ({half_name}): {} tools, {} left out; {} arguments, {} unsure, {} unknown; {} paths, {} of them missed",
        score.tools,
        score.left_out.len(),
        score.arguments,
        score.unsure,
        score.unknown.len(),
        score.paths,
        score.missed_paths.len()
    );
    for (role, Count { right, extra, missing }) in &score.roles {
        if right + extra + missing > 0 {
            let (precision, recall) = (percent(*right, *extra), percent(*right, *missing));
            println!(
                "  {role:18} precision {precision:>6}  recall {recall:>6}  ({right} right, {extra} extra, {missing} missing)"
            );
        }
    }
    if show && half == Half::First {
        score.missed_paths.iter().for_each(|place| println!("  MISSED PATH {place}"));
        score.unknown.iter().for_each(|place| println!("  unknown {place}"));
        score.left_out.iter().for_each(|place| println!("  left out {place}"));
        score.differences.iter().for_each(|place| println!("  {place}"));
    }
}

fn percent(right: usize, wrong: usize) -> String {
    match right + wrong {
        0 => "-".to_owned(),
        all => format!("{} %", (right * 1000 / all + 5) / 10),
    }
}
