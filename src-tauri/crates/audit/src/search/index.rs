//! SQLite index of one log file: the position, properties and words of each line.

use super::calls::call_key;
use super::count_key::{CountKey, Kind};
use super::filter::{IndexConditions, index_text};
use crate::chain::{self, ChainPosition};
use crate::decision_cache::DecisionCache;
use crate::{Entry, LogLine};
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Schema version. An index with a different version is rebuilt.
const SCHEMA_VERSION: i64 = 2;

/// Maximum time to wait while another process writes the index.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of entries that are read for one call.
const MAX_PER_CALL: i64 = 200;

/// Maximum number of entries indexed in one transaction.
const BATCH: usize = 20_000;

const TABLES: &str = "
    CREATE TABLE lines (seq INTEGER PRIMARY KEY, time INTEGER NOT NULL, begin INTEGER NOT NULL,
        length INTEGER NOT NULL, link TEXT, call INTEGER, kind INTEGER, rule TEXT) STRICT;
    CREATE INDEX by_time ON lines (time, seq, kind, call);
    CREATE INDEX by_call ON lines (call, kind) WHERE call IS NOT NULL;
    CREATE VIRTUAL TABLE words USING fts5(text, content='', detail='none', columnsize=0,
        tokenize='unicode61 remove_diacritics 0');
    PRAGMA user_version = 2;";

/// Returns the path of the index for the log file with this first sequence number.
pub(super) fn path(dir: &Path, first: u64) -> PathBuf {
    dir.join(format!("search-{first:012}.db"))
}

/// Removes an index and SQLite's journal files.
pub(super) fn remove(path: &Path) {
    for suffix in ["", "-journal"] {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        // An index that cannot be removed is detected as damaged, and every line is read instead.
        let _ = std::fs::remove_file(PathBuf::from(name));
    }
}

pub(super) struct Index(Connection);

/// Position of a line in the log file, in bytes.
struct LineRange {
    begin: u64,
    length: u64,
}

