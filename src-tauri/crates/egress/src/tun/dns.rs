//! Answers DNS queries without contacting a name server.
//!
//! - Every host name has an address of the table ([`HostNames`]), whether or not the name exists. The proxy judges the name
//!   when a program connects, and resolves it only after that.
//! - There are no other records. In particular, there are no IPv6 addresses so that programs use IPv4 at once.
//! - `localhost` is the sandbox itself. Other names without a dot do not exist, because no rule can name them.

use super::names::HostNames;
use crate::host::{Host, is_subdomain};
use std::net::Ipv4Addr;

const HEADER_LEN: usize = 12;
/// Maximum length of an encoded name in bytes (RFC 1035, section 3.1).
const MAX_NAME_LEN: usize = 255;
const MAX_LABEL_LEN: u8 = 63;

const TYPE_A: u16 = 1;
const CLASS_IN: u16 = 1;

/// Time for which programs may keep an address, in seconds.
const TTL_SECONDS: u32 = 60;

/// Response codes (RFC 1035, section 4.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResponseCode {
    NoError = 0,
    FormatError = 1,
    NameError = 3,
    NotImplemented = 4,
}

/// Question of a query.
struct Question<'a> {
    /// Name as text, or `None` if a label contains characters that no host name has.
    name: Option<String>,
    kind: u16,
    class: u16,
    /// The question as sent.
    bytes: &'a [u8],
}

/// Returns the response to a query, or `None` if the message is not a query.
pub(super) fn answer(query: &[u8], names: &mut HostNames) -> Option<Vec<u8>> {
    let (header, rest) = query.split_first_chunk::<HEADER_LEN>()?;
    let [id_high, id_low, flags, _, questions_high, questions_low, ..] = *header;
    if flags & 0x80 != 0 {
        return None;
    }
    let respond = |code: ResponseCode, question: &[u8], address: Option<Ipv4Addr>| {
        // A response that copies the opcode and RD, and sets RA.
        let mut response = vec![id_high, id_low, flags & 0x79 | 0x80, 0x80 | code as u8];
        for count in [!question.is_empty(), address.is_some(), false, false] {
            response.extend(u16::from(count).to_be_bytes());
        }
        response.extend(question);
        if let Some(address) = address {
            // The name is a reference to the question, which starts after the header.
            response.extend([0xc0, 12]);
            response.extend([TYPE_A, CLASS_IN].map(u16::to_be_bytes).concat());
            response.extend(TTL_SECONDS.to_be_bytes());
            response.extend(4_u16.to_be_bytes());
            response.extend(address.octets());
        }
        Some(response)
    };
    if flags & 0x78 != 0 {
        return respond(ResponseCode::NotImplemented, &[], None);
    }
    let only = [questions_high, questions_low] == [0, 1];
    let Some(question) = only.then(|| Question::parse(rest)).flatten() else {
        return respond(ResponseCode::FormatError, &[], None);
    };
    if question.class != CLASS_IN {
        return respond(ResponseCode::NotImplemented, question.bytes, None);
    }
    let Some(name) = question.host_name() else {
        return respond(ResponseCode::NameError, question.bytes, None);
    };
    let address = (question.kind == TYPE_A).then(|| match name.as_str() {
        "localhost" => Ipv4Addr::LOCALHOST,
        below if is_subdomain(below, "localhost") => Ipv4Addr::LOCALHOST,
        other => names.address_of(other),
    });
    respond(ResponseCode::NoError, question.bytes, address)
}

