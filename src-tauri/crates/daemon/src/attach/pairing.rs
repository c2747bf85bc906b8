//! Remote machine's side of pairing.
//!
//! - INVARIANT: a desktop pairs only after this machine's user has typed its code. Each pairing allows one attempt.
//! - The first desktop pairs only while no session is active, because an agent could pretend to be a desktop.
//! - INVARIANT: every further desktop needs consent from an attached desktop or from root.

use super::{AttachError, MessageStream, SILENCE_TIMEOUT, record};
use crate::daemon_state::DaemonState;
use ironcurtain_consent::{
    Consequence, DenialScope, Lifetime, Offer, Question, QuestionOutcome, Reach, TextPart, Verb,
};
use ironcurtain_paths::random_name;
use ironcurtain_protocol::ClientView;
use ironcurtain_remote::{
    ChannelBinding, Commitment, FromDesktop, FromRemote, Nonce, PairedKeys, PairingCodes, PeerKey,
    ROOT_DESKTOPS, is_valid_name, pairing_codes, permitted_desktops,
};
use ironcurtain_services::{DesktopPairing, PairingQuestionsPaused};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// Maximum time for a user to type a code.
const CODE_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Refusal if a wrong code was typed on this machine.
const WRONG_CODE: &str = "not paired: a wrong code was typed on the remote machine; if it was the code that this desktop \
                          shows, a program may be between the two machines";

/// Refusal if no code was typed on this machine.
const NO_CODE: &str = "nobody ran `ironcurtain pair` on this machine within five minutes";

/// Refusal if no code was typed on the desktop.
const NO_CONFIRMATION: &str =
    "the code from `ironcurtain pair` was not typed on the desktop within five minutes";

/// Refusal if the desktop confirms a pairing too early.
const CONFIRMED_TOO_EARLY: &str =
    "the desktop confirmed the pairing before its code was typed on this machine";

/// Pairing of a desktop with this machine.
pub(super) struct Pairing<'a> {
    pub(super) state: &'a Arc<DaemonState>,
    /// Keys of the desktop and of this machine.
    pub(super) keys: (PeerKey, PeerKey),
    pub(super) binding: ChannelBinding,
    /// Name that the desktop claims to have.
    pub(super) name: &'a str,
}

/// Consent that a pairing needs in addition to the desktop's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequiredConsent {
    Nothing,
    AttachedDesktop,
}

