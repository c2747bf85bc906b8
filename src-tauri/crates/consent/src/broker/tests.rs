//! Tests each [`QuestionOutcome`].

use super::super::tests::{broker, question, scope};
use super::*;

/// Front end that stores the slots, so that the test can answer them.
#[derive(Default)]
struct Kept {
    slots: Mutex<Vec<AnswerSlot>>,
    withdrawn: Mutex<Vec<(String, WithdrawalReason)>>,
}

impl Consent for Kept {
    fn ask(&self, _: Question, slot: AnswerSlot) {
        self.slots.lock().unwrap().push(slot);
    }
    fn withdraw(&self, question: &str, why: WithdrawalReason) {
        self.withdrawn.lock().unwrap().push((question.into(), why));
    }
}

async fn asked(
    with: impl FnOnce(AnswerSlot) + Send + 'static,
) -> (QuestionOutcome, Vec<(String, WithdrawalReason)>) {
    let kept = Arc::new(Kept::default());
    let (broker, scope) = (broker(kept.clone()), scope());
    let ask = broker.ask(question("q"), &scope, std::future::pending());
    let answer = async {
        tokio::task::yield_now().await;
        assert_eq!(*broker.open().borrow(), 1);
        with(kept.slots.lock().unwrap().pop().unwrap());
    };
    let (outcome, ()) = tokio::join!(ask, answer);
    assert_eq!(*broker.open().borrow(), 0);
    let withdrawn = kept.withdrawn.lock().unwrap().clone();
    (outcome, withdrawn)
}

