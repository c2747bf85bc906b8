//! Asks the user about targets that no rule matches.
//!
//! - Connections waiting for the same target share one question. The question is withdrawn when the last of them
//!   closes.
//! - The rules are checked again after every answer, and an answer cannot override them.

use crate::BoxFuture;
use crate::host::HostPort;
use futures_util::FutureExt;
use futures_util::future::{Shared, WeakShared};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Asks the user to decide on a target.
pub trait AskHost: Send + Sync + 'static {
    /// Asks the user about one target. Dropping the future withdraws the question.
    fn ask(&self, target: HostPort) -> BoxFuture<'static, HostAnswer>;
}

/// The user's answer to a question about a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostAnswer {
    /// Allows the connections waiting for this answer, but no later connections.
    Once,
    /// The user granted access to the target. The rules are then checked again.
    Granted,
    /// Denies the connections waiting for this answer.
    Denied {
        /// Reason to show to the agent.
        why: String,
    },
}

type Question = Shared<BoxFuture<'static, HostAnswer>>;
type OpenQuestions = HashMap<HostPort, WeakShared<BoxFuture<'static, HostAnswer>>>;

/// One server's pending questions, by target.
pub(crate) struct PendingQuestions {
    ask: Arc<dyn AskHost>,
    open: Mutex<OpenQuestions>,
    timeout: Duration,
}

impl PendingQuestions {
    pub(crate) fn new(ask: Arc<dyn AskHost>, timeout: Duration) -> Self {
        Self { ask, open: Mutex::default(), timeout }
    }

    /// Asks about the target, or waits for the answer to a pending question about the same target.
    pub(crate) async fn ask(&self, target: &HostPort) -> HostAnswer {
        self.question(target).await
    }

    fn question(&self, target: &HostPort) -> Question {
        // Every update leaves the map consistent, so a poisoned lock can be used.
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let joined =
            open.get(target).and_then(WeakShared::upgrade).filter(|question| question.peek().is_none());
        if let Some(question) = joined {
            return question;
        }
        open.retain(|_, question| question.upgrade().is_some());
        let (asked, timeout) = (self.ask.ask(target.clone()), self.timeout);
        let question = async move {
            let timed_out = HostAnswer::Denied { why: "nobody answered in time".to_owned() };
            tokio::time::timeout(timeout, asked).await.unwrap_or(timed_out)
        };
        let question: BoxFuture<'static, HostAnswer> = Box::pin(question);
        let question = question.shared();
        if let Some(weak) = question.downgrade() {
            open.insert(target.clone(), weak);
        }
        question
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::watch;

    /// Simulated user who answers as a test requires, and counts the asked and withdrawn questions.
    struct Person {
        asked: AtomicUsize,
        open: Arc<AtomicUsize>,
        answer: watch::Sender<Option<HostAnswer>>,
    }

    struct OpenQuestions(Arc<AtomicUsize>);

    impl Drop for OpenQuestions {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }

    impl AskHost for Person {
        fn ask(&self, _: HostPort) -> BoxFuture<'static, HostAnswer> {
            self.asked.fetch_add(1, Ordering::SeqCst);
            self.open.fetch_add(1, Ordering::SeqCst);
            let (open, mut answer) = (OpenQuestions(self.open.clone()), self.answer.subscribe());
            Box::pin(async move {
                let _open = open;
                let answer = answer.wait_for(Option::is_some).await.unwrap();
                answer.clone().unwrap()
            })
        }
    }

    fn person() -> (Arc<Person>, PendingQuestions) {
        let answer = watch::channel(None).0;
        let person = Arc::new(Person { asked: AtomicUsize::new(0), open: Arc::default(), answer });
        (person.clone(), PendingQuestions::new(person, Duration::from_secs(60)))
    }

    fn target(text: &str) -> HostPort {
        HostPort::parse(text, None).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn connections_to_the_same_target_share_a_question() {
        let (person, questions) = person();
        let (one, other) = (target("a.test:443"), target("a.test:80"));
        let tell = async {
            tokio::task::yield_now().await;
            assert_eq!(person.asked.load(Ordering::SeqCst), 2);
            person.answer.send_replace(Some(HostAnswer::Once));
        };
        let (a, b, c, ()) =
            tokio::join!(questions.ask(&one), questions.ask(&one), questions.ask(&other), tell);
        assert_eq!([a, b, c], [HostAnswer::Once, HostAnswer::Once, HostAnswer::Once]);
        assert_eq!(questions.ask(&one).await, HostAnswer::Once);
        assert_eq!(person.asked.load(Ordering::SeqCst), 3, "an answer for one connection is not reused");
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_is_withdrawn_with_its_last_waiter_and_at_its_deadline() {
        let (person, questions) = person();
        let one = target("a.test:443");
        let open = || person.open.load(Ordering::SeqCst);
        let mut first = Box::pin(questions.ask(&one));
        let mut second = Box::pin(questions.ask(&one));
        assert!(first.as_mut().now_or_never().is_none() && second.as_mut().now_or_never().is_none());
        drop(first);
        assert_eq!(open(), 1);
        drop(second);
        assert_eq!(open(), 0);
        assert_eq!(questions.ask(&one).await, HostAnswer::Denied { why: "nobody answered in time".into() });
        assert_eq!((open(), person.asked.load(Ordering::SeqCst)), (0, 2));
    }
}