impl Pairing<'_> {
    /// Pairs with the desktop after the user has typed the desktop's code on this machine, and then this machine's code
    /// on the desktop. No code passes through the connection, because a program between the two sides could replace it.
    pub(super) async fn perform(
        &self,
        wire: &mut MessageStream,
        commitment: &Commitment,
    ) -> Result<(), AttachError> {
        let services = &self.state.services;
        let Ok(_one_at_a_time) = services.desktop.pairing.begin() else {
            return Err(AttachError::temporary_refusal("another desktop is pairing; wait until it is done"));
        };
        let store = PairedKeys::new(services.home.desktops());
        let required = self.required_consent(&store.read()?)?;
        if required == RequiredConsent::AttachedDesktop {
            let is_paused = |paused: PairingQuestionsPaused| AttachError::final_refusal(paused.to_string());
            services.desktop.pairing.may_ask(Instant::now()).map_err(is_paused)?;
        }
        let ours = Nonce::generate()?;
        wire.send(&FromRemote::Nonce { nonce: ours.clone() }).await?;
        let revealed = timeout(SILENCE_TIMEOUT, wire.next()).await.map_err(|_| AttachError::TimedOut)??;
        let FromDesktop::Reveal { nonce } = revealed else { return Err(AttachError::Unexpected) };
        commitment.check(&nonce)?;
        let codes = pairing_codes(self.binding, self.keys, (&nonce, &ours));
        wait_for_typed_code(&services.desktop.pairing, wire, codes.clone(), required).await?;
        let consent = async {
            match required {
                RequiredConsent::Nothing => Ok(()),
                RequiredConsent::AttachedDesktop => self.ask(&codes.desktop).await,
            }
        };
        // The question is withdrawn if the desktop disconnects.
        tokio::try_join!(consent, wait_for_confirmation(wire))?;
        // Checks again, because the user can take minutes to type the codes.
        if self.required_consent(&store.read()?)? != required {
            return Err(AttachError::final_refusal(
                "another desktop was paired with this machine in the meantime",
            ));
        }
        let key = self.keys.0.to_string();
        let short = key.get(..8).unwrap_or_default();
        let name = if is_valid_name(self.name) { self.name } else { "desktop" };
        record(services, format!("paired with the desktop {name}, key {key}")).await?;
        store.add(&format!("{name} ({short})"), self.keys.0)?;
        wire.send(&FromRemote::Paired).await
    }

    fn required_consent(&self, paired: &BTreeMap<String, PeerKey>) -> Result<RequiredConsent, AttachError> {
        let desktop = self.keys.0;
        if paired.values().any(|known| *known == desktop) || is_permitted(desktop)? {
            return Ok(RequiredConsent::Nothing);
        }
        if !paired.is_empty() {
            if self.state.services.desktop.is_attached() {
                return Ok(RequiredConsent::AttachedDesktop);
            }
            return Err(AttachError::final_refusal(format!(
                "another desktop is paired with this machine, and has to allow this one: attach it first, or add \
                 the line `\"NAME\": \"{desktop}\"` to the JSON object in `{ROOT_DESKTOPS}` as root"
            )));
        }
        if !self.state.is_idle() {
            return Err(AttachError::final_refusal(
                "sessions are active on this machine; close every agent there before you pair its first desktop",
            ));
        }
        Ok(RequiredConsent::Nothing)
    }

    /// Asks the user of the attached desktop whether the new desktop may pair.
    async fn ask(&self, code: &str) -> Result<(), AttachError> {
        let services = &self.state.services;
        let question = question(self.name, code, random_name()?);
        // The pause also applies if the desktop disconnects before the user answers.
        services.desktop.pairing.pause_questions(Instant::now());
        record(services, format!("the attached desktop is asked to pair another one, {}", self.keys.0))
            .await?;
        let outcome = services.broker.ask(question, &DenialScope::of_remote(), std::future::pending()).await;
        match outcome {
            QuestionOutcome::Allowed { .. } => {
                services.desktop.pairing.resume_questions();
                Ok(())
            }
            QuestionOutcome::Denied { .. }
            | QuestionOutcome::Stopped(_)
            | QuestionOutcome::Unavailable(_)
            | QuestionOutcome::Closed
            | QuestionOutcome::TimedOut
            | QuestionOutcome::Settled => {
                services.desktop.pairing.pause_questions(Instant::now());
                Err(AttachError::final_refusal("the attached desktop did not allow the pairing"))
            }
        }
    }
}

/// Waits until this machine's user has typed the desktop's code.
async fn wait_for_typed_code(
    pairing: &DesktopPairing,
    wire: &mut MessageStream,
    codes: PairingCodes,
    required: RequiredConsent,
) -> Result<(), AttachError> {
    let typed = pairing.wait_for_code(codes, required == RequiredConsent::AttachedDesktop);
    tokio::select! {
        typed = timeout(CODE_TIMEOUT, typed) => match typed {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err(AttachError::final_refusal(WRONG_CODE)),
            Ok(Err(_)) | Err(_) => Err(AttachError::final_refusal(NO_CODE)),
        },
        early = wire.next::<FromDesktop>() => Err(match early? {
            FromDesktop::Confirm => AttachError::final_refusal(CONFIRMED_TOO_EARLY),
            FromDesktop::Hello { .. }
            | FromDesktop::Reveal { .. }
            | FromDesktop::Answer { .. }
            | FromDesktop::Working { .. }
            | FromDesktop::Ping => AttachError::Unexpected,
        }),
    }
}

