//! Limits the number of questions per minute and remembers recently denied calls.
//!
//! - Each session has its own limit, so a busy server does not use up another server's limit. Each client also has a
//!   limit for all its sessions together, so opening more sessions does not raise it.
//! - A question that joins a list of open questions about the agent's other servers opens no additional dialog. It
//!   counts towards the session's limit and a larger total, but not towards the client's limit.
//! - Counts only questions that the user sees, not those that were merged or decided without the user.
//! - Questions that no call caused (about a host, a workspace or sampling) can use at most half of the limit, so that a
//!   server cannot block the agent's own questions.
//! - The number of remembered clients and denials is limited. After a denial is forgotten, the same call prompts the
//!   user again.

use super::Principal;
use super::identical::hash;
use serde_json::{Map, Value};
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Time window in which questions are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Maximum number of clients to track, far more than users run. Beyond this limit, the client whose last question is
/// oldest is removed.
const MAX_CLIENTS: usize = 1000;

/// Maximum number of an agent's open questions in one list. Users would not read a longer list.
pub(super) const MAX_LISTED: usize = 20;

/// Limit for all sessions of a client, as a multiple of the limit for one session.
const SESSIONS_AT_ONCE: usize = 4;

/// Maximum number of remembered denials. Beyond this limit, the denial that expires first is removed.
const MAX_DENIED: usize = 1000;

/// Maximum duration for which a repeated call is denied without asking.
const MAX_HOLD: Duration = Duration::from_secs(64 * 60);

/// Limits on the questions that a session can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionLimits {
    /// Maximum number of questions per session per minute.
    pub per_minute: usize,
    /// Duration for which a repeated call is denied without asking after the first denial. Each further denial doubles
    /// the duration. Zero means that a repeated call always prompts the user.
    pub denial_duration: Duration,
}

/// Questions asked within the last minute, by client.
#[derive(Debug, Default)]
pub(super) struct QuestionRate(Mutex<HashMap<String, ClientRate>>);

#[derive(Debug, Default)]
struct ClientRate {
    asked: VecDeque<AskedAt>,
    /// `true` if the user was notified that the client asks too often.
    notified: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct AskedAt {
    at: Instant,
    is_for_call: bool,
    is_in_batch: bool,
    session: String,
}

/// Session that wants to ask a question.
#[derive(Debug, Clone, Copy)]
pub(super) struct QuestionSource<'a> {
    /// Key of the client.
    pub(super) client: &'a str,
    /// Id of the session.
    pub(super) session: &'a str,
    /// `true` if a call caused the question.
    pub(super) is_for_call: bool,
    /// `true` if the question joins the list of the agent's open questions.
    pub(super) is_in_batch: bool,
}

impl ClientRate {
    /// Returns the time of the question that must leave the window before the next question can be asked. Returns
    /// `None` if fewer than `limit` questions are in the window.
    fn blocking_question(&self, limit: usize, which: impl Fn(&AskedAt) -> bool) -> Option<Instant> {
        let counted: Vec<Instant> =
            self.asked.iter().filter(|asked| which(asked)).map(|asked| asked.at).collect();
        counted.len().checked_sub(limit).and_then(|at| counted.get(at).copied())
    }
}

/// Error for a session or client that has reached its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TooMany {
    /// Maximum number of questions per minute that was reached.
    pub(super) limit: usize,
    /// Time until the client may ask again.
    pub(super) wait: Duration,
    /// `true` for the first refusal since the limit was reached. The user is notified only of this refusal.
    pub(super) is_first: bool,
}

