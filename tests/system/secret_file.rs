//! Secrets in the encrypted file, which users choose if no keyring is available. The tests use the `ironcurtain`
//! command and the daemon.
//!
//! - No file, command line or response contains a secret or the passphrase.

use crate::client::Client;
use crate::secrets::{
    NONE, PROOF, SECRET, UNLOCKED, command_lines_with, files_with, install, on_a_bus, sha256, text,
};
use crate::test_home::TestHome;
use crate::world::{World, programs};
use ironcurtain_testkit::programs::output_with_input;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const PASSPHRASE: &str = "four words that nobody knows 7b1d";

/// Returns a command with this home directory, piped standard input and no keyring.
fn command(ours: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("ironcurtain"));
    command.args(arguments).env("IRONCURTAIN_HOME", ours);
    command.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    command
}

fn with_input(mut command: Command, input: &str) -> (bool, String) {
    let output = output_with_input(&mut command, input);
    let said = text(&output);
    assert!(!said.contains(SECRET) && !said.contains(PASSPHRASE), "{said}");
    (output.status.success(), said)
}

pub fn run(ours: &Path, arguments: &[&str], input: &str) -> (bool, String) {
    with_input(command(ours, arguments), input)
}

/// Python script that types a line on a terminal after each expected prompt.
const TYPIST: &str = r"
import fcntl, json, os, pty, struct, sys, termios
lines = json.load(sys.stdin)
pid, terminal = pty.fork()
if pid == 0:
    # Wide, so that no prompt is wrapped.
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, 1000, 0, 0))
    os.execv(sys.argv[1], sys.argv[1:])
said = b''
def heard():
    global said
    try:
        part = os.read(terminal, 4096)
    except OSError:
        part = b''
    said += part
    return part
for prompt, line in lines:
    while prompt.encode() not in said and heard():
        pass
    said = said.partition(prompt.encode())[2] if prompt.encode() in said else said
    os.write(1, prompt.encode())
    os.write(terminal, line.encode() + b'\n')
while heard():
    pass
os.write(1, said)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

pub fn type_at_terminal(ours: &Path, arguments: &[&str], lines: &[(&str, &str)]) -> (bool, String) {
    let mut typist = Command::new("/usr/bin/python3");
    typist.args(["-c", TYPIST]).arg(programs().join("ironcurtain"));
    typist.args(arguments).env("IRONCURTAIN_HOME", ours);
    typist.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
    with_input(typist, &json!(lines).to_string())
}

/// Creates an encrypted file that contains the secret. Returns the file's path.
pub fn create_file_with_secret(ours: &Path) -> PathBuf {
    let made = run(ours, &["secrets", "set", "api", "--make-file"], &format!("{SECRET}\n{PASSPHRASE}\n"));
    assert!(made.0 && made.1.contains("Stored `api` in the encrypted file"), "{made:?}");
    ours.join("state/secrets.age")
}

fn initialize(world: &World, server: &str) -> (Client, Value) {
    let mut client = world.start(server);
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let answer = client.request("initialize", params);
    (client, answer)
}

