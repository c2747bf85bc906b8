//! Simulates long polling with a new bundle and a server restart.

use super::bounds::{self, Load};
use super::bundles::{BundleServer, Organization};
use super::desktops::Followers;
use super::outage::seconds;
use super::site::total;
use super::{row, shown};
use ironcurtain_bundle::PollInterval;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Long-polling timeout from the settings.
const WAIT: Duration = Duration::from_secs(5 * 60);

/// Time that the server needs to restart.
const RESTART: Duration = Duration::from_secs(10);

/// Period after an event in which its effects are measured.
const AFTER: Duration = Duration::from_secs(30 * 60);

/// Runs the simulation and returns the rows of the table.
pub async fn run(desktops: usize, organization: &Organization) -> Vec<String> {
    let interval = PollInterval { long_poll: Some(WAIT), ..PollInterval::DEFAULT };
    let server = BundleServer::start(organization.bundle(1), true);
    let followers = Followers::start(desktops, &server, &organization.public_key(), interval);
    sleep(2 * WAIT).await;

    let usual = Instant::now();
    sleep(AFTER).await;
    let published = Instant::now();
    server.publish(2, organization.bundle(2));
    followers.expect(2);
    let update = followers.updated.all(published, interval.max + WAIT).await;
    sleep(AFTER - published.elapsed()).await;
    let restart = Instant::now();
    server.site.set_up(false);
    sleep(RESTART).await;
    server.site.set_up(true);
    sleep(AFTER).await;

    let polls = desktops as f64 / (interval.max - interval.min).as_secs_f64();
    let load = |what: &str, from, until| {
        let seconds = server.site.between(from, until);
        // Every connection attempt counts, even if it is refused.
        Load::checked(what, &bounds::connections(&seconds), polls, 1)
    };
    let sent = total(&server.site.between(published, published + Duration::from_secs(1))).sent;
    vec![
        row("long polling for 5 min, requests", &shown(load("usual", usual, published)), ""),
        row(
            "a new bundle is on all desktops",
            &format!("{}, {:.0} MB sent in one second", seconds(update), sent as f64 / 1e6),
            "",
        ),
        row("half an hour after it, requests", &shown(load("new bundle", published, restart)), ""),
        row("half an hour after a restart, requests", &shown(load("restart", restart, Instant::now())), ""),
    ]
}