impl<'a> Question<'a> {
    fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut labels = Vec::new();
        let mut rest = bytes;
        loop {
            let (&length, after) = rest.split_first()?;
            // Longer values are references to other names, which a query does not need.
            if length > MAX_LABEL_LEN || bytes.len() - after.len() + usize::from(length) > MAX_NAME_LEN {
                return None;
            }
            let (label, after) = after.split_at_checked(length.into())?;
            rest = after;
            if label.is_empty() {
                break;
            }
            labels.push(label);
        }
        let (&[kind_high, kind_low, class_high, class_low], after) = rest.split_first_chunk::<4>()?;
        let is_plain = |label: &&[u8]| label.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'.');
        let name = labels.iter().all(is_plain).then(|| labels.join(&b'.'));
        Some(Self {
            name: name.and_then(|name| String::from_utf8(name).ok()),
            kind: u16::from_be_bytes([kind_high, kind_low]),
            class: u16::from_be_bytes([class_high, class_low]),
            bytes: bytes.get(..bytes.len() - after.len())?,
        })
    }

    /// Returns the name in canonical form, or `None` if it is no host name, or one that no rule can name.
    fn host_name(&self) -> Option<String> {
        match Host::parse(self.name.as_ref()?).ok()? {
            Host::Name(name) if name.contains('.') || name == "localhost" => Some(name),
            Host::Name(_) | Host::Address(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const TYPE_AAAA: u16 = 28;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0xab, 0xcd, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            bytes.push(label.len().try_into().unwrap());
            bytes.extend(label.as_bytes());
        }
        bytes.push(0);
        bytes.extend([kind, CLASS_IN].map(u16::to_be_bytes).concat());
        bytes
    }

    /// Returns the response code, and the address if there is one.
    fn asked(query: &[u8], names: &mut HostNames) -> (u8, Option<Ipv4Addr>) {
        let response = answer(query, names).unwrap();
        assert_eq!((&response[..2], response[2] & 0x80), (&query[..2], 0x80));
        let has_answer = response[7] == 1;
        let address = has_answer.then(|| Ipv4Addr::from(*response.last_chunk::<4>().unwrap()));
        (response[3] & 0xf, address)
    }

    #[test]
    fn a_name_has_one_address_in_any_spelling() {
        let mut names = HostNames::default();
        let (code, address) = asked(&query("Api.Example.COM", TYPE_A), &mut names);
        assert_eq!((code, names.name_of(address.unwrap())), (0, Some("api.example.com")));
        assert_eq!(asked(&query("api.example.com", TYPE_A), &mut names), (0, address));
        let other = asked(&query("other.example.com", TYPE_A), &mut names);
        assert!(other.1.is_some() && other.1 != address);
    }

    #[test]
    fn the_response_repeats_the_question_and_refers_to_it() {
        let asked = query("a.bc", TYPE_A);
        let response = answer(&asked, &mut HostNames::default()).unwrap();
        let head = [0xab, 0xcd, 0x81, 0x80, 0, 1, 0, 1, 0, 0, 0, 0];
        let record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 198, 18, 1, 0];
        assert_eq!(response, [&head[..], &asked[12..], &record].concat());
    }

    #[test]
    fn other_records_are_empty_and_add_no_name() {
        let mut names = HostNames::default();
        for kind in [TYPE_AAAA, 2, 5, 12, 15, 16, 33, 65, 255] {
            assert_eq!(asked(&query("a.test", kind), &mut names), (0, None), "{kind}");
        }
        assert_eq!(names.name_of(Ipv4Addr::new(198, 18, 1, 0)), None);
    }

    #[test]
    fn localhost_is_the_sandbox_and_local_or_invalid_names_do_not_exist() {
        let mut names = HostNames::default();
        let own = (0, Some(Ipv4Addr::LOCALHOST));
        assert_eq!(asked(&query("localhost", TYPE_A), &mut names), own);
        assert_eq!(asked(&query("app.localhost", TYPE_A), &mut names), own);
        for name in ["router", "sandbox", "127.0.0.1", "2130706433", "a b.test", "a%62.test", "x\u{1}.test"] {
            assert_eq!(asked(&query(name, TYPE_A), &mut names), (3, None), "{name}");
        }
    }

    #[test]
    fn unsupported_and_malformed_queries_get_an_error() {
        let mut names = HostNames::default();
        let good = query("a.test", TYPE_A);
        let with = |changes: &[(usize, u8)]| {
            let mut query = good.clone();
            changes.iter().for_each(|(at, byte)| query[*at] = *byte);
            query
        };
        assert_eq!(asked(&with(&[(2, 0x28)]), &mut names), (4, None), "an update");
        assert_eq!(asked(&with(&[(good.len() - 1, 3)]), &mut names), (4, None), "another class");
        assert_eq!(asked(&with(&[(5, 2)]), &mut names), (1, None), "two questions");
        assert_eq!(asked(&with(&[(12, 0xc0)]), &mut names), (1, None), "a reference");
        assert_eq!(asked(&good[..good.len() - 1], &mut names), (1, None), "cut off");
        let long = vec!["a".repeat(63); 4].join(".");
        assert_eq!(asked(&query(&long, TYPE_A), &mut names), (1, None), "too long");
        assert_eq!(answer(&with(&[(2, 0x81)]), &mut names), None, "a response");
        assert_eq!(answer(&good[..11], &mut names), None);
        assert_eq!(asked(&good, &mut names).0, 0);
    }

    proptest! {
        #[test]
        fn any_message_is_answered_or_dropped(message in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut names = HostNames::default();
            let answered = answer(&message, &mut names);
            prop_assert!(answered.is_none_or(|answer| answer.len() <= message.len() + 16));
        }
    }
}
