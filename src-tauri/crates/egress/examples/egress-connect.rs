//! `egress-connect --connect HOST PORT`: an ssh `ProxyCommand` that connects through the proxy.

use ironcurtain_egress::connect::{ProxyConnectError, run};

fn main() -> Result<(), ProxyConnectError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [_, host, port] = arguments.as_slice() else {
        return Err(ProxyConnectError::Target(arguments.join(" ")));
    };
    run(host, port, std::env::var("HTTP_PROXY").ok().as_deref())
}
