//! Tests git over ssh with the ssh command from the environment.

use crate::fixture::TestProxy;
use crate::namespace::{PUBLIC, World, inside, run};
use crate::programs::outcome;
use ironcurtain_egress::environment;
use std::process::Command;

/// Starts an ssh server on port 22 for a user whose home is the world's directory.
fn ssh_server(world: &World) {
    let script = r#"
        cd "$1"
        git init -q --bare files/repo.git
        dropbearkey -t ed25519 -f host.key > /dev/null
        ssh-keygen -q -t ed25519 -N '' -f person.key
        mkdir -m 700 .ssh && cp person.key.pub .ssh/authorized_keys
        echo "person:x:1000:1000::$1:/bin/sh" > passwd
        cat > ssh.sh <<END
PATH="\$PATH:/usr/sbin"
exec unshare --mount sh -ec 'mount --bind "$1/passwd" /etc/passwd
exec unshare --user --map-user=1000 --map-group=1000 dropbear -i -e -s -r "$1/host.key" 2> "$1/ssh.log"'
END"#;
    run(Command::new("sh").args(["-ec", script, "sh"]).arg(world.path("")));
}

#[test]
fn git_over_ssh() {
    inside("ssh::git_over_ssh", async |world| {
        ssh_server(&world);
        let proxy = TestProxy::new(&["git.example.test:22", "files.example.test"], &[]);
        proxy.names.set("git.example.test", &[PUBLIC]);
        proxy.names.set("files.example.test", &[PUBLIC]);
        let push = async |host: &str| {
            let url = format!("ssh://person@{host}{}", world.path("files/repo.git").display());
            let directory = world.path(host);
            let script = "git init -q \"$1\" && cd \"$1\" && echo one > a && git add a \
                && git -c user.name=t -c user.email=t@example.test commit -qm first && git push -q \"$2\" HEAD:refs/heads/pushed";
            let mut command = Command::new("sh");
            command.args(["-ec", script, "sh"]).arg(directory).arg(url).envs(ssh_environment(&proxy, &world));
            outcome(&tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap())
        };
        let log = || std::fs::read_to_string(world.path("ssh.log")).unwrap_or_default();
        let pushed = push("git.example.test").await;
        assert_eq!(pushed, Ok(String::new()), "{}", log());
        let repository = world.path("files/repo.git");
        let shown = run(Command::new("git").arg("--git-dir").arg(repository).args(["show", "pushed:a"]));
        assert_eq!(shown, "one\n");
        let refused = push("files.example.test").await;
        let words = "`files.example.test:22` is not on the list of allowed domains";
        assert!(refused.as_ref().is_err_and(|text| text.contains(words)), "{refused:?}");
        let expected = [
            "connect git.example.test:22 allowed by git.example.test:22 [9.9.9.9]",
            "connect files.example.test:22 refused unknown-domain []",
        ];
        assert_eq!(proxy.events.lines(2).await, expected);
    });
}

/// Returns a sandboxed server's environment, extended with the user's ssh key.
fn ssh_environment(proxy: &TestProxy, world: &World) -> Vec<(String, String)> {
    let here = std::env::current_exe().unwrap();
    let program = here.ancestors().nth(2).unwrap().join("examples/egress-connect");
    let mut env: Vec<_> = environment(proxy.address.port(), program.to_str()).into_iter().collect();
    let key = world.path("person.key");
    let (_, ssh) = env.iter_mut().find(|(name, _)| name == "GIT_SSH_COMMAND").unwrap();
    let more = "-F none -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR";
    *ssh = format!("{ssh} {more} -i '{}'", key.display());
    env
}