impl Index {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let connection = Connection::open(path).map_err(io::Error::other)?;
        let set_up = || {
            connection.busy_timeout(TIMEOUT)?;
            // The index can be rebuilt at any time, so it needs no durability.
            connection.pragma_update(None, "synchronous", "OFF")?;
            // Ensures that only one process at a time creates the tables.
            connection.execute_batch("BEGIN IMMEDIATE")?;
            let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
            match version {
                0 => connection.execute_batch(TABLES)?,
                SCHEMA_VERSION => {}
                _ => return Err(rusqlite::Error::InvalidQuery),
            }
            connection.execute_batch("COMMIT")
        };
        set_up().map_err(io::Error::other)?;
        Ok(Self(connection))
    }

    /// Indexes the lines that were added since the last update.
    pub(super) fn catch_up(&mut self, log: &File) -> io::Result<()> {
        while self.next_batch(log)? == BATCH {}
        Ok(())
    }

    fn next_batch(&mut self, log: &File) -> io::Result<usize> {
        let mut begin = self.end(log)?;
        if begin >= log.metadata()?.len() {
            return Ok(0);
        }
        let transaction =
            self.0.transaction_with_behavior(TransactionBehavior::Immediate).map_err(io::Error::other)?;
        // Another process may have indexed lines in the meantime.
        let now = indexed_end(&transaction, log)?;
        begin = begin.max(now);
        let mut reader = BufReader::new(log.try_clone()?);
        reader.seek(SeekFrom::Start(begin))?;
        let (mut line, mut decision_cache, mut indexed_count) = (Vec::new(), DecisionCache::default(), 0);
        {
            let mut into_lines = transaction
                .prepare(
                    "INSERT OR REPLACE INTO lines (seq, time, begin, length, link, call, kind, rule)
                    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                )
                .map_err(io::Error::other)?;
            let mut into_words = transaction
                .prepare("INSERT INTO words (rowid, text) VALUES (?1, ?2)")
                .map_err(io::Error::other)?;
            while indexed_count < BATCH
                && reader.by_ref().read_until(b'\n', &mut line)? > 0
                && line.ends_with(b"\n")
            {
                let (length, at) = (line.len() as u64, chain::position_after(&line));
                let found = LogLine::parse(&line, &mut decision_cache);
                let (seq, time) = match &found {
                    Some(LogLine::Entry(entry)) => (entry.seq, entry.timestamp),
                    Some(LogLine::TooLong { seq, timestamp, .. }) => (*seq, *timestamp),
                    None => return Err(io::Error::other("a line is not an entry")),
                };
                let (mut call, mut kind, mut rule) = (None, None, None);
                if let Some(LogLine::Entry(mut entry)) = found {
                    if entry.session.is_none() {
                        complete(&transaction, log, &mut entry)?;
                    }
                    into_words.execute(params![signed(seq), index_text(&entry)]).map_err(io::Error::other)?;
                    (call, kind) = (call_key(&entry), Kind::from_entry(&entry));
                    rule =
                        entry.policy_decision.filter(|_| kind.is_some_and(Kind::is_final)).map(|by| by.rule);
                }
                let kind = kind.map(|kind| kind as i64);
                let (line_begin, head) = (signed(begin), at.map(|at| at.head));
                let row =
                    params![signed(seq), signed(time), line_begin, signed(length), head, call, kind, rule];
                into_lines.execute(row).map_err(io::Error::other)?;
                begin += length;
                indexed_count += 1;
                line.clear();
            }
        }
        transaction.commit().map_err(io::Error::other)?;
        Ok(indexed_count)
    }

    /// Returns the offset in the log file up to which lines are indexed.
    fn end(&self, log: &File) -> io::Result<u64> {
        indexed_end(&self.0, log)
    }

    /// Calls `visit` with each candidate entry, newest first, until it returns `false`.
    pub(super) fn find(
        &self,
        log: &File,
        conditions: &IndexConditions,
        mut visit: impl FnMut(Entry) -> io::Result<bool>,
    ) -> io::Result<()> {
        let Some((first, last)) = self.between(conditions)? else { return Ok(()) };
        let (sql, query) = match &conditions.query {
            Some(query) => (
                "SELECT rowid FROM words WHERE words MATCH ?3 AND rowid BETWEEN ?1 AND ?2 ORDER BY rowid DESC",
                query.as_str(),
            ),
            None => ("SELECT seq FROM lines WHERE seq BETWEEN ?1 AND ?2 AND ?3 = '' ORDER BY seq DESC", ""),
        };
        let mut rows = self.0.prepare(sql).map_err(io::Error::other)?;
        let mut rows = rows.query(params![first, last, query]).map_err(io::Error::other)?;
        while let Some(row) = rows.next().map_err(io::Error::other)? {
            let seq: i64 = row.get(0).map_err(io::Error::other)?;
            let Some(mut entry) = entry(&self.0, log, unsigned(seq))? else { continue };
            complete(&self.0, log, &mut entry)?;
            if !visit(entry)? {
                break;
            }
        }
        Ok(())
    }

    /// Returns all entries of the call to which an entry belongs, newest first. Returns only the entry if it belongs to
    /// no call.
    pub(super) fn call(&self, log: &File, of: Entry) -> io::Result<Vec<Entry>> {
        let Some(call) = call_key(&of) else { return Ok(vec![of]) };
        let sql = "SELECT seq FROM lines WHERE call = ?1 ORDER BY seq DESC LIMIT ?2";
        let mut rows = self.0.prepare_cached(sql).map_err(io::Error::other)?;
        let mut rows = rows.query(params![call, MAX_PER_CALL]).map_err(io::Error::other)?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next().map_err(io::Error::other)? {
            let seq: i64 = row.get(0).map_err(io::Error::other)?;
            if let Some(mut entry) = entry(&self.0, log, unsigned(seq))? {
                complete(&self.0, log, &mut entry)?;
                entries.push(entry);
            }
        }
        Ok(entries)
    }

    /// Returns the entry with this sequence number, if the file contains it.
    pub(super) fn entry(&self, log: &File, seq: u64) -> io::Result<Option<Entry>> {
        let found = entry(&self.0, log, seq)?;
        found.map(|mut entry| complete(&self.0, log, &mut entry).map(|()| entry)).transpose()
    }

    /// Calls `take` for each group, with the number of its questions and decisions since `since`.
    pub(super) fn count(
        &self,
        since: u64,
        period_ms: u64,
        mut add: impl FnMut(CountKey, u64),
    ) -> io::Result<()> {
        let sql = "SELECT (time - ?1) / ?2, kind, rule, count(*),
                call IS NOT NULL AND EXISTS (SELECT 1 FROM lines asked WHERE asked.call = one.call AND asked.kind = ?3)
            FROM lines one WHERE time >= ?1 AND kind IS NOT NULL GROUP BY 1, 2, 3, 5";
        let mut rows = self.0.prepare(sql).map_err(io::Error::other)?;
        let asked = Kind::Asked as i64;
        let mut rows =
            rows.query(params![signed(since), signed(period_ms), asked]).map_err(io::Error::other)?;
        while let Some(row) = rows.next().map_err(io::Error::other)? {
            let (count_key, count) = count_key(row).map_err(io::Error::other)?;
            if let Some(count_key) = count_key {
                add(count_key, count);
            }
        }
        Ok(())
    }

    /// Returns the time of the oldest line, in milliseconds since the Unix epoch, or `None` if the index is empty.
    pub(super) fn oldest(&self) -> io::Result<Option<u64>> {
        let oldest = self.0.query_row("SELECT min(time) FROM lines", [], |row| row.get::<_, Option<i64>>(0));
        Ok(oldest.map_err(io::Error::other)?.map(unsigned))
    }

    /// Returns the first and last sequence number in a time range. Entries in between may be outside the range.
    fn between(&self, conditions: &IndexConditions) -> io::Result<Option<(i64, i64)>> {
        let sql = "SELECT min(seq), max(seq) FROM lines WHERE time BETWEEN ?1 AND ?2";
        let all = "SELECT min(seq), max(seq) FROM lines WHERE ?1 = ?1 AND ?2 = ?2";
        let sql = if conditions.since == 0 && conditions.until == u64::MAX { all } else { sql };
        let found =
            self.0.query_row(sql, params![signed(conditions.since), signed(conditions.until)], |row| {
                Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
            });
        let (first, last) = found.map_err(io::Error::other)?;
        let last = last.map(|last| last.min(signed(conditions.before.saturating_sub(1))));
        Ok(first.zip(last))
    }
}

