//! File workload that this program runs in each sandbox and times.

use super::Fallible;
use std::{
    fs::{self, File},
    hint::black_box,
    io::{Read, Write},
    path::Path,
    time::{Duration, Instant},
};

/// Number of small files.
const SMALL: usize = 2000;

/// Size of a small file, in bytes.
const SMALL_SIZE: usize = 4096;

/// Folder with many small files and one large file.
pub(crate) struct Files {
    /// Number of small files to use.
    pub(crate) small: usize,
    /// Size of the large file, in MiB.
    pub(crate) large: usize,
}

impl Files {
    pub(crate) const MEASURED: Self = Self { small: SMALL, large: 300 };
    pub(crate) const SMOKE: Self = Self { small: 20, large: 1 };

    /// Creates the files.
    pub(crate) fn create(&self, folder: &Path) -> Fallible<()> {
        fs::create_dir_all(folder)?;
        (0..self.small).try_for_each(|number| fs::write(folder.join(number.to_string()), [7; SMALL_SIZE]))?;
        let mut large = File::create(folder.join("large"))?;
        (0..self.large).try_for_each(|_| large.write_all(&[7; 1 << 20]))?;
        Ok(fs::write(folder.join("asked"), "x")?)
    }
}

/// Names of the measurements, in output order.
pub(crate) const FIGURES: [&str; 6] = [
    "first access to a file",
    "`stat` of a file",
    "open, read 4 KiB and close",
    "the same again",
    "read a large file",
    "the same again",
];

/// Runs the workload in a folder and prints each measurement in nanoseconds. `small` is the number of small files.
pub(crate) fn perform(folder: &Path, small: usize) -> Fallible<String> {
    let each = |work: &dyn Fn(&Path) -> Fallible<()>| -> Fallible<Duration> {
        let began = Instant::now();
        (0..small).try_for_each(|number| work(&folder.join(number.to_string())))?;
        Ok(began.elapsed() / u32::try_from(small)?)
    };
    let read = |path: &Path| -> Fallible<()> {
        let mut buffer = vec![0; 1 << 17];
        let mut file = File::open(path)?;
        while black_box(file.read(&mut buffer)?) > 0 {}
        Ok(())
    };
    let large = || -> Fallible<Duration> {
        let began = Instant::now();
        read(&folder.join("large"))?;
        Ok(began.elapsed())
    };
    let began = Instant::now();
    read(&folder.join("asked"))?;
    let first = began.elapsed();
    let stat = each(&|path| {
        black_box(fs::metadata(path)?);
        Ok(())
    })?;
    let figures = [first, stat, each(&read)?, each(&read)?, large()?, large()?];
    Ok(figures.map(|figure| figure.as_nanos().to_string()).join(" "))
}

/// Parses the output of [`perform`].
pub(crate) fn parse(line: &str) -> Fallible<Vec<Duration>> {
    let figures = line.split_whitespace().map(|figure| Ok(Duration::from_nanos(figure.parse()?)));
    let figures = figures.collect::<Fallible<Vec<_>>>()?;
    if figures.len() == FIGURES.len() { Ok(figures) } else { Err(format!("not the figures: {line}").into()) }
}
