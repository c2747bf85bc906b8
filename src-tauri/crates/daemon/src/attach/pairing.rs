//! Remote machine's side of pairing.
//!
//! - The first desktop pairs freely, but only while no session is active, because an agent could play a desktop.
//! - INVARIANT: every other desktop needs the consent of an attached desktop, or root's.

use super::{AttachError, MessageStream, record};
use crate::daemon_state::DaemonState;
use ironcurtain_config::{ManagedError, read_root_file};
use ironcurtain_consent::{
    Consequence, DenialScope, Lifetime, Offer, Piece, Question, QuestionOutcome, Reach, Verb,
};
use ironcurtain_paths::random_name;
use ironcurtain_protocol::ClientView;
use ironcurtain_remote::{
    ChannelBinding, Commitment, FromDesktop, FromRemote, Nonce, PairedKeys, PeerKey, is_valid_name,
    pairing_code,
};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// File with the keys of desktops that root permits to pair, by name.
const ROOT_FILE: &str = "/etc/ironcurtain/desktops.json";

/// Maximum time for a user to compare the codes.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5 * 60);

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
enum Needed {
    Nothing,
    AttachedDesktop,
}

impl Pairing<'_> {
    /// Pairs with the desktop. The user compares the codes of both sides and confirms them on the desktop. This machine
    /// shows its code only in its status: a program between the two sides could replace a code that passes through it.
    pub(super) async fn perform(
        &self,
        wire: &mut MessageStream,
        commitment: &Commitment,
    ) -> Result<(), AttachError> {
        let services = &self.state.services;
        let Ok(_one_at_a_time) = services.desktop.pairing.try_lock() else {
            return Err(AttachError::busy("another desktop is pairing; wait until it is done"));
        };
        let store = PairedKeys::new(services.home.desktops());
        let needed = self.needed(&store.read()?)?;
        let ours = Nonce::generate()?;
        wire.send(&FromRemote::Nonce { nonce: ours.clone() }).await?;
        let FromDesktop::Reveal { nonce } = self.next(wire).await? else {
            return Err(AttachError::Unexpected);
        };
        commitment.check(&nonce)?;
        let code = pairing_code(self.binding, self.keys, (&nonce, &ours));
        let _shown = services.desktop.show_code(code.clone());
        if needed == Needed::AttachedDesktop {
            self.ask(&code).await?;
        }
        let FromDesktop::Confirm = self.next(wire).await? else { return Err(AttachError::Unexpected) };
        // The user can take minutes to compare the codes.
        if self.needed(&store.read()?)? != needed {
            return Err(AttachError::refused("another desktop was paired with this machine in the meantime"));
        }
        let key = self.keys.0.to_string();
        let short = key.get(..8).unwrap_or_default();
        let name = if is_valid_name(self.name) { self.name } else { "desktop" };
        record(services, format!("paired with the desktop {name}, key {key}")).await?;
        store.add(&format!("{name} ({short})"), self.keys.0)?;
        wire.send(&FromRemote::Paired).await
    }

    async fn next(&self, wire: &mut MessageStream) -> Result<FromDesktop, AttachError> {
        timeout(CONFIRM_TIMEOUT, wire.next()).await.map_err(|_| AttachError::Silent)?
    }

    fn needed(&self, paired: &BTreeMap<String, PeerKey>) -> Result<Needed, AttachError> {
        let desktop = self.keys.0;
        if paired.values().any(|known| *known == desktop) || is_permitted(Path::new(ROOT_FILE), desktop)? {
            return Ok(Needed::Nothing);
        }
        if !paired.is_empty() {
            if self.state.services.desktop.is_attached() {
                return Ok(Needed::AttachedDesktop);
            }
            return Err(AttachError::refused(format!(
                "another desktop is paired with this machine, and has to allow this one: attach it first, or add \
                 {{\"desktop\": \"{desktop}\"}} to `{ROOT_FILE}` as root"
            )));
        }
        if !self.state.is_idle() {
            return Err(AttachError::refused(
                "sessions are active on this machine; close every agent there before you pair its first desktop",
            ));
        }
        Ok(Needed::Nothing)
    }

    /// Asks the user of the attached desktop whether this one may pair.
    async fn ask(&self, code: &str) -> Result<(), AttachError> {
        let services = &self.state.services;
        let question = question(self.name, code, random_name()?);
        record(services, format!("the attached desktop is asked to pair another one, {}", self.keys.0))
            .await?;
        let outcome = services.broker.ask(question, &DenialScope::of_remote(), std::future::pending()).await;
        match outcome {
            QuestionOutcome::Allowed { .. } => Ok(()),
            QuestionOutcome::Denied { .. }
            | QuestionOutcome::Stopped(_)
            | QuestionOutcome::Unavailable(_)
            | QuestionOutcome::Closed
            | QuestionOutcome::TimedOut
            | QuestionOutcome::Settled => {
                Err(AttachError::refused("the attached desktop did not allow the pairing"))
            }
        }
    }
}