/// Waits until the user has typed this machine's code on the desktop.
async fn wait_for_confirmation(wire: &mut MessageStream) -> Result<(), AttachError> {
    let message = timeout(CODE_TIMEOUT, wire.next()).await;
    match message.map_err(|_| AttachError::final_refusal(NO_CONFIRMATION))?? {
        FromDesktop::Confirm => Ok(()),
        FromDesktop::Hello { .. }
        | FromDesktop::Reveal { .. }
        | FromDesktop::Answer { .. }
        | FromDesktop::Working { .. }
        | FromDesktop::Ping => Err(AttachError::Unexpected),
    }
}

/// Returns `true` if root permits this desktop.
fn is_permitted(desktop: PeerKey) -> Result<bool, AttachError> {
    let keys = permitted_desktops(Path::new(ROOT_DESKTOPS));
    let keys = keys.map_err(|problem| AttachError::final_refusal(problem.to_string()))?;
    Ok(keys.values().any(|key| *key == desktop))
}

/// Returns the question for the user of the attached desktop. The question does not concern a server.
fn question(name: &str, code: &str, id: String) -> Question {
    let name = if is_valid_name(name) { name } else { "a desktop" };
    let client = ClientView {
        name: "Another desktop".to_owned(),
        exe: None,
        chain: Vec::new(),
        cwd: None,
        claimed_name: Some(name.to_owned()),
        label: None,
    };
    Question {
        session: id.clone(),
        id,
        host: None,
        client,
        server: String::new(),
        server_command: String::new(),
        sandboxed: false,
        remote: false,
        tool: None,
        consequences: vec![Consequence::new(
            Verb::Change,
            vec![
                TextPart::Fixed("who answers the remote machine's questions, with the code "),
                TextPart::Untrusted(code.to_owned()),
            ],
        )],
        with: Vec::new(),
        also: vec![format!("Allow only if the other desktop is yours and shows the code {code}.")],
        rule: "pairing".to_owned(),
        reason: "another desktop wants to pair with the remote machine, where its code was typed".to_owned(),
        arguments: Vec::new(),
        preview: None,
        offers: vec![Offer {
            reach: Reach::Request,
            label: "the other desktop".to_owned(),
            sentence: format!(
                "The desktop with the code {code} may answer every later question of the remote machine"
            ),
            lifetimes: vec![Lifetime::Always],
        }],
        denial: "this pairing".to_owned(),
        fits_a_batch: false,
        deadline: Duration::from_secs(120),
        notice: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_consent::{Answer, Broker, NoFrontEnd, Stops};
    use ironcurtain_remote::{AnswerRefused, ChannelKey, QuestionDigest};
    use ironcurtain_services::{Attachment, CodeError, DESKTOP_LOST, DesktopConsent};
    use tokio::task::JoinHandle;

    fn key(seed: u8) -> PeerKey {
        ChannelKey::from_seed(&[seed; 32]).unwrap().public()
    }

    fn daemon() -> (Arc<DesktopConsent>, Broker) {
        let desktop = Arc::new(DesktopConsent::new(Arc::new(NoFrontEnd)));
        let stops = Stops::open(Path::new("/proc/self/nothing").to_path_buf());
        (desktop.clone(), Broker::new(desktop, stops, None))
    }

    /// Asks a question. Returns the task that waits for the outcome, and the digest that the desktop computes.
    async fn asked(
        broker: &Broker,
        desktop: &mut Attachment,
        id: &str,
    ) -> (JoinHandle<QuestionOutcome>, QuestionDigest) {
        let (broker, asked) = (broker.clone(), question("laptop", "123456", id.to_owned()));
        let outcome = tokio::spawn(async move {
            broker.ask(asked, &DenialScope::of_remote(), std::future::pending()).await
        });
        let FromRemote::Question { id: sent, question } = desktop.outgoing.recv().await.unwrap() else {
            panic!("the desktop received no question");
        };
        assert_eq!(sent, id);
        (outcome, QuestionDigest::of(question.get()))
    }

    #[tokio::test]
    async fn a_pairing_ends_if_no_code_is_typed_for_five_minutes() {
        let (ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let [desktop, remote] = [1, 2].map(|seed| ChannelKey::from_seed(&[seed; 32]).unwrap());
        let (desktop, remote) = tokio::join!(desktop.connect(ours), remote.accept(theirs));
        let (_desktop, mut wire) = (desktop.unwrap(), MessageStream::new(remote.unwrap().stream));
        let codes = PairingCodes { desktop: "204517".to_owned(), remote: "881002".to_owned() };
        let pairing = DesktopPairing::default();
        tokio::time::pause();
        let began = Instant::now();
        let waited = wait_for_typed_code(&pairing, &mut wire, codes.clone(), RequiredConsent::Nothing)
            .await
            .unwrap_err();
        assert_eq!(waited.to_string(), "nobody ran `ironcurtain pair` on this machine within five minutes");
        assert_eq!(began.elapsed().as_secs(), CODE_TIMEOUT.as_secs());
        assert_eq!(pairing.enter_code("204517"), Err(CodeError::NotWaiting));
        let waited = wait_for_confirmation(&mut wire).await.unwrap_err().to_string();
        assert_eq!(
            waited,
            "the code from `ironcurtain pair` was not typed on the desktop within five minutes"
        );
        let (typed, ()) =
            tokio::join!(wait_for_typed_code(&pairing, &mut wire, codes, RequiredConsent::Nothing), async {
                tokio::task::yield_now().await;
                pairing.enter_code("204517").unwrap();
            });
        typed.unwrap();
    }

    const ALLOW: Option<Answer> = Some(Answer::Allow { offer: 0, lifetime: Lifetime::Always });

    #[tokio::test]
    async fn an_answer_counts_once_and_only_for_the_call_that_was_asked() {
        let (desktop, broker) = daemon();
        let mut attached = desktop.attach(key(1)).unwrap();
        let (first, digest) = asked(&broker, &mut attached, "q1").await;
        let (second, other) = asked(&broker, &mut attached, "q2").await;
        let refused = attached.answer("q1", &other, ALLOW);
        assert_eq!(refused, Err(AnswerRefused::OtherCall("q1".to_owned())));
        assert_eq!(attached.answer("q1", &digest, ALLOW), Ok(()));
        let allowed = QuestionOutcome::Allowed { offer: 0, lifetime: Lifetime::Always };
        assert_eq!(first.await.unwrap(), allowed);
        let replayed = attached.answer("q1", &digest, ALLOW);
        assert_eq!(replayed, Err(AnswerRefused::NotPending("q1".to_owned())));
        assert_eq!(attached.answer("q2", &other, None), Ok(()));
        assert_eq!(second.await.unwrap(), QuestionOutcome::Closed);
    }

    #[tokio::test]
    async fn an_earlier_connection_or_another_desktop_answers_nothing() {
        let (desktop, broker) = daemon();
        let mut before = desktop.attach(key(1)).unwrap();
        assert!(desktop.attach(key(2)).is_err());
        let (first, digest) = asked(&broker, &mut before, "q1").await;
        let mut attached = desktop.attach(key(1)).unwrap();
        assert_eq!(first.await.unwrap(), QuestionOutcome::Unavailable(DESKTOP_LOST.to_owned()));
        let not_pending = Err(AnswerRefused::NotPending("q1".to_owned()));
        assert_eq!(before.answer("q1", &digest, ALLOW), not_pending);
        assert_eq!(attached.answer("q1", &digest, ALLOW), not_pending);
        drop(before);
        // Closing the earlier connection does not affect the current one.
        let (second, _) = asked(&broker, &mut attached, "q2").await;
        drop(attached);
        assert_eq!(second.await.unwrap(), QuestionOutcome::Unavailable(DESKTOP_LOST.to_owned()));
        assert!(!desktop.is_attached() && desktop.attach(key(2)).is_ok());
    }
}