#[tokio::test(start_paused = true)]
async fn only_an_offered_answer_allows() {
    let allow = |offer, lifetime| asked(move |slot| slot.answer(Answer::Allow { offer, lifetime }));
    let allowed = QuestionOutcome::Allowed { offer: 0, lifetime: Lifetime::Once };
    assert_eq!(allow(0, Lifetime::Once).await, (allowed, vec![]));
    assert_eq!(allow(0, Lifetime::Always).await.0, QuestionOutcome::Closed);
    assert_eq!(allow(7, Lifetime::Once).await.0, QuestionOutcome::Closed);
    assert_eq!(asked(drop).await, (QuestionOutcome::Closed, vec![]));
    let (note, reach) = (Some("ask me tomorrow".to_owned()), DenialReach::Call);
    let no = Answer::Deny { note: note.clone(), reach };
    assert_eq!(asked(|slot| slot.answer(no)).await.0, QuestionOutcome::Denied { note, reach });
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_is_withdrawn_at_its_deadline() {
    let kept = Arc::new(Kept::default());
    let began = Instant::now();
    let outcome = broker(kept.clone()).ask(question("q"), &scope(), std::future::pending()).await;
    assert_eq!((outcome, began.elapsed()), (QuestionOutcome::TimedOut, Duration::from_secs(45)));
    assert_eq!(*kept.withdrawn.lock().unwrap(), [("q".to_owned(), WithdrawalReason::Deadline)]);
}

#[tokio::test(start_paused = true)]
async fn working_in_the_dialog_restarts_the_deadline_up_to_a_limit() {
    let kept = Arc::new(Kept::default());
    let (broker, scope) = (broker(kept.clone()), scope());
    let began = Instant::now();
    let work = async {
        loop {
            tokio::time::sleep(Duration::from_secs(20)).await;
            kept.slots.lock().unwrap()[0].report_activity();
        }
    };
    tokio::select! {
        outcome = broker.ask(question("q"), &scope, std::future::pending()) => assert_eq!(outcome, QuestionOutcome::TimedOut),
        () = work => unreachable!(),
    }
    assert_eq!(began.elapsed(), MAX_DURATION);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_withdraws_its_question() {
    let kept = Arc::new(Kept::default());
    let (broker, scope) = (broker(kept.clone()), scope());
    tokio::select! {
        biased;
        _ = broker.ask(question("q"), &scope, std::future::pending()) => unreachable!(),
        () = tokio::time::sleep(Duration::from_secs(1)) => {}
    }
    assert_eq!(*kept.withdrawn.lock().unwrap(), [("q".to_owned(), WithdrawalReason::Cancelled)]);
    let settled = broker.ask(question("r"), &scope, std::future::ready(())).await;
    assert_eq!((settled, *broker.open().borrow()), (QuestionOutcome::Settled, 0));
}

#[tokio::test(start_paused = true)]
async fn a_stop_withdraws_the_question_and_wins_over_a_simultaneous_answer() {
    let kept = Arc::new(Kept::default());
    let (broker, scope) = (broker(kept.clone()), scope());
    let stop = async {
        tokio::task::yield_now().await;
        let slot = kept.slots.lock().unwrap().pop().unwrap();
        slot.answer(Answer::Allow { offer: 0, lifetime: Lifetime::Once });
        assert!(broker.stops().pause("s"));
    };
    let (outcome, ()) = tokio::join!(broker.ask(question("q"), &scope, std::future::pending()), stop);
    assert_eq!(outcome, QuestionOutcome::Stopped(Stop::Paused));
    assert_eq!(*kept.withdrawn.lock().unwrap(), [("q".to_owned(), WithdrawalReason::Stopped)]);
    assert!(broker.open_questions().is_empty());
}

#[tokio::test(start_paused = true)]
async fn matching_questions_are_denied_together_with_separate_outcomes() {
    let kept = Arc::new(Kept::default());
    let (broker, scope) = (broker(kept.clone()), scope());
    let of = |id: &str, session: &str| Question { session: session.into(), ..question(id) };
    let ask = |asked: Question| broker.ask(asked, &scope, std::future::pending());
    let deny = async {
        tokio::task::yield_now().await;
        let mut slots = std::mem::take(&mut *kept.slots.lock().unwrap());
        // A simultaneous approval loses to the denial.
        slots.remove(0).answer(Answer::Allow { offer: 0, lifetime: Lifetime::Once });
        let denied = broker.deny(|question| question.session == "s", Some("not now"));
        assert_eq!(denied, ["one", "two"]);
        assert_eq!(broker.deny(|question| question.session == "s", None), [""; 0], "once");
        slots.remove(1).answer(Answer::Allow { offer: 0, lifetime: Lifetime::Once });
    };
    let (one, two, other, ()) =
        tokio::join!(ask(of("one", "s")), ask(of("two", "s")), ask(of("other", "t")), deny);
    let no = QuestionOutcome::Denied { note: Some("not now".into()), reach: DenialReach::Call };
    assert_eq!((one, two), (no.clone(), no));
    assert_eq!(other, QuestionOutcome::Allowed { offer: 0, lifetime: Lifetime::Once });
    let withdrawn = kept.withdrawn.lock().unwrap().clone();
    assert_eq!(
        withdrawn,
        [("one".to_owned(), WithdrawalReason::Stopped), ("two".to_owned(), WithdrawalReason::Stopped)]
    );
    assert!(broker.open_questions().is_empty());
}

#[test]
fn an_agent_is_identified_by_its_process_not_its_name() {
    let of = |session: &str, pid: Option<u32>| {
        let mut asked = Question { session: session.into(), ..question("q") };
        let exe = Some("/usr/bin/claude".into());
        let process = |pid| ironcurtain_protocol::ProcessView { pid, exe, name: "claude".into() };
        asked.client.chain = pid.map(process).into_iter().collect();
        asked
    };
    let one = of("one", Some(7));
    assert!(one.is_of_same_agent(&of("one", Some(8))) && one.is_of_same_agent(&of("two", Some(7))));
    assert!(!one.is_of_same_agent(&of("two", Some(8))));
    let mut taken_over = of("two", Some(7));
    taken_over.client.chain[0].exe = Some("/tmp/other".into());
    assert!(!one.is_of_same_agent(&taken_over), "the process id was reused by another program");
    assert!(!of("one", None).is_of_same_agent(&of("two", None)), "unidentified clients are never the same");
}

#[tokio::test(start_paused = true)]
async fn a_question_joins_the_list_of_its_agents_other_servers() {
    let of = |id: &str, session: &str, server: &str, file: &str| {
        let process = ironcurtain_protocol::ProcessView { pid: 7, exe: None, name: "claude".into() };
        let mut asked = Question { session: session.into(), server: server.into(), ..question(id) };
        asked.client.chain = vec![process];
        asked.consequences[0].object = vec![super::super::TextPart::Path(file.into())];
        asked
    };
    let (broker, scope) = (broker(Arc::new(Kept::default())), scope());
    let mut waits = std::task::Context::from_waker(std::task::Waker::noop());
    let new = of("new", "s2", "git", "/home/u/b.txt");
    assert!(!broker.can_join_batch(&new), "no question is open");
    let open = |question: Question| {
        let (broker, scope) = (broker.clone(), &scope);
        async move { broker.ask(question, scope, std::future::pending()).await }
    };
    let mut first = Box::pin(open(of("one", "s1", "filesystem", "/home/u/a.txt")));
    assert!(first.as_mut().poll(&mut waits).is_pending());
    assert!(broker.can_join_batch(&new));
    assert!(!broker.can_join_batch(&of("new", "s2", "filesystem", "/home/u/b.txt")), "the same server");
    let mut other = new.clone();
    other.client.chain[0].pid = 8;
    assert!(!broker.can_join_batch(&other), "another agent");
    let alone = Question { fits_a_batch: false, ..new.clone() };
    assert!(!broker.can_join_batch(&alone), "it must be answered alone");
    let mut more: Vec<_> = (1..MAX_LISTED)
        .map(|n| Box::pin(open(of(&n.to_string(), "s3", "time", &format!("/home/u/{n}")))))
        .collect();
    for asked in &mut more {
        assert!(broker.can_join_batch(&new));
        assert!(asked.as_mut().poll(&mut waits).is_pending());
    }
    assert!(!broker.can_join_batch(&new), "the list is full");
    drop(first);
    assert!(broker.can_join_batch(&new));
}
