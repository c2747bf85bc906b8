//! What the trusted process waits for when it ends: every sandbox until its last word is heard.
//!
//! - INVARIANT: whoever owns a sandbox, or still listens to one, has an [`Awaited`] for as long as that is so.

use tokio::sync::watch;

/// All that is waited for.
#[derive(Debug, Clone)]
pub(crate) struct LastWords(watch::Sender<usize>);

/// One that is waited for, until it is dropped.
#[derive(Debug)]
pub(crate) struct Awaited(LastWords);

impl Default for LastWords {
    fn default() -> Self {
        Self(watch::Sender::new(0))
    }
}

impl LastWords {
    /// One more.
    pub(crate) fn awaited(&self) -> Awaited {
        self.0.send_modify(|count| *count += 1);
        Awaited(self.clone())
    }

    /// Waits until there is none.
    pub(crate) async fn heard(&self) {
        // It cannot fail: the sender is ours.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await.is_ok();
    }
}

impl Clone for Awaited {
    fn clone(&self) -> Self {
        self.0.awaited()
    }
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_last_one_is_waited_for() {
        let words = LastWords::default();
        words.heard().await;
        let one = words.awaited();
        let other = one.clone();
        drop(one);
        assert_eq!(*words.0.borrow(), 1);
        let heard = tokio::spawn({
            let words = words.clone();
            async move { words.heard().await }
        });
        tokio::task::yield_now().await;
        assert!(!heard.is_finished());
        drop(other);
        heard.await.unwrap();
        assert_eq!(*words.0.borrow(), 0);
    }
}
