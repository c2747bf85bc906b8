//! Collects measured durations and formats them as Markdown tables.

use std::fs;
use std::io;
use std::time::{Duration, Instant};

/// Durations measured for repeated runs of the same operation.
#[derive(Default, Clone)]
pub struct Sample(Vec<Duration>);

impl Sample {
    /// Adds the duration of one run.
    pub fn push(&mut self, duration: Duration) {
        self.0.push(duration);
    }

    /// Runs an operation and adds its duration if it succeeds.
    pub fn time<T, E>(&mut self, what: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
        let began = Instant::now();
        let outcome = what()?;
        self.push(began.elapsed());
        Ok(outcome)
    }

    /// Subtracts another sample at p50 and p99. Returns the differences in microseconds.
    pub fn minus(&self, other: &Self) -> [f64; 2] {
        [0.5, 0.99].map(|p| self.quantile(p) - other.quantile(p))
    }

    /// Returns the duration at a quantile from 0 to 1 in microseconds, or NaN for an empty sample.
    fn quantile(&self, percentile: f64) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort();
        let last = sorted.len().saturating_sub(1);
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index into a small sample"
        )]
        let index = (last as f64 * percentile).round() as usize;
        sorted.get(index).map_or(f64::NAN, |d| d.as_secs_f64() * 1e6)
    }
}

/// Row of a Markdown table of measurements.
pub struct Row {
    what: String,
    ours: String,
    peer: String,
    ratio: String,
    goal: String,
}

impl Row {
    /// Creates a row that compares IronCurtain's durations with another program's.
    pub fn compared(what: &str, ours: Sample, peer_name: &str, peer: Sample, goal: &str) -> Self {
        let ratio = format!("{:.1}x", ours.quantile(0.5) / peer.quantile(0.5));
        Self::new(what, text(&ours), format!("{}: {}", peer_name, text(&peer)), ratio, goal)
    }

    /// Creates a row with only IronCurtain's durations.
    pub fn ours_only(what: &str, ours: Sample, goal: &str) -> Self {
        Self::new(what, text(&ours), String::new(), String::new(), goal)
    }

    /// Creates a row that compares the added latency of IronCurtain and another program, in microseconds at p50 and
    /// p99.
    pub fn added_compared(what: &str, ours: [f64; 2], peer_name: &str, peer: [f64; 2], goal: &str) -> Self {
        let text = |[p50, p99]: [f64; 2]| format!("p50 {}, p99 {}", unit(p50), unit(p99));
        Self::new(what, text(ours), format!("{peer_name}: {}", text(peer)), String::new(), goal)
    }

    /// Creates a row from the text of each cell.
    pub fn from_cells(what: &str, ours: &str, peer: &str, ratio: &str, goal: &str) -> Self {
        Self::new(what, ours.to_owned(), peer.to_owned(), ratio.to_owned(), goal)
    }

    /// Creates a row with a single value for IronCurtain.
    pub fn with_value(what: &str, ours: String, goal: &str) -> Self {
        Self::new(what, ours, String::new(), String::new(), goal)
    }

    fn new(what: &str, ours: String, peer: String, ratio: String, goal: &str) -> Self {
        Self { what: what.to_owned(), ours, peer, ratio, goal: goal.to_owned() }
    }
}

/// Formats rows as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut text =
        "| what | ours | compared with | ratio | goal |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for row in rows {
        text.push_str(&format!(
            "| {} | {} | {} | {} | {} |\n",
            row.what, row.ours, row.peer, row.ratio, row.goal
        ));
    }
    text
}

fn text(sample: &Sample) -> String {
    format!("p50 {}, p99 {}", unit(sample.quantile(0.5)), unit(sample.quantile(0.99)))
}

fn unit(micros: f64) -> String {
    if micros.abs() < 1000.0 { format!("{micros:.0} us") } else { format!("{:.1} ms", micros / 1000.0) }
}

/// Formats a duration with a suitable unit.
#[must_use]
pub fn time(duration: Duration) -> String {
    unit(duration.as_secs_f64() * 1e6)
}

/// Formats a size in KiB as megabytes.
#[must_use]
pub fn megabytes(kib: u64) -> String {
    format!("{}.{} MB", kib / 1024, kib % 1024 * 10 / 1024)
}

/// Returns a process's resident memory in KiB, or `None` for a zombie.
pub fn resident_kib(pid: u32) -> io::Result<Option<u64>> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    Ok(line.and_then(|size| size.trim().trim_end_matches(" kB").parse().ok()))
}
