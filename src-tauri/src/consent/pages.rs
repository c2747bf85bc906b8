//! Queue of pending questions on systems without a native dialog, and the page of the first question.
//!
//! - Creates no windows. Its owner reports window events and queries the current page.
//! - Each question is settled exactly once: it is answered, expires, is withdrawn or is dropped. Dropping it denies
//!   the call.
//! - No page is shown while the screen is locked or the machine sleeps. Questions stay pending and expire as usual.

use super::clock::Countdown;
use super::page::Page;
use super::view::ConsentView;
use super::{AnswerSink, DialogResult, PendingQuestion};
use ironcurtain_consent::Question;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// Minimum time between the last press on a page and the opening of the next page. Prevents the next page from
/// receiving a press meant for the previous one.
const PAGE_GAP: Duration = Duration::from_secs(1);

/// Interval between polls above which the machine is assumed to have slept, because nothing else delays a poll that
/// long.
const SLEEP_THRESHOLD: Duration = Duration::from_secs(5);

/// All pending questions.
pub(super) struct Pages {
    home: PathBuf,
    publish: watch::Sender<Vec<PendingQuestion>>,
    /// Pending questions. The page shows the first one.
    queue: VecDeque<Entry>,
    page: Option<Page>,
    /// Number of pages opened so far.
    opened: u64,
    not_before: Option<Instant>,
    mirrored: bool,
    locked: bool,
    asleep: bool,
    /// Time of the last poll, by both clocks, because on some machines the monotonic clock stops during sleep.
    last_poll: Option<(Instant, SystemTime)>,
}

struct Entry {
    view: ConsentView,
    sink: Box<dyn AnswerSink>,
    countdown: Countdown,
    pending: PendingQuestion,
}

impl Pages {
    pub(super) fn new(home: PathBuf, publish: watch::Sender<Vec<PendingQuestion>>) -> Self {
        Self {
            home,
            publish,
            queue: VecDeque::new(),
            page: None,
            opened: 0,
            not_before: None,
            mirrored: false,
            locked: false,
            asleep: false,
            last_poll: None,
        }
    }

    pub(super) fn ask(&mut self, question: &Question, sink: Box<dyn AnswerSink>, now: Instant) {
        let view = ConsentView::new(question, &self.home);
        let countdown = Countdown::new(view.deadline, now);
        let pending = PendingQuestion::new(question, &view, view.deadline);
        self.queue.push_back(Entry { view, sink, countdown, pending });
    }

    /// Settles a question, with an answer if there is a result.
    pub(super) fn end(&mut self, id: &str, result: Option<DialogResult>) {
        let Some(at) = self.queue.iter().position(|entry| entry.view.id == id) else { return };
        if let Some(page) = self.page.take_if(|page| page.id() == id) {
            self.not_before = page.pressed().map(|pressed| pressed + PAGE_GAP);
            self.mirrored = page.is_mirrored();
        }
        if let Some(entry) = self.queue.remove(at)
            && let Some(DialogResult::Answered(answer)) = result
        {
            entry.sink.answer(answer);
        }
    }

    pub(super) fn set_locked(&mut self, locked: bool) {
        self.locked = locked;
        self.hide_while_away();
    }

    pub(super) fn set_asleep(&mut self, asleep: bool) {
        self.asleep = asleep;
        self.hide_while_away();
    }

    fn is_away(&self) -> bool {
        self.locked || self.asleep
    }

    fn hide_while_away(&mut self) {
        if self.is_away() {
            self.close_page();
        }
    }

    /// Closes the page. The next page starts unarmed.
    fn close_page(&mut self) {
        if let Some(page) = self.page.take() {
            self.mirrored = page.is_mirrored();
        }
    }

    /// Settles expired questions, closes a page that was open during sleep, and opens the next page if possible.
    /// Returns the open page.
    pub(super) fn poll(&mut self, now: Instant, wall: SystemTime) -> Option<&mut Page> {
        if let Some((then, wall_then)) = self.last_poll.replace((now, wall)) {
            let by_wall = wall.duration_since(wall_then).unwrap_or_default();
            if by_wall.max(now.saturating_duration_since(then)) > SLEEP_THRESHOLD {
                // Not every system reports sleep, so it is detected here.
                self.close_page();
            }
        }
        let late = self.page.as_mut().and_then(|page| Some((page.id().to_owned(), page.expire(now)?)));
        if let Some((id, result)) = late {
            self.end(&id, Some(result));
        }
        self.begin(now);
        self.publish_list();
        self.page.as_mut()
    }

    fn begin(&mut self, now: Instant) {
        if self.page.is_some() || self.is_away() || self.not_before.is_some_and(|moment| now < moment) {
            return;
        }
        while self.queue.front().is_some_and(|first| first.countdown.has_expired(now)) {
            self.queue.pop_front();
        }
        if let Some(first) = self.queue.front() {
            self.opened += 1;
            let (view, countdown) = (first.view.clone(), first.countdown.clone());
            self.page = Some(Page::new(self.opened, view, countdown, !self.mirrored, now));
        }
    }

    /// Publishes the list of pending questions.
    fn publish_list(&mut self) {
        let more = self.queue.len().saturating_sub(1);
        if let Some(page) = &mut self.page {
            page.set_more(more);
        }
        let all: Vec<PendingQuestion> = self.queue.iter().map(|entry| entry.pending.clone()).collect();
        self.publish.send_if_modified(|shown| {
            let changed = *shown != all;
            *shown = all;
            changed
        });
    }