impl QuestionRate {
    /// Counts a question, unless the session or the client has reached its limit.
    ///
    /// # Errors
    /// Returns [`TooMany`] if the limit is reached. The caller must then not ask the question.
    pub(super) fn count(&self, asker: QuestionSource<'_>, now: Instant, limit: usize) -> Result<(), TooMany> {
        let QuestionSource { client, session, is_for_call, is_in_batch } = asker;
        let mut all = self.lock();
        all.retain(|_, rate| {
            rate.asked.retain(|asked| now.duration_since(asked.at) < WINDOW);
            !rate.asked.is_empty()
        });
        if all.len() >= MAX_CLIENTS && !all.contains_key(client) {
            let oldest = all.iter().min_by_key(|(_, rate)| rate.asked.back().map(|asked| asked.at));
            if let Some(oldest) = oldest.map(|(client, _)| client.clone()) {
                all.remove(&oldest);
            }
        }
        let rate = all.entry(client.to_owned()).or_default();
        let wait = |at| WINDOW.saturating_sub(now.duration_since(at));
        let is_own = |asked: &AskedAt| asked.session == session;
        let limits = [
            (limit, &is_own as &dyn Fn(&AskedAt) -> bool),
            (limit.saturating_mul(MAX_LISTED), &|_: &AskedAt| true),
            (limit.saturating_mul(SESSIONS_AT_ONCE), &|asked: &AskedAt| !asked.is_in_batch),
        ];
        for (limit, is_counted) in limits.into_iter().take(if is_in_batch { 2 } else { 3 }) {
            let share = limit.div_ceil(2);
            let is_background = |asked: &AskedAt| is_counted(asked) && !asked.is_for_call;
            if !is_for_call && let Some(at) = rate.blocking_question(share, is_background) {
                return Err(TooMany { limit: share, wait: wait(at), is_first: false });
            }
            if let Some(at) = rate.blocking_question(limit, is_counted) {
                let is_first = is_for_call && !std::mem::replace(&mut rate.notified, true);
                return Err(TooMany { limit, wait: wait(at), is_first });
            }
        }
        rate.notified = false;
        rate.asked.push_back(AskedAt { at: now, is_for_call, is_in_batch, session: session.to_owned() });
        Ok(())
    }

    /// Removes the question asked at this time from the count, because it was decided without the user.
    pub(super) fn uncount(&self, client: &str, at: Instant) {
        if let Some(rate) = self.lock().get_mut(client)
            && let Some(found) = rate.asked.iter().position(|asked| asked.at == at)
        {
            rate.asked.remove(found);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, ClientRate>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Key under which a call's denial is remembered: a hash of the client, server, tool and arguments.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct DeniedKey(pub(super) [u8; 32]);

impl DeniedKey {
    /// Returns the key of a call. The arguments are hashed as passed, so callers pass paths in canonical form.
    #[must_use]
    pub fn of(principal: &Principal, tool: &str, arguments: &Map<String, Value>) -> Self {
        let mut sorted: Vec<String> =
            arguments.iter().map(|(name, value)| format!("{name}\0{value}")).collect();
        sorted.sort_unstable();
        let identity = [&principal.client.key, &principal.server, &tool.to_owned()];
        Self(hash(identity.into_iter().chain(&sorted)))
    }
}

impl fmt::Debug for DeniedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeniedKey").finish_non_exhaustive()
    }
}

/// Recently denied calls. While a denial is remembered, the same call is denied without asking.
#[derive(Debug, Default)]
pub(super) struct DeniedCalls(Mutex<HashMap<DeniedKey, DeniedCall>>);

#[derive(Debug)]
struct DeniedCall {
    duration: Duration,
    until: Instant,
    note: Option<String>,
}

/// Denial that still applies to repeated calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RecentDenial {
    /// Time until the same call prompts the user again.
    pub(super) remaining: Duration,
    /// The user's note for the agent, if any.
    pub(super) note: Option<String>,
}

impl DeniedCalls {
    /// Returns the current denial of the call, if there is one.
    pub(super) fn find(&self, call: DeniedKey, now: Instant) -> Option<RecentDenial> {
        let all = self.lock();
        let denied = all.get(&call).filter(|denied| now < denied.until)?;
        Some(RecentDenial { remaining: denied.until.duration_since(now), note: denied.note.clone() })
    }