fn refusal(world: &World) -> String {
    initialize(world, "hostile").1["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn unlocked_file_secret_reaches_only_its_server() {
    on_a_bus("secret_file::unlocked_file_secret_reaches_only_its_server", NONE, || {
        let mut world = World::with(|prepared| {
            install(prepared, "api");
            let path = prepared.home.config.join("mcp-servers.json");
            let mut servers: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            servers["beside"] = servers["hostile"].clone();
            servers["beside"].as_object_mut().unwrap().remove("env");
            fs::write(&path, servers.to_string()).unwrap();
            let path = prepared.home.policy().join("tool-annotations.json");
            let mut annotations: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
            let text = annotations["servers"]["hostile"].to_string().replace("\"hostile\"", "\"beside\"");
            annotations["servers"]["beside"] = serde_json::from_str(&text).unwrap();
            fs::write(&path, annotations.to_string()).unwrap();
            let path = prepared.home.policy().join("compiled-policy.json");
            let rules = fs::read_to_string(&path).unwrap();
            fs::write(&path, rules.replace("[\"hostile\"]", "[\"hostile\",\"beside\"]")).unwrap();
        });
        let ours = world.ours();
        let not_asked = run(&ours, &["secrets", "set", "api"], SECRET);
        assert!(!not_asked.0 && not_asked.1.contains("there is no keyring here"), "{not_asked:?}");
        assert!(not_asked.1.contains("or keep secrets in an encrypted file"), "{not_asked:?}");
        assert!(!ours.join("state/secrets.age").exists(), "the file was not chosen");

        let file = create_file_with_secret(&ours);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let bytes = fs::read(&file).unwrap();
        let head = String::from_utf8_lossy(&bytes[..70]).into_owned();
        assert!(head.starts_with("age-encryption.org/v1\n-> scrypt ") && head.contains(" 18\n"), "{head}");

        let told = refusal(&world);
        assert!(
            told.contains("`env.API_KEY`: the secrets are locked in the encrypted file")
                && told.contains("`ironcurtain secrets unlock`"),
            "{told}"
        );
        let status = || run(&ours, &["status"], "").1;
        assert!(status().contains("LOCKED: unlock with `ironcurtain secrets unlock`"), "{}", status());
        let looked = run(&ours, &["doctor", "--allow-root", "--deep"], "").1;
        assert!(looked.contains("warning  secrets: stored in the encrypted file"), "{looked}");
        assert!(looked.contains("warning  server hostile: not started for this check"), "{looked}");

        let wrong = run(&ours, &["secrets", "unlock"], "four other words\n");
        assert!(
            !wrong.0 && wrong.1.contains("the passphrase is wrong, or the file was changed"),
            "{wrong:?}"
        );
        assert!(refusal(&world).contains("locked"), "a wrong passphrase unlocks nothing");

        let unlocked = run(&ours, &["secrets", "unlock"], &format!("{PASSPHRASE}\n"));
        assert!(unlocked.0 && status().contains("secrets.age, unlocked"), "{unlocked:?}");
        let mut client = world.connect("hostile");
        let session = PathBuf::from(&world.sessions().last().unwrap().sandbox_dir);
        let proof = client.run(&session, &format!("/usr/bin/python3 -c \"{PROOF}\""));
        assert_eq!(proof.ok().trim(), sha256(SECRET));
        client.hang_up();
        let mut beside = world.connect("beside");
        let environment = beside.plain("environ").ok().to_owned();
        assert!(environment.contains("PATH") && !environment.contains(SECRET), "{environment}");
        assert!(!environment.contains("API_KEY"), "{environment}");

        for hidden in [SECRET, PASSPHRASE] {
            assert_eq!(files_with(hidden, &ours), Vec::<String>::new());
            assert_eq!(files_with(hidden, Path::new(&std::env::var("HOME").unwrap())), Vec::<String>::new());
            assert_eq!(command_lines_with(hidden), Vec::<String>::new());
            assert!(!world.log().contains(hidden));
        }
        assert!(run(&ours, &["secrets", "lock"], "").0);
        assert!(refusal(&world).contains("the secrets are locked"));
        assert!(run(&ours, &["secrets", "unlock"], &format!("{PASSPHRASE}\n")).0);
        world.restart_after(|| {});
        assert!(
            refusal(&world).contains("the secrets are locked"),
            "the passphrase is forgotten when the daemon stops"
        );
    });
}

#[test]
fn full_disk_and_external_change_lose_no_secret() {
    on_a_bus("secret_file::full_disk_and_external_change_lose_no_secret", NONE, || {
        let place = TestHome::new(|_| {});
        let ours = place.ours();
        let file = create_file_with_secret(&ours);
        let whole = fs::read(&file).unwrap();
        // Sets the maximum file size to zero.
        let mut full = Command::new("sh");
        full.args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"]).arg(programs().join("ironcurtain"));
        full.args(["secrets", "set", "more"]).env("IRONCURTAIN_HOME", &ours);
        full.env("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent");
        let said = with_input(full, &format!("another\n{PASSPHRASE}\n"));
        assert!(!said.0 && said.1.contains("failed to read or write the encrypted file"), "{said:?}");
        assert_eq!(fs::read(&file).unwrap(), whole);
        let beside = fs::read_dir(file.parent().unwrap()).unwrap().flatten();
        assert!(
            !beside
                .map(|one| one.file_name())
                .any(|name| name.to_string_lossy().starts_with(".ironcurtain-"))
        );

        let mut changed = whole.clone();
        *changed.last_mut().unwrap() ^= 1;
        fs::write(&file, &changed).unwrap();
        let said = run(&ours, &["secrets", "set", "more"], &format!("another\n{PASSPHRASE}\n"));
        assert!(!said.0 && said.1.contains("was modified or truncated after it was written"), "{said:?}");
        assert_eq!(fs::read(&file).unwrap(), changed, "the remaining secrets stay");
        fs::write(&file, &whole).unwrap();
        let said = run(&ours, &["secrets", "set", "more"], &format!("another\n{PASSPHRASE}\n"));
        assert!(said.0, "the permitted counterpart: {said:?}");
        let listed = run(&ours, &["secrets", "list"], &format!("{PASSPHRASE}\n"));
        assert_eq!(listed.1, "api\nmore\n");
    });
}

#[test]
fn returning_keyring_is_not_mixed_with_secrets_file() {
    on_a_bus("secret_file::returning_keyring_is_not_mixed_with_secrets_file", UNLOCKED, || {
        let (place, other) = (TestHome::new(|_| {}), TestHome::new(|_| {}));
        let with_keyring = |ours: &Path, arguments: &[&str], input: &str| {
            let mut command = Command::new(programs().join("ironcurtain"));
            command.args(arguments).env("IRONCURTAIN_HOME", ours);
            with_input(command, input)
        };
        let refused = with_keyring(&place.ours(), &["secrets", "set", "api", "--make-file"], SECRET);
        assert!(!refused.0 && refused.1.contains("secrets are stored in the keyring"), "{refused:?}");
        create_file_with_secret(&place.ours());
        let set =
            with_keyring(&place.ours(), &["secrets", "set", "more"], &format!("another\n{PASSPHRASE}\n"));
        assert!(set.0 && set.1.contains("Stored `more` in the encrypted file"), "{set:?}");
        let listed = with_keyring(&place.ours(), &["secrets", "list"], &format!("{PASSPHRASE}\n"));
        assert_eq!(listed.1, "api\nmore\n");
        let listed = with_keyring(&other.ours(), &["secrets", "list"], "");
        assert!(listed.1.contains("No secrets of IronCurtain in the keyring"), "{listed:?}");
        let looked = with_keyring(&place.ours(), &["doctor", "--allow-root"], "").1;
        assert!(looked.contains("a keyring is available but not used"), "{looked}");
    });
}

#[test]
fn terminal_asks_first_and_reads_passphrase_twice_without_echo() {
    on_a_bus("secret_file::terminal_asks_first_and_reads_passphrase_twice_without_echo", NONE, || {
        let place = TestHome::new(|_| {});
        let (ours, set) = (place.ours(), ["secrets", "set", "api"]);
        let (asked, secret) = ("[y/N] ", "Secret `api` (not shown): ");
        let (new, again) = ("at least four words (not shown): ", "Repeat the passphrase (not shown): ");
        let file = ours.join("state/secrets.age");
        let said = type_at_terminal(&ours, &set, &[(asked, "n")]);
        assert!(!said.0 && said.1.contains("Nothing was stored.") && !file.exists(), "{said:?}");
        let other = [(asked, "y"), (secret, SECRET), (new, PASSPHRASE), (again, "four others in place")];
        let said = type_at_terminal(&ours, &set, &other);
        assert!(!said.0 && said.1.contains("the two passphrases differ") && !file.exists(), "{said:?}");
        let short = [(asked, "y"), (secret, SECRET), (new, "short"), (again, "short")];
        let said = type_at_terminal(&ours, &set, &short);
        assert!(!said.0 && said.1.contains("the passphrase is too short") && !file.exists(), "{said:?}");
        let same = [(asked, "y"), (secret, SECRET), (new, PASSPHRASE), (again, PASSPHRASE)];
        let said = type_at_terminal(&ours, &set, &same);
        assert!(said.0 && said.1.contains("Stored `api` in the encrypted file") && file.exists(), "{said:?}");
    });
}

#[test]
fn missing_key_of_catalog_server_is_reported_before_download() {
    on_a_bus("secret_file::missing_key_of_catalog_server_is_reported_before_download", NONE, || {
        let place = TestHome::new(|_| {});
        let ours = place.ours();
        let add = ["servers", "add", "brave-search", "--yes", "--allow-root"];
        let missed = run(&ours, &add, "");
        let wanted = "`brave-search` needs a secret first; run: ironcurtain secrets set brave-search   (There is no keyring here; you will \
                be offered an encrypted file.)";
        assert!(!missed.0 && missed.1.contains(wanted), "{missed:?}");
        create_file_with_secret(&ours);
        let missed = run(&ours, &add, &format!("{PASSPHRASE}\n"));
        let wanted = "`brave-search` needs a secret first; run: ironcurtain secrets set brave-search\n";
        assert!(!missed.0 && missed.1.contains(wanted) && !missed.1.contains("Download"), "{missed:?}");
        assert!(!place.home.data.join("installs").exists());
    });
}
