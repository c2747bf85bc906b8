//! Runs blocking work on separate threads so that work that hangs delays neither other work nor shutdown.

use std::time::Duration;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Maximum time to wait for one job.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of jobs that are still running after their time limit. At this limit, new jobs are refused.
const MAX_OVERDUE: usize = 4;

/// Runs work on a new thread. The channel closes without a result if the work panics or no thread can be spawned.
pub(super) fn spawn_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> oneshot::Receiver<T> {
    let (send, done) = oneshot::channel();
    let thread = std::thread::Builder::new().name("spawn_thread".to_owned());
    let started = thread.spawn(move || {
        // Sending fails if the caller has stopped waiting.
        let _ = send.send(work());
    });
    if let Err(problem) = started {
        tracing::error!(%problem, "failed to spawn a thread");
    }
    done
}

/// Runs blocking jobs with a time limit.
#[derive(Default)]
pub(super) struct BoundedWork {
    overdue: JoinSet<()>,
}

impl BoundedWork {
    /// Runs a job. Returns `None` if it exceeds the time limit or panics, or if too many jobs are overdue.
    pub(super) async fn run<T: Send + 'static>(
        &mut self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        if self.overdue.len() >= MAX_OVERDUE {
            return None;
        }
        let mut done = spawn_thread(work);
        match timeout(TIMEOUT, &mut done).await {
            Ok(done) => done.ok(),
            Err(_) => {
                self.overdue.spawn(async move { drop(done.await) });
                None
            }
        }
    }

    /// Completes when an overdue job has finished.
    pub(super) async fn job_finished(&mut self) {
        if self.overdue.join_next().await.is_none() {
            std::future::pending().await
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    /// Returns a job that blocks until the sender is used or dropped.
    fn hanging() -> (mpsc::Sender<()>, impl FnOnce() -> bool + Send) {
        let (go, wait) = mpsc::channel();
        (go, move || wait.recv().is_ok())
    }

    #[tokio::test(start_paused = true)]
    async fn hanging_work_times_out_and_delays_nothing_else() {
        let mut bounded = BoundedWork::default();
        let mut held = Vec::new();
        for _ in 0..MAX_OVERDUE {
            let (go, work) = hanging();
            held.push(go);
            assert_eq!(bounded.run(work).await, None);
            let next = if held.len() < MAX_OVERDUE { Some(1) } else { None };
            assert_eq!(done(&mut bounded).await, next);
        }
        held.pop().unwrap().send(()).unwrap();
        bounded.job_finished().await;
        assert_eq!(done(&mut bounded).await, Some(1));
    }

    #[tokio::test]
    async fn panicking_work_returns_nothing() {
        let mut bounded = BoundedWork::default();
        let panicking = || -> u8 { panic!("expected by the test") };
        assert_eq!(bounded.run(panicking).await, None);
        assert_eq!(bounded.run(|| 1).await, Some(1));
    }

    /// Runs a job with the real clock instead of the paused one.
    async fn done(bounded: &mut BoundedWork) -> Option<u8> {
        tokio::time::resume();
        let done = bounded.run(|| 1).await;
        tokio::time::pause();
        done
    }
}