    /// Returns the open page.
    pub(super) fn page(&mut self) -> Option<&mut Page> {
        self.page.as_mut()
    }

    /// Restarts the countdowns of all questions, because the user answers the questions one after another.
    pub(super) fn prolong_all(&mut self, now: Instant) {
        for entry in &mut self.queue {
            entry.countdown.record_activity(now);
            entry.pending.prolong(entry.countdown.left(now));
            entry.sink.report_activity();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::consent::page::{PageEvent, Reach};
    use crate::consent::view::tests::question;
    use ironcurtain_consent::{Answer, DenialReach};
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Sink(Arc<Mutex<Vec<Answer>>>);

    impl AnswerSink for Sink {
        fn answer(self: Box<Self>, answer: Answer) {
            self.0.lock().unwrap().push(answer);
        }

        fn report_activity(&self) {}
    }

    /// Pages with clocks controlled by the test.
    struct Scene {
        pages: Pages,
        waiting: watch::Receiver<Vec<PendingQuestion>>,
        now: Instant,
        wall: SystemTime,
        sink: Sink,
    }

    impl Scene {
        fn new() -> Self {
            let (publish, waiting) = watch::channel(Vec::new());
            let pages = Pages::new("/home/ada".into(), publish);
            Self { pages, waiting, now: Instant::now(), wall: SystemTime::now(), sink: Sink::default() }
        }

        fn ask(&mut self, id: &str) {
            let question = Question { id: id.to_owned(), ..question() };
            self.pages.ask(&question, Box::new(self.sink.clone()), self.now);
        }

        /// Polls after advancing both clocks by these durations.
        fn after(&mut self, ms: u64, wall_ms: u64) -> Option<String> {
            self.now += Duration::from_millis(ms);
            self.wall += Duration::from_millis(wall_ms);
            self.pages.poll(self.now, self.wall).map(|page| page.id().to_owned())
        }
    }

    #[test]
    fn no_page_is_shown_while_locked_or_asleep() {
        let away: [fn(&mut Pages, bool); 2] = [Pages::set_locked, Pages::set_asleep];
        for away in away {
            let mut scene = Scene::new();
            scene.ask("q1");
            assert_eq!(scene.after(0, 0).as_deref(), Some("q1"));
            away(&mut scene.pages, true);
            assert!(scene.pages.page().is_none());
            assert_eq!(scene.after(200, 200), None);
            assert_eq!(scene.waiting.borrow().len(), 1, "it still waits");
            scene.ask("q2");
            away(&mut scene.pages, false);
            assert_eq!(scene.after(200, 200).as_deref(), Some("q1"));
            assert!(scene.sink.0.lock().unwrap().is_empty());
        }
    }

    #[test]
    fn a_question_times_out_behind_a_lock_screen() {
        let mut scene = Scene::new();
        scene.ask("q1");
        scene.pages.set_locked(true);
        // Exceeds the question's time limit in steps too short to count as sleep.
        for _ in 0..60 {
            assert_eq!(scene.after(2_000, 2_000), None);
        }
        scene.pages.set_locked(false);
        assert_eq!(scene.after(200, 200), None);
        assert_eq!(Arc::strong_count(&scene.sink.0), 1, "its sink is dropped, which denies");
    }

    #[test]
    fn sleep_replaces_the_page() {
        for (ms, wall_ms, is_new, why) in [
            (200, 200, false, "awake"),
            (4_000, 4_000, false, "slow"),
            (200, 3_600_000, true, "one clock stood still"),
            (9_000, 9_000, true, "both went on"),
        ] {
            let mut scene = Scene::new();
            scene.ask("q1");
            scene.after(0, 0);
            let which =
                |scene: &mut Scene| scene.pages.page().map(|page| (page.number(), page.is_mirrored()));
            let before = which(&mut scene).unwrap();
            assert_eq!(scene.after(ms, wall_ms).as_deref(), Some("q1"), "{why}");
            let now = which(&mut scene).unwrap();
            // Allow is at a different position on a new page.
            assert_eq!((now.0 != before.0, now.1 != before.1), (is_new, is_new), "{why}");
        }
    }

    #[test]
    fn the_next_page_waits_after_a_press_and_withdrawn_questions_close() {
        let mut scene = Scene::new();
        scene.ask("q1");
        scene.ask("q2");
        scene.after(0, 0);
        let no = Answer::Deny { note: None, reach: DenialReach::Call };
        let deny = PageEvent::Deny { note: String::new(), reach: Reach::Call };
        let now = scene.now;
        let (result, _) = scene.pages.page().unwrap().on(0, deny, now);
        scene.pages.end("q1", result);
        assert_eq!(*scene.sink.0.lock().unwrap(), [no]);
        assert_eq!(scene.after(900, 900), None);
        assert_eq!(scene.after(200, 200).as_deref(), Some("q2"));
        scene.pages.end("q2", None);
        assert_eq!((scene.after(2_000, 2_000), scene.waiting.borrow().len()), (None, 0));
        assert_eq!(scene.sink.0.lock().unwrap().len(), 1);
    }
}