fn count_key(row: &Row<'_>) -> rusqlite::Result<(Option<CountKey>, u64)> {
    let (period, kind) = (unsigned(row.get(0)?), Kind::from_code(row.get(1)?));
    let (rule, count, was_asked) = (row.get(2)?, unsigned(row.get(3)?), row.get(4)?);
    Ok((kind.map(|kind| CountKey { period, kind, rule, was_asked }), count))
}

/// Returns the offset up to which lines are indexed. Fails if the index belongs to a different log.
fn indexed_end(connection: &Connection, log: &File) -> io::Result<u64> {
    let sql = "SELECT seq, begin, length, link FROM lines ORDER BY seq DESC LIMIT 1";
    let last = connection.query_row(sql, [], |row| {
        let range = LineRange { begin: unsigned(row.get(1)?), length: unsigned(row.get(2)?) };
        Ok((unsigned(row.get(0)?), range, row.get::<_, Option<String>>(3)?))
    });
    let Some((entries, range, link)) = last.optional().map_err(io::Error::other)? else { return Ok(0) };
    let at = link.map(|head| ChainPosition { entries, head });
    if chain::position_after(&line(log, &range)?) != at {
        return Err(io::Error::other("the index belongs to another log"));
    }
    Ok(range.begin + range.length)
}

/// Copies the omitted fields of an outcome from its decision.
fn complete(connection: &Connection, log: &File, end: &mut Entry) -> io::Result<()> {
    let Some(of) = end.decision_seq.filter(|_| end.session.is_none()) else { return Ok(()) };
    if let Some(decision) = entry(connection, log, of)? {
        end.copy_call_from(&decision);
    }
    Ok(())
}

/// Returns the entry with this sequence number, if the file contains it.
fn entry(connection: &Connection, log: &File, seq: u64) -> io::Result<Option<Entry>> {
    let mut range = connection
        .prepare_cached("SELECT begin, length FROM lines WHERE seq = ?1")
        .map_err(io::Error::other)?;
    let range = range
        .query_row([signed(seq)], |row| {
            Ok(LineRange { begin: unsigned(row.get(0)?), length: unsigned(row.get(1)?) })
        })
        .optional()
        .map_err(io::Error::other)?;
    let Some(range) = range else { return Ok(None) };
    let found = LogLine::parse(&line(log, &range)?, &mut DecisionCache::default());
    Ok(match found {
        Some(LogLine::Entry(entry)) if entry.seq == seq => Some(*entry),
        Some(LogLine::Entry(_) | LogLine::TooLong { .. }) | None => None,
    })
}

fn line(log: &File, range: &LineRange) -> io::Result<Vec<u8>> {
    // The index may be damaged, so the length is limited to the file's size.
    let length = range.length.min(log.metadata()?.len().saturating_sub(range.begin));
    let mut line = vec![0; usize::try_from(length).unwrap_or(0)];
    log.read_exact_at(&mut line, range.begin)?;
    Ok(line)
}

/// Converts a number to a signed SQLite integer, saturating. No sequence number, offset or time reaches the limit.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}