    /// Remembers a denial for the duration `first`, or for twice the previous duration if the call was denied before.
    pub(super) fn remember(&self, call: DeniedKey, note: Option<String>, now: Instant, first: Duration) {
        if first.is_zero() {
            return;
        }
        let mut all = self.lock();
        // Expired denials are kept for another `MAX_HOLD`, so that a retry after the expiry still doubles the
        // duration.
        all.retain(|_, denied| now < denied.until + MAX_HOLD);
        if all.len() >= MAX_DENIED && !all.contains_key(&call) {
            let next = all.iter().min_by_key(|(_, denied)| denied.until).map(|(call, _)| *call);
            next.map(|next| all.remove(&next));
        }
        let duration = all.get(&call).map_or(first, |denied| (denied.duration * 2).min(MAX_HOLD));
        all.insert(call, DeniedCall { duration, until: now + duration, note });
    }

    /// Forgets the denial of a call because the user has allowed the call.
    pub(super) fn forget(&self, call: DeniedKey) {
        self.lock().remove(&call);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<DeniedKey, DeniedCall>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn of<'a>(client: &'a str, session: &'a str) -> QuestionSource<'a> {
        QuestionSource { client, session, is_for_call: true, is_in_batch: false }
    }

    fn background(client: &str) -> QuestionSource<'_> {
        QuestionSource { is_for_call: false, ..of(client, "s") }
    }

    #[test]
    fn questions_per_minute_are_limited_and_reported_once() {
        let (rate, began) = (QuestionRate::default(), Instant::now());
        for n in 0..5 {
            rate.count(of("a", "s"), began + SECOND * n, 5).unwrap();
        }
        let at = |seconds: u32| rate.count(of("a", "s"), began + SECOND * seconds, 5);
        assert_eq!(at(10), Err(TooMany { limit: 5, wait: SECOND * 50, is_first: true }));
        assert_eq!(at(11), Err(TooMany { limit: 5, wait: SECOND * 49, is_first: false }));
        rate.count(of("b", "s"), began + SECOND * 11, 5).unwrap();
        assert_eq!(at(60), Ok(()));
        assert_eq!(at(60), Err(TooMany { limit: 5, wait: SECOND, is_first: true }));
        // Questions decided without the user are not counted.
        rate.uncount("a", began + SECOND * 60);
        assert_eq!(at(60), Ok(()));
    }

    #[test]
    fn each_session_has_its_own_limit_below_a_total_of_its_client() {
        let (rate, now) = (QuestionRate::default(), Instant::now());
        let ask = |session: &str| rate.count(of("node", session), now, 2);
        for session in ["github", "slack", "memory", "sqlite"] {
            assert_eq!((ask(session), ask(session)), (Ok(()), Ok(())), "{session}");
            assert_eq!(ask(session).unwrap_err().limit, 2);
        }
        assert_eq!(ask("fifth"), Err(TooMany { limit: 8, wait: WINDOW, is_first: false }));
        assert_eq!(rate.count(of("python", "fifth"), now, 2), Ok(()), "another client has its own total");
        // Questions that join a list count towards the session's limit, but not towards the client's limit.
        let in_list =
            |session| rate.count(QuestionSource { is_in_batch: true, ..of("node", session) }, now, 2);
        assert_eq!((in_list("fifth"), in_list("fifth")), (Ok(()), Ok(())));
        assert_eq!(in_list("fifth"), Err(TooMany { limit: 2, wait: WINDOW, is_first: true }));
        assert_eq!(in_list("github").unwrap_err().limit, 2, "its own limit is used up");
        let later = now + WINDOW;
        for session in ["a", "b", "c"] {
            let listed = QuestionSource { is_in_batch: true, ..of("node", session) };
            assert_eq!(rate.count(listed, later, 2), Ok(()));
        }
        for session in ["d", "e", "f", "g"] {
            assert_eq!(rate.count(of("node", session), later, 2), Ok(()), "{session}");
            assert_eq!(rate.count(of("node", session), later, 2), Ok(()), "{session}");
        }
        assert_eq!(rate.count(of("node", "h"), later, 2).unwrap_err().limit, 8);
        // New sessions do not raise the larger total that applies to listed questions.
        let counted = (0..).map(|n| n.to_string()).take_while(|session| {
            rate.count(QuestionSource { is_in_batch: true, ..of("node", session) }, later, 2).is_ok()
        });
        assert_eq!(counted.count(), 2 * MAX_LISTED - 11);
    }

