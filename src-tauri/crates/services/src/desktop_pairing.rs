//! Pairing of a desktop with this machine. The pairing waits for this machine's user to type the desktop's code.
//!
//! - INVARIANT: a pairing accepts only one code. A wrong code makes the pairing fail.
//! - Has no clock of its own: callers pass the time.

use ironcurtain_remote::{PairingCodes, matches_code};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{TryLockError, oneshot};
use tokio::time::Instant;

/// Time without pairing questions after the attached desktop did not allow a pairing.
const QUESTION_PAUSE: Duration = Duration::from_secs(60);

/// Pairing of a desktop with this machine. Only one desktop can pair at a time.
#[derive(Debug, Default)]
pub struct DesktopPairing {
    /// Locked while a desktop is pairing.
    exclusive: tokio::sync::Mutex<()>,
    waiting: Mutex<Option<WaitingPairing>>,
    /// End of the pause after a pairing that was not allowed.
    paused_until: Mutex<Option<Instant>>,
}

/// Pairing that is waiting for this machine's user to type the desktop's code.
#[derive(Debug)]
struct WaitingPairing {
    codes: PairingCodes,
    asks_attached: bool,
    /// Receives `true` if the typed code is correct, and `false` otherwise. Closed when the pairing has ended.
    typed: oneshot::Sender<bool>,
}

/// Exclusive right to pair. The next desktop can pair once this value is dropped.
#[derive(Debug)]
pub struct PairingTurn<'a> {
    _exclusive: tokio::sync::MutexGuard<'a, ()>,
}

/// Result of typing the correct code.
#[derive(Debug, PartialEq, Eq)]
pub struct AcceptedCode {
    /// Code that the user types on the desktop.
    pub remote: String,
    /// `true` if the user of the attached desktop must also allow the pairing.
    pub asks_attached: bool,
}

/// Reason a typed code is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// No pairing is waiting for a code.
    #[error("no desktop is waiting for a code; run `ironcurtain attach` on the desktop first")]
    NotWaiting,
    /// The pending pairing has a different code. The pairing is refused.
    #[error(
        "not paired: the desktop that is pairing has another code; if you typed the code that your desktop shows, a \
         program may be between the two machines"
    )]
    Wrong,
}

/// Error for a pairing question during the pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the attached desktop did not allow a pairing in the last minute; try again in {seconds} s")]
pub struct PairingQuestionsPaused {
    seconds: u64,
}

impl DesktopPairing {
    /// Starts a pairing.
    ///
    /// # Errors
    /// Returns an error if another desktop is pairing.
    pub fn begin(&self) -> Result<PairingTurn<'_>, TryLockError> {
        Ok(PairingTurn { _exclusive: self.exclusive.try_lock()? })
    }

    /// Returns a receiver for the result when this machine's user types a code: `true` for the desktop's code, and
    /// `false` for any other.
    pub fn wait_for_code(&self, codes: PairingCodes, asks_attached: bool) -> oneshot::Receiver<bool> {
        let (typed, is_correct) = oneshot::channel();
        *self.lock_waiting() = Some(WaitingPairing { codes, asks_attached, typed });
        is_correct
    }

    /// Compares the code that this machine's user typed with the desktop's code.
    ///
    /// # Errors
    /// Returns [`CodeError`] if no pairing is waiting or the typed code is wrong.
    pub fn enter_code(&self, typed: &str) -> Result<AcceptedCode, CodeError> {
        let waiting = self.lock_waiting().take().ok_or(CodeError::NotWaiting)?;
        let is_correct = matches_code(&waiting.codes.desktop, typed);
        // Fails if the pairing has ended.
        waiting.typed.send(is_correct).map_err(|_| CodeError::NotWaiting)?;
        if !is_correct {
            return Err(CodeError::Wrong);
        }
        Ok(AcceptedCode { remote: waiting.codes.remote, asks_attached: waiting.asks_attached })
    }

    /// Checks that the user of the attached desktop may be asked about a pairing.
    ///
    /// # Errors
    /// Returns [`PairingQuestionsPaused`] for a minute after a pairing that was not allowed.
    pub fn may_ask(&self, now: Instant) -> Result<(), PairingQuestionsPaused> {
        let left = self.lock_pause().and_then(|until| until.checked_duration_since(now));
        match left.filter(|left| !left.is_zero()) {
            Some(left) => Err(PairingQuestionsPaused {
                seconds: left.as_millis().div_ceil(1000).try_into().unwrap_or(u64::MAX),
            }),
            None => Ok(()),
        }
    }

    /// Starts the pause in pairing questions.
    pub fn pause_questions(&self, now: Instant) {
        *self.lock_pause() = Some(now + QUESTION_PAUSE);
    }

    /// Ends the pause in pairing questions.
    pub fn resume_questions(&self) {
        *self.lock_pause() = None;
    }

    fn lock_waiting(&self) -> MutexGuard<'_, Option<WaitingPairing>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_pause(&self) -> MutexGuard<'_, Option<Instant>> {
        self.paused_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codes() -> PairingCodes {
        PairingCodes { desktop: "204517".to_owned(), remote: "881002".to_owned() }
    }

    #[test]
    fn a_pairing_accepts_one_code() {
        let pairing = DesktopPairing::default();
        assert_eq!(pairing.enter_code("204517"), Err(CodeError::NotWaiting));
        let mut typed = pairing.wait_for_code(codes(), false);
        assert_eq!(pairing.enter_code("204518"), Err(CodeError::Wrong));
        assert_eq!(typed.try_recv(), Ok(false));
        assert_eq!(pairing.enter_code("204517"), Err(CodeError::NotWaiting));
        let mut typed = pairing.wait_for_code(codes(), true);
        let accepted = AcceptedCode { remote: "881002".to_owned(), asks_attached: true };
        assert_eq!(pairing.enter_code("204 517"), Ok(accepted));
        assert_eq!(typed.try_recv(), Ok(true));
        assert_eq!(pairing.enter_code("204517"), Err(CodeError::NotWaiting));
        // A pairing that has ended accepts no code.
        drop(pairing.wait_for_code(codes(), false));
        assert_eq!(pairing.enter_code("204517"), Err(CodeError::NotWaiting));
    }

    #[test]
    fn one_desktop_pairs_at_a_time() {
        let pairing = DesktopPairing::default();
        let exclusive = pairing.begin().unwrap();
        assert!(pairing.begin().is_err());
        drop(exclusive);
        assert!(pairing.begin().is_ok());
    }

    #[test]
    fn after_a_question_that_was_not_allowed_none_is_asked_for_a_minute() {
        let (pairing, now) = (DesktopPairing::default(), Instant::now());
        assert_eq!(pairing.may_ask(now), Ok(()));
        pairing.pause_questions(now);
        assert_eq!(pairing.may_ask(now), Err(PairingQuestionsPaused { seconds: 60 }));
        let last = now + QUESTION_PAUSE - Duration::from_millis(1);
        let refused = pairing.may_ask(last).unwrap_err().to_string();
        let expected = "the attached desktop did not allow a pairing in the last minute; try again in 1 s";
        assert_eq!(refused, expected);
        assert_eq!(pairing.may_ask(now + QUESTION_PAUSE), Ok(()));
        pairing.pause_questions(now);
        pairing.resume_questions();
        assert_eq!(pairing.may_ask(now), Ok(()));
    }
}
