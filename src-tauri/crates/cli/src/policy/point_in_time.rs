//! Parses points in time on the command line.

use chrono::{DateTime, NaiveDate, NaiveTime};
use ironcurtain_audit::clock::now_ms;

/// Argument that is not a point in time.
#[derive(Debug, thiserror::Error)]
#[error("expected `30m`, `12h`, `7d`, `2026-11-01` or `2026-11-01T12:00:00Z`")]
pub struct InvalidTime;

/// Parses a duration before now (`30m`, `12h`, `7d`), a UTC day or a timestamp. Returns milliseconds since the Unix
/// epoch.
pub fn parse_time(text: &str) -> Result<u64, InvalidTime> {
    let time = parse_duration_ago(text).map(|ago| now_ms().saturating_sub(ago)).or_else(|| parse_date(text));
    time.ok_or(InvalidTime)
}

/// Formats an audit entry's time.
pub fn format_time(ms: u64) -> String {
    let time = i64::try_from(ms).ok().and_then(DateTime::from_timestamp_millis);
    time.map_or_else(|| format!("{ms} ms"), |time| time.format("%Y-%m-%d %H:%M:%SZ").to_string())
}

fn parse_duration_ago(text: &str) -> Option<u64> {
    const MINUTE: u64 = 60_000;
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let unit = match unit {
        "m" => MINUTE,
        "h" => 60 * MINUTE,
        "d" => 24 * 60 * MINUTE,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

fn parse_date(text: &str) -> Option<u64> {
    let day = || Some(NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?.and_time(NaiveTime::MIN).and_utc());
    let exact = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    u64::try_from(exact.or_else(day)?.timestamp_millis()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_days_timestamps_or_durations_ago() {
        assert_eq!(parse_date("2023-11-14"), Some(1_699_920_000_000));
        assert_eq!(parse_date("2023-11-14T23:13:20+01:00"), Some(1_700_000_000_000));
        assert_eq!(format_time(1_700_000_000_000), "2023-11-14 22:13:20Z");
        assert_eq!(
            [parse_duration_ago("30m"), parse_duration_ago("12h"), parse_duration_ago("7d")],
            [1_800_000, 43_200_000, 604_800_000].map(Some)
        );
        let invalid = ["", "d", "7", "7w", "-1d", "1969-01-01", "yesterday", "7ä", "99999999999999999999d"];
        assert!(invalid.iter().all(|text| parse_time(text).is_err()));
        assert!(parse_time("1d").unwrap() < parse_time("1m").unwrap());
    }
}
