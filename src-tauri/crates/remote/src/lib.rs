//! Answers a remote machine's questions on a desktop: pairing, channel and messages.
//!
//! - Both sides prove possession of an Ed25519 key in every connection ([`Channel`]). Each side accepts only the key
//!   that it paired with.
//! - INVARIANT: an answer is accepted once, before the question expires, and only with the digest of the question that
//!   the remote machine asked ([`SentQuestions`]).
//! - Independent of sockets, processes and dialogs.

mod channel;
mod messages;
mod paired;
mod pairing;
mod pending;
mod root_desktops;

pub use channel::{Channel, ChannelBinding, ChannelError, ChannelKey, ChannelStream, PeerKey};
pub use messages::{DesktopRequest, FromDesktop, FromRemote, MAX_MESSAGE_BYTES, PairingRefusal, VERSION};
pub use paired::{PairedError, PairedKeys, is_valid_name};
pub use pairing::{Commitment, Nonce, PairingCodes, PairingError, matches_code, pairing_codes};
pub use pending::{AnswerRefused, QuestionDigest, SentQuestions};
pub use root_desktops::{ROOT_DESKTOPS, RootDesktopsError, permitted_desktops};
