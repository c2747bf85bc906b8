//! Tracks whether the server refuses requests because the user must log in.
//!
//! - Reports at most one refusal, and one acceptance after it, for each login. A server that refuses only some requests
//!   would otherwise cause a notification for each of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Id of the user's login to the server, or `None` without a login.
pub(super) type LoginId = Option<String>;

/// Last change that was reported.
#[derive(PartialEq, Eq)]
enum LastReport {
    Nothing,
    /// The server refused a request with this login.
    Refused(LoginId),
    /// The server accepted a request. Contains the login of the preceding refusal, if there was a refusal.
    Accepted(Option<LoginId>),
}

/// State of the server's login requirement, shared by all requests of a connection.
pub(super) struct RequiredLogin {
    is_required: Arc<AtomicBool>,
    last: Mutex<LastReport>,
    /// Called with `true` for a reported refusal and with `false` for a reported acceptance.
    on_change: Box<dyn Fn(bool) + Send + Sync>,
    accepted: Notify,
}

impl RequiredLogin {
    pub(super) fn new(is_required: Arc<AtomicBool>, on_change: Box<dyn Fn(bool) + Send + Sync>) -> Self {
        Self { is_required, last: Mutex::new(LastReport::Nothing), on_change, accepted: Notify::new() }
    }

    /// Records that the server refused a request with this login because the user must log in.
    pub(super) fn refuse(&self, login: LoginId) {
        self.is_required.store(true, Ordering::Relaxed);
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = match &*last {
            LastReport::Refused(refused) | LastReport::Accepted(Some(refused)) => *refused == login,
            LastReport::Nothing | LastReport::Accepted(None) => false,
        };
        if !is_known {
            *last = LastReport::Refused(login);
            (self.on_change)(true);
        }
    }

    /// Records that the server accepted a request.
    pub(super) fn accept(&self) {
        self.is_required.store(false, Ordering::Relaxed);
        self.accepted.notify_one();
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let refused = match &mut *last {
            LastReport::Nothing => None,
            LastReport::Refused(login) => Some(login.take()),
            LastReport::Accepted(_) => return,
        };
        *last = LastReport::Accepted(refused);
        (self.on_change)(false);
    }

    /// Waits until the server accepts the next request.
    pub(super) async fn until_accepted(&self) {
        self.accepted.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_login_causes_at_most_one_report_of_a_refusal() {
        let reports = Arc::<Mutex<Vec<bool>>>::default();
        let (is_required, sink) = (Arc::<AtomicBool>::default(), reports.clone());
        let required =
            RequiredLogin::new(is_required.clone(), Box::new(move |one| sink.lock().unwrap().push(one)));
        for _ in 0..3 {
            required.accept();
            required.refuse(None);
            assert!(is_required.load(Ordering::Relaxed));
        }
        assert_eq!(std::mem::take(&mut *reports.lock().unwrap()), [false, true, false]);
        for _ in 0..3 {
            required.refuse(Some("second".to_owned()));
            required.accept();
            assert!(!is_required.load(Ordering::Relaxed));
        }
        assert_eq!(*reports.lock().unwrap(), [true, false]);
    }
}
