//! Simulates an hour of normal work, an hour-long outage of both servers, and their return. A new bundle is published
//! during the normal work and another one during the outage.
//!
//! - The export starts 20 minutes before the outage, because it takes up most of the simulation's run time.

use super::bounds::{self, Load};
use super::bundles::{BundleServer, Organization};
use super::collector::{Behaviour, Collector};
use super::desktops::{CALL_EVERY, Exporters, Followers};
use super::site::{Traffic, total};
use super::spool::Spool;
use super::{compared, row, shown};
use ironcurtain_bundle::PollInterval;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// Duration of the export before the outage. Its second half is measured.
const EXPORT: Duration = Duration::from_secs(20 * 60);

/// Period in which the collector closes connections without a response, before it becomes unreachable.
const CRASHING: Duration = Duration::from_secs(5);

/// Period before its return in which the collector responds with status 503.
const MAINTENANCE: Duration = Duration::from_secs(10 * 60);

/// Measured period after the return.
const AFTER: Duration = Duration::from_secs(10 * 60);

/// Maximum pauses of the export in seconds: between metrics, between signed heads, and after failures.
const METRICS: f64 = 80.0;
const HEADS: f64 = 80.0;
const BACKOFF: f64 = 300.0;

/// Runs the simulation and returns the rows of the table.
pub async fn run(desktops: usize, organization: &Organization, spool: &Arc<Spool>) -> Vec<String> {
    let interval = PollInterval::DEFAULT;
    let server = BundleServer::start(organization.bundle(1), false);
    let collector = Collector::new(spool.clone(), desktops);
    let site = collector.site();
    let followers = Followers::start(desktops, &server, &organization.public_key(), interval);
    sleep(10 * MINUTE).await;

    let usual = Instant::now();
    sleep(HOUR / 2).await;
    server.publish(2, organization.bundle(2));
    followers.expect(2);
    let update = followers.updated.all(Instant::now(), interval.max + MINUTE).await;
    sleep(HOUR - EXPORT - usual.elapsed()).await;
    let exporters = Exporters::start(desktops, spool, &site);
    sleep(EXPORT).await;

    let outage = Instant::now();
    server.site.set_up(false);
    collector.behave(Behaviour::AcceptSilently);
    sleep(CRASHING).await;
    site.set_up(false);
    sleep(HOUR / 2).await;
    server.publish(3, organization.bundle(3));
    followers.expect(3);
    let end = outage + HOUR;
    sleep(end - MAINTENANCE - Instant::now()).await;
    collector.behave(Behaviour::BusyUntil(end));
    site.set_up(true);
    sleep(end - Instant::now()).await;

    let back = Instant::now();
    let waiting = exporters.recorded();
    let before: usize = collector.arrived().iter().map(|arrived| arrived.entries.len()).sum();
    let backlog = waiting.iter().sum::<u64>() - before as u64;
    server.site.set_up(true);
    collector.behave(Behaviour::Accept);
    collector.drain(&waiting);
    let (updated, drained) = tokio::join!(
        followers.updated.all(back, interval.max + MINUTE),
        collector.drained.all(back, MAINTENANCE),
    );
    sleep(AFTER - back.elapsed()).await;
    let now = Instant::now();
    exporters.fall_quiet();
    sleep(2 * MINUTE).await;
    let (entries, duplicates) = exporters.end(&collector).await;
    assert!(duplicates > 0, "the crash leads to duplicates");

    let many = desktops as f64;
    let polls = many / (interval.max - interval.min).as_secs_f64();
    // Each call leads to one request. Heads and metrics follow their own pauses.
    let reports = many * (2.0 / METRICS + 2.0 / HEADS + 1.0 / CALL_EVERY.as_secs_f64());
    // Pending entries and metrics are sent together after the last backoff, or after the pause that the collector
    // requested. That pause is at least as long as the longest backoff, and its random range is half as long as the
    // pause.
    let returns = many * 2.0 * 2.0 / BACKOFF;
    let of_bundles = |from, until| server.site.between(from, until);
    let of_collector = |from, until| site.between(from, until);
    let checked =
        |what: &str, seconds: &[Traffic], mean| Load::checked(what, &bounds::requests(seconds), mean, 2);
    let usual_bundles = Load::checked("polling", &bounds::requests(&of_bundles(usual, outage)), polls, 1);
    let usual_export = of_collector(outage - EXPORT / 2, outage);
    let usual_reports = checked("export", &usual_export, reports);
    let tries = Load::checked("outage", &bounds::connections(&of_bundles(outage, back)), polls, 1);
    // No bound applies, because each desktop retries quickly at first, starting with its next request.
    let retries = Load::counted(&bounds::connections(&of_collector(outage + CRASHING, back)));
    let back_bundles = Load::checked("return", &bounds::requests(&of_bundles(back, now)), polls, 1);
    let back_reports = checked("return", &of_collector(back, now), reports + returns);
    let bytes = |seconds: &[Traffic]| {
        let Traffic { received, sent, .. } = total(seconds);
        let kilo = |bytes: u64| bytes as f64 / 1e3 / seconds.len() as f64;
        format!("{:.1} kB received, {:.1} kB sent", kilo(received), kilo(sent))
    };
    vec![
        row("normal work, requests", &shown(usual_bundles), &shown(usual_reports)),
        row("normal work, bytes a second", &bytes(&of_bundles(usual, outage)), &bytes(&usual_export)),
        row("a new bundle is on all desktops", &seconds(update), ""),
        row("outage of an hour, attempts to connect", &shown(tries), &shown(retries)),
        row(
            "return, busiest second",
            &compared(back_bundles, usual_bundles),
            &compared(back_reports, usual_reports),
        ),
        row("return, until all are up to date", &seconds(updated), &seconds(drained)),
        row("entries that waited for the return", "", &format!("{backlog}, all sent")),
        row("entries in total", "", &format!("{entries}, none lost; {duplicates} duplicates removed by id")),
    ]
}

pub fn seconds(time: Duration) -> String {
    format!("{:.0} s", time.as_secs_f64())
}