    #[test]
    fn questions_without_a_call_use_at_most_half_of_the_limit() {
        let (rate, began) = (QuestionRate::default(), Instant::now());
        let by_itself_at = |seconds: u32, limit| rate.count(background("a"), began + SECOND * seconds, limit);
        let of_a_call = |seconds: u32, limit| rate.count(of("a", "s"), began + SECOND * seconds, limit);
        for seconds in 0..3 {
            by_itself_at(seconds, 5).unwrap();
        }
        assert_eq!(by_itself_at(10, 5), Err(TooMany { limit: 3, wait: SECOND * 50, is_first: false }));
        of_a_call(10, 5).unwrap();
        of_a_call(10, 5).unwrap();
        assert_eq!(of_a_call(10, 5), Err(TooMany { limit: 5, wait: SECOND * 50, is_first: true }));
        by_itself_at(60, 5).unwrap();
        // With a limit of one question per minute, either a call or a different cause can use it.
        assert_eq!(rate.count(background("b"), began, 1), Ok(()));
        assert_eq!(rate.count(of("c", "s"), began, 1), Ok(()));
        assert_eq!(
            rate.count(background("c"), began, 1),
            Err(TooMany { limit: 1, wait: WINDOW, is_first: false })
        );
    }

    #[test]
    fn the_number_of_counted_clients_is_limited() {
        let (rate, now) = (QuestionRate::default(), Instant::now());
        for n in 0..=MAX_CLIENTS {
            rate.count(of(&n.to_string(), "s"), now, 5).unwrap();
        }
        assert_eq!(rate.lock().len(), MAX_CLIENTS);
        rate.count(of("later", "s"), now + WINDOW, 5).unwrap();
        assert_eq!(rate.lock().len(), 1);
    }

    #[test]
    fn repeated_denials_double_and_are_forgotten_later() {
        let (denied, mut now) = (DeniedCalls::default(), Instant::now());
        let (call, other) = (DeniedKey([1; 32]), DeniedKey([2; 32]));
        for held in [60, 120, 240, 480, 960, 1920, 3840, 3840] {
            denied.remember(call, Some("no".into()), now, SECOND * 60);
            let left = denied.find(call, now).unwrap();
            assert_eq!(left, RecentDenial { remaining: SECOND * held, note: Some("no".into()) });
            assert_eq!(denied.find(other, now), None);
            now += SECOND * held;
            assert_eq!(denied.find(call, now), None, "it is asked about again");
        }
        // A retry after the expiry still doubles the duration.
        denied.remember(other, None, now, SECOND * 60);
        now += SECOND * 60 + MAX_HOLD - SECOND;
        denied.remember(other, None, now, SECOND * 60);
        assert_eq!(denied.find(other, now).unwrap().remaining, SECOND * 120);
        now += SECOND * 120 + MAX_HOLD;
        denied.remember(other, None, now, SECOND * 60);
        denied.remember(call, None, now, SECOND * 60);
        assert_eq!(denied.find(call, now).unwrap().remaining, SECOND * 60);
        denied.forget(call);
        assert_eq!(denied.find(call, now), None);
        denied.remember(call, None, now, Duration::ZERO);
        assert_eq!(denied.find(call, now), None);
    }

    #[test]
    fn too_many_denied_calls_drop_the_first_to_expire() {
        let (denied, now) = (DeniedCalls::default(), Instant::now());
        let key = |n: usize| DeniedKey(hash(std::iter::once(&n.to_string())));
        for n in 0..=MAX_DENIED {
            let at = if n == 0 { now } else { now + SECOND };
            denied.remember(key(n), None, at, SECOND * 60);
        }
        assert_eq!(denied.lock().len(), MAX_DENIED);
        assert_eq!(denied.find(key(0), now), None);
        assert!(denied.find(key(MAX_DENIED), now + SECOND).is_some());
    }
}
