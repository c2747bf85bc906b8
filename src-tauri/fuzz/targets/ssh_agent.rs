//! Any bytes as a request to an ssh agent are parsed or refused, and what is signed has exactly one purpose.

#![no_main]

use ironcurtain_ssh_agent::{AgentRequest, HostNames, SignRequest, SignaturePurpose, parse_keys, find_host_names};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(AgentRequest::Sign(SignRequest { key, data })) = AgentRequest::parse(bytes) {
        let purpose = SignaturePurpose::from_data(&data, &key);
        if let Ok(purpose) = &purpose {
            // Other data has this purpose for no reason.
            let longer = [data.as_slice(), &[0]].concat();
            SignaturePurpose::from_data(&longer, &key).unwrap_err();
            SignaturePurpose::from_data(&data[..data.len() - 1], &key).unwrap_err();
            if let SignaturePurpose::Login { .. } = purpose {
                SignaturePurpose::from_data(&data, &[key.as_slice(), b"x"].concat()).unwrap_err();
            }
        }
    }
    // A list has at least 8 bytes for each key.
    if let Ok(all) = parse_keys(bytes) {
        assert!(all.len() * 8 <= bytes.len());
    }
    let known_hosts = String::from_utf8_lossy(bytes);
    if let HostNames::Named(names) = find_host_names(b"key", &known_hosts) {
        assert!(names.iter().all(|name| known_hosts.contains(name.as_str()) && !name.contains(['*', '?', '!'])));
    }
});
