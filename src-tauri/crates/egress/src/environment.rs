//! Environment variables that direct a sandboxed program to the proxy.
//!
//! - No host is exempt, because the proxy is the sandbox's only network access.
//! - `ALL_PROXY` is an `http://` URL although the port also supports SOCKS, because Python's `httpx` does not start
//!   with a `socks5h` URL unless a SOCKS package is installed, and gRPC ignores such URLs.

use std::collections::BTreeMap;

/// Returns the variables for a proxy on loopback port `port`. `program` is the path inside the sandbox of
/// `ironcurtain-sandbox`, which ssh uses to connect. If `None`, ssh is not configured.
#[must_use]
pub fn environment(port: u16, program: Option<&str>) -> BTreeMap<String, String> {
    const HTTP: [&str; 10] = [
        "HTTP_PROXY",
        "http_proxy",
        "HTTPS_PROXY",
        "https_proxy",
        "ALL_PROXY",
        "all_proxy",
        "GRPC_PROXY",
        "grpc_proxy",
        "npm_config_proxy",
        "npm_config_https_proxy",
    ];
    // Empty values override exemptions in the user's or a project's configuration files.
    const EXEMPT: [&str; 4] = ["NO_PROXY", "no_proxy", "npm_config_noproxy", "no_grpc_proxy"];
    let http = format!("http://127.0.0.1:{port}");
    let mut env: BTreeMap<String, String> =
        HTTP.iter().map(|name| ((*name).to_owned(), http.clone())).collect();
    env.extend(EXEMPT.iter().map(|name| ((*name).to_owned(), String::new())));
    env.insert("PIP_PROXY".to_owned(), http.clone());
    env.insert("FTP_PROXY".to_owned(), format!("socks5h://127.0.0.1:{port}"));
    env.insert("ftp_proxy".to_owned(), format!("socks5h://127.0.0.1:{port}"));
    // Node.js ignores the variables above unless this is set.
    env.insert("NODE_USE_ENV_PROXY".to_owned(), "1".to_owned());
    if let Some(program) = program {
        env.insert("GIT_SSH_COMMAND".to_owned(), ssh_command(program));
    }
    env
}

/// Returns an `ssh` command that connects through `program`. Connection sharing is disabled, because the sandbox
/// blocks its socket.
fn ssh_command(program: &str) -> String {
    // ssh expands `%` sequences and passes the command to a shell. Git passes the whole ssh command to another shell.
    let program = shell_quote(&program.replace('%', "%%"));
    let proxy = shell_quote(&format!("ProxyCommand={program} --connect %h %p"));
    format!("ssh -o ControlMaster=no -o ControlPath=none -o {proxy}")
}

fn shell_quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_as_written_here() {
        let got: Vec<String> = environment(3128, Some("/opt/it's 5%/ironcurtain-sandbox"))
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let expected = [
            "ALL_PROXY=http://127.0.0.1:3128",
            "FTP_PROXY=socks5h://127.0.0.1:3128",
            "GIT_SSH_COMMAND=ssh -o ControlMaster=no -o ControlPath=none -o 'ProxyCommand='\\''/opt/it'\\''\\'\\'''\\''s 5%%/ironcurtain-sandbox'\\'' --connect %h %p'",
            "GRPC_PROXY=http://127.0.0.1:3128",
            "HTTPS_PROXY=http://127.0.0.1:3128",
            "HTTP_PROXY=http://127.0.0.1:3128",
            "NODE_USE_ENV_PROXY=1",
            "NO_PROXY=",
            "PIP_PROXY=http://127.0.0.1:3128",
            "all_proxy=http://127.0.0.1:3128",
            "ftp_proxy=socks5h://127.0.0.1:3128",
            "grpc_proxy=http://127.0.0.1:3128",
            "http_proxy=http://127.0.0.1:3128",
            "https_proxy=http://127.0.0.1:3128",
            "no_grpc_proxy=",
            "no_proxy=",
            "npm_config_https_proxy=http://127.0.0.1:3128",
            "npm_config_noproxy=",
            "npm_config_proxy=http://127.0.0.1:3128",
        ];
        assert_eq!(got, expected);
        assert!(!environment(1, None).contains_key("GIT_SSH_COMMAND"));
    }
}