/// Returns `true` if root permits this desktop.
fn is_permitted(file: &Path, desktop: PeerKey) -> Result<bool, AttachError> {
    let text = match read_root_file(file) {
        Ok(text) => text,
        Err(ManagedError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(problem) => return Err(AttachError::refused(problem.to_string())),
    };
    let keys: BTreeMap<String, PeerKey> = serde_json::from_str(&text)?;
    Ok(keys.values().any(|key| *key == desktop))
}

fn question(name: &str, code: &str, id: String) -> Question {
    let name = if is_valid_name(name) { name } else { "a desktop" };
    let client = ClientView {
        name: "Another desktop".to_owned(),
        exe: None,
        chain: Vec::new(),
        cwd: None,
        says_it_is: Some(name.to_owned()),
        label: None,
    };
    Question {
        session: id.clone(),
        id,
        host: None,
        client,
        server: "IronCurtain".to_owned(),
        server_command: "ironcurtain relay".to_owned(),
        sandboxed: false,
        remote: true,
        tool: None,
        consequences: vec![Consequence::new(
            Verb::Use,
            vec![Piece::Ours("this machine's approvals, with the code "), Piece::Foreign(code.to_owned())],
        )],
        with: Vec::new(),
        also: vec![format!("Allow only if that desktop, which is yours, shows the code {code}.")],
        rule: "pairing".to_owned(),
        reason: "another desktop wants to pair with this machine".to_owned(),
        arguments: Vec::new(),
        preview: None,
        offers: vec![Offer {
            reach: Reach::Request,
            label: "this desktop".to_owned(),
            sentence: format!(
                "The desktop with the code {code} may answer every later question of this machine"
            ),
            lifetimes: vec![Lifetime::Once],
        }],
        denial: "pairing".to_owned(),
        fits_a_batch: false,
        deadline: Duration::from_secs(120),
        notice: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironcurtain_consent::{Answer, Broker, NobodyToAsk, Stops};
    use ironcurtain_remote::{AnswerRefused, ChannelKey, QuestionDigest};
    use ironcurtain_services::{Attachment, DESKTOP_LOST, DesktopConsent};
    use tokio::task::JoinHandle;

    fn key(seed: u8) -> PeerKey {
        ChannelKey::of_seed(&[seed; 32]).unwrap().public()
    }

    fn daemon() -> (Arc<DesktopConsent>, Broker) {
        let desktop = Arc::new(DesktopConsent::new(Arc::new(NobodyToAsk)));
        let stops = Stops::open(Path::new("/proc/self/nothing").to_path_buf());
        (desktop.clone(), Broker::new(desktop, stops, None))
    }

    /// Asks a question. Returns its outcome, and its digest as the desktop computes it.
    async fn asked(
        broker: &Broker,
        desktop: &mut Attachment,
        id: &str,
    ) -> (JoinHandle<QuestionOutcome>, QuestionDigest) {
        let (broker, asked) = (broker.clone(), question("laptop", "123 456", id.to_owned()));
        let outcome = tokio::spawn(async move {
            broker.ask(asked, &DenialScope::of_remote(), std::future::pending()).await
        });
        let FromRemote::Question { id: sent, question } = desktop.out.recv().await.unwrap() else {
            panic!("the desktop received no question");
        };
        assert_eq!(sent, id);
        (outcome, QuestionDigest::of(question.get()))
    }

    const ALLOW: Option<Answer> = Some(Answer::Allow { offer: 0, lifetime: Lifetime::Once });

    #[tokio::test]
    async fn an_answer_counts_once_and_only_for_the_call_that_was_asked() {
        let (desktop, broker) = daemon();
        let mut attached = desktop.attach(key(1)).unwrap();
        let (first, digest) = asked(&broker, &mut attached, "q1").await;
        let (second, other) = asked(&broker, &mut attached, "q2").await;
        let refused = attached.answer("q1", &other, ALLOW);
        assert_eq!(refused, Err(AnswerRefused::OtherCall("q1".to_owned())));
        assert_eq!(attached.answer("q1", &digest, ALLOW), Ok(()));
        let allowed = QuestionOutcome::Allowed { offer: 0, lifetime: Lifetime::Once };
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
        let gone = Err(AnswerRefused::NotPending("q1".to_owned()));
        assert_eq!(before.answer("q1", &digest, ALLOW), gone);
        assert_eq!(attached.answer("q1", &digest, ALLOW), gone);
        drop(before);
        // The current connection is not affected by the end of the earlier one.
        let (second, _) = asked(&broker, &mut attached, "q2").await;
        drop(attached);
        assert_eq!(second.await.unwrap(), QuestionOutcome::Unavailable(DESKTOP_LOST.to_owned()));
        assert!(!desktop.is_attached() && desktop.attach(key(2)).is_ok());
    }

    #[test]
    fn only_root_can_permit_a_desktop_by_file() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("desktops.json");
        assert!(!is_permitted(Path::new("/etc/ironcurtain/no/desktops.json"), key(1)).unwrap());
        std::fs::write(&file, format!("{{\"laptop\": \"{}\"}}", key(1))).unwrap();
        // Other users can write the folder of temporary files.
        let refused = is_permitted(&file, key(1)).unwrap_err().to_string();
        assert!(refused.contains("other users can write it"), "{refused}");
    }
}
