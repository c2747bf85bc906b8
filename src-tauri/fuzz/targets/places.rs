//! Any text is an address or not, and any text is a pattern. The address that is sent has the target that was judged.

#![no_main]

use ironcurtain_policy::{AllowedHosts, Destination, HostPattern, Role, is_ip_address};
use libfuzzer_sys::fuzz_target;
use std::collections::BTreeMap;

fuzz_target!(|pair: (&str, &str)| {
    let (address, pattern) = pair;
    let pattern_of = HostPattern::parse(pattern);
    for role in [Role::FetchUrl, Role::GitRemoteUrl] {
        let judged = Destination::parse(role, address);
        let sent = Destination::parse(role, judged.text());
        assert_eq!(sent.domain(), judged.domain(), "{address:?} is judged as one place and sent as another");
        // No pattern covers an address without a target, even after it is normalized again.
        assert!(judged.domain().is_none() || sent.text() == judged.text());
        let gate = BTreeMap::from([("s".to_owned(), vec![pattern.to_owned()])]);
        let admitted = AllowedHosts::new(&gate).allows("s", &judged);
        match judged.domain() {
            Some(domain) => {
                assert_eq!(pattern_of.covers(domain), admitted);
                let host = domain.split('/').next().unwrap_or_default();
                assert!(!host.is_empty());
                if is_ip_address(host) || host == "localhost" {
                    assert!(!HostPattern::Any.covers(domain));
                }
            }
            None => assert!(!admitted),
        }
    }
});
