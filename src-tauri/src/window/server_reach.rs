//! Describes in sentences the files and hosts that a server can access.

use ironcurtain_config::FileView;
use ironcurtain_config::Server;
use ironcurtain_config::ServerAccess;
use ironcurtain_containment::view_of;
use ironcurtain_visible as visible;

/// Returns sentences about a server's access.
pub(super) fn reaches(server: &Server) -> Vec<String> {
    if server.remote.is_some() {
        return vec!["Files: none directly; it sees everything that is sent to it".to_owned()];
    }
    let Some(settings) = server.sandbox.settings() else {
        return vec!["Files and network: everything that you can reach".to_owned()];
    };
    let files = match (server.access, view_of(settings)) {
        (ServerAccess::Ask, _) => "Files: names of your files; you are asked when it opens or changes one",
        (ServerAccess::Grants, FileView::Roots) => {
            "Files: what you granted, the session's own folder, and its own program"
        }
        (ServerAccess::Grants, FileView::HostRead) => {
            "Files: reads this computer's files except keys and protected folders; writes only what you granted"
        }
    };
    let mut sentences = vec![files.to_owned()];
    let listed = |what: &str, paths: &[String]| {
        (!paths.is_empty()).then(|| visible::line(&format!("{what}: {}", paths.join(", "))))
    };
    let filesystem = &settings.filesystem;
    sentences.extend(listed("Always writes to", &filesystem.allow_write));
    sentences.extend(listed("Always reads", &filesystem.allow_read));
    sentences.extend(listed("Works with, after you allow it for an agent", &server.works_with));
    sentences.push(match &settings.network {
        None => "Network: none".to_owned(),
        Some(network) if network.is_closed() => "Network: none".to_owned(),
        Some(network) => {
            let hosts = network.allowed_domains.join(", ");
            let asks = "you are asked about any other host";
            visible::line(&match (network.allowed_domains.is_empty(), network.ask_unknown) {
                (true, _) => format!("Network: {asks}"),
                (false, true) => format!("Network: {hosts}; {asks}"),
                (false, false) => format!("Network: {hosts}, and nothing else"),
            })
        }
    });
    sentences
}
