//! Tests expiry when the two clocks disagree.

use super::*;
use ironcurtain_audit::clock::Moment;
use std::sync::atomic::AtomicI64;
use std::sync::atomic::Ordering::SeqCst;

/// Clocks that the test controls. Values are milliseconds since the clocks were first read.
#[derive(Clone, Default)]
struct TestClock(Arc<(AtomicI64, AtomicI64)>);

impl TestClock {
    const WALL: i64 = 1_700_000_000_000;
    const BOOT: i64 = 50_000;

    fn clock(&self, boot: &str) -> Clock {
        let test_clock = self.0.clone();
        Clock::new(boot, move || Moment {
            wall_ms: u64::try_from(Self::WALL + test_clock.0.load(SeqCst)).unwrap(),
            boot_ms: u64::try_from(Self::BOOT + test_clock.1.load(SeqCst)).unwrap(),
        })
    }

    /// Advances both clocks.
    fn pass(&self, ms: i64) {
        self.0.0.fetch_add(ms, SeqCst);
        self.0.1.fetch_add(ms, SeqCst);
    }

    /// Sets only the wall clock, as a user can.
    fn set_wall(&self, ms: i64) {
        self.0.0.fetch_add(ms, SeqCst);
    }
}

const MINUTE: i64 = 60_000;

#[tokio::test]
async fn a_grant_is_in_force_only_while_both_clocks_allow_it() {
    let quarter = |id: &str, test_clock: &TestClock| StandingGrant {
        expires_ms: Some(test_clock.clock("b").now().wall_ms + 15 * 60_000),
        ..grant(id, Lifetime::QuarterHour, None)
    };
    let holds = |grants: &Grants| grants.are_active(&["q".into()]);
    for (name, turn, still) in [
        ("set back by a day, 14 minutes later", (-1440, 14), true),
        ("set back by a day, 15 minutes later", (-1440, 15), false),
        ("set forward by 15 minutes", (15, 0), false),
        ("set forward by 5 minutes, 9 minutes later", (5, 9), true),
        ("set forward by 5 minutes, 10 minutes later", (5, 10), false),
    ] {
        let (fixture, test_clock) = (TestStore::new(), TestClock::default());
        let grants = fixture.open_by(test_clock.clock("b"));
        give(&grants, &[quarter("q", &test_clock), grant("always", Lifetime::Always, None)]).await;
        test_clock.set_wall(turn.0 * MINUTE);
        test_clock.pass(turn.1 * MINUTE);
        assert_eq!(holds(&grants), still, "{name}");
        assert!(grants.are_active(&["always".into()]));
        // The list shows the earlier expiry time, and omits grants that have expired.
        let now = test_clock.clock("b").now().wall_ms;
        let left = grants.for_display().iter().find_map(|grant| grant.expires_ms).map(|ends| ends - now);
        assert_eq!(left.is_some(), still, "{name}");
        assert!(left.is_none_or(|left| left <= 15 * 60_000), "{name}: {left:?}");
        grants.close().await;
        // The same applies after a restart of the trusted process, and after a reboot, which sets the boot clock to
        // zero.
        for boot in ["b", "another"] {
            assert_eq!(holds(&fixture.open_by(test_clock.clock(boot))), still, "{name}, restarted in {boot}");
        }
    }
}

#[tokio::test]
async fn a_reboot_with_a_clock_set_back_extends_no_grant() {
    let (fixture, test_clock) = (TestStore::new(), TestClock::default());
    let grants = fixture.open_by(test_clock.clock("one"));
    let ends = test_clock.clock("one").now().wall_ms + 15 * 60_000;
    give(&grants, &[StandingGrant { expires_ms: Some(ends), ..grant("q", Lifetime::QuarterHour, None) }])
        .await;
    test_clock.pass(10 * MINUTE);
    grants.close().await;
    test_clock.set_wall(-600 * MINUTE);
    for boot in ["two", "three"] {
        let grants = fixture.open_by(test_clock.clock(boot));
        assert!(grants.are_active(&["q".into()]));
        test_clock.pass(2 * MINUTE);
        grants.close().await;
    }
    let grants = fixture.open_by(test_clock.clock("four"));
    assert!(grants.are_active(&["q".into()]));
    test_clock.pass(MINUTE);
    assert!(!grants.are_active(&["q".into()]));
}

#[tokio::test]
async fn a_maximum_lifetime_applies_to_existing_and_new_grants() {
    let (fixture, test_clock) = (TestStore::new(), TestClock::default());
    let grants = fixture.open_by(test_clock.clock("b"));
    let now = || test_clock.clock("b").now().wall_ms;
    let always =
        |id: &str, session| StandingGrant { created_ms: now(), ..grant(id, Lifetime::Always, session) };
    give(&grants, &[always("old", None)]).await;
    give(&grants, &[always("session", Some("s"))]).await;
    test_clock.pass(5 * MINUTE);
    grants.limit(Some(Duration::from_secs(10 * 60)));
    give(&grants, &[always("new", None)]).await;
    assert_eq!(ids(&grants), ["old", "session", "new"]);
    test_clock.pass(5 * MINUTE);
    for (id, holds) in [("old", false), ("session", false), ("new", true)] {
        assert_eq!(grants.are_active(&[id.into()]), holds, "{id}");
    }
    // Setting the wall clock back does not extend a grant.
    test_clock.set_wall(-60 * MINUTE);
    test_clock.pass(5 * MINUTE);
    assert!(!grants.are_active(&["new".into()]));
    grants.close().await;
    // A lower limit ends a grant at once. Without a limit, new grants do not expire.
    let grants = fixture.open_by(test_clock.clock("b"));
    grants.limit(None);
    give(&grants, &[always("later", None)]).await;
    test_clock.pass(60 * MINUTE);
    assert!(grants.are_active(&["later".into()]));
    grants.limit(Some(Duration::from_secs(60)));
    assert!(!grants.are_active(&["later".into()]) && ids(&grants).is_empty());
}

#[tokio::test]
async fn a_maximum_lifetime_applies_after_a_reboot_with_a_clock_set_back() {
    let (fixture, test_clock) = (TestStore::new(), TestClock::default());
    let grants = fixture.open_by(test_clock.clock("one"));
    let created_ms = test_clock.clock("one").now().wall_ms;
    give(&grants, &[StandingGrant { created_ms, ..grant("a", Lifetime::Always, None) }]).await;
    grants.close().await;
    test_clock.set_wall(-600 * MINUTE);
    let grants = fixture.open_by(test_clock.clock("two"));
    grants.limit(Some(Duration::from_secs(10 * 60)));
    test_clock.pass(9 * MINUTE);
    assert!(grants.are_active(&["a".into()]));
    test_clock.pass(MINUTE);
    assert!(!grants.are_active(&["a".into()]));
}
