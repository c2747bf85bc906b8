//! The end of a grant, from the moment that it holds no longer until that is on record and in the database.

use super::StandingGrant;
use ironcurtain_audit::{Entry, Event};
use serde::{Deserialize, Serialize};

/// Why a grant ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// The person took it back.
    TakenBack,
    /// Its time is over.
    Clock,
    /// It is on record, and could not be kept.
    NotKept,
}

impl Why {
    /// The sentence on record.
    fn sentence(self) -> &'static str {
        match self {
            Self::TakenBack => "a grant was revoked",
            Self::Clock => "a grant ended by the clock",
            Self::NotKept => "a grant could not be kept, and does not hold",
        }
    }

    /// The words that the database keeps.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::TakenBack => "taken-back",
            Self::Clock => "clock",
            Self::NotKept => "not-kept",
        }
    }

    /// The reason by the database's words.
    pub(super) fn named(name: &str) -> Option<Self> {
        [Self::TakenBack, Self::Clock, Self::NotKept].into_iter().find(|why| why.name() == name)
    }
}

/// A grant that holds no longer, while that is not stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Ending {
    /// Its id.
    pub id: String,
    /// The grant, unless the database has lost it already.
    pub grant: Option<StandingGrant>,
    /// Why it ends.
    pub why: Why,
    /// Since when it holds no longer.
    pub at_ms: u64,
    /// Why that is not stored yet, when it was tried.
    pub trouble: Option<String>,
    /// The entry that puts it on record.
    pub(super) entry: Box<Entry>,
}

impl Ending {
    /// Describes the end of a grant at this moment, in milliseconds since the Unix epoch.
    pub fn new(grant: StandingGrant, why: Why, at_ms: u64) -> Self {
        let entry = Box::new(entry(&grant, why));
        Self { id: grant.id.clone(), grant: Some(grant), why, at_ms, trouble: None, entry }
    }

    /// One that the last run did not come to store, as its journal has it.
    pub(super) fn left(left: Left, grant: Option<StandingGrant>) -> Self {
        let Left { id, why, at_ms, mut entry } = left;
        entry.summary.push_str("; IronCurtain ended before that was stored");
        Self { id, grant, why, at_ms, trouble: None, entry }
    }
}

/// A line of the journal: an end that is to be stored; for a grant that is being given, the end that it has where it is
/// not kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) id: String,
    pub(super) why: Why,
    pub(super) at_ms: u64,
    pub(super) entry: Box<Entry>,
}

impl Left {
    pub(super) fn of(ending: &Ending) -> Self {
        let Ending { id, why, at_ms, entry, .. } = ending.clone();
        Self { id, why, at_ms, entry }
    }
}

fn entry(grant: &StandingGrant, why: Why) -> Entry {
    let mut entry = Entry::new(Event::Revoked, why.sentence());
    entry.grant_id = Some(grant.id.clone());
    entry.client = Some(grant.subject.client_name.clone());
    entry.server_name = Some(grant.subject.server.clone());
    entry.session.clone_from(&grant.subject.session);
    grant.what.note_in(&mut entry);
    entry
}

/// The end of a grant that is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Why it ended.
    pub why: Why,
    /// When.
    pub at_ms: u64,
}
