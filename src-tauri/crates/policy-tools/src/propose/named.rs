//! Recognizes arguments whose names refer to hosts, URLs, hosted repositories, git or mail.

use super::Confidence;
use super::clues::URL;
use super::context::{Argument, Setting};
use super::found::{Found, Meaning};
use ironcurtain_policy::Role;

/// Words that mean the account on whose behalf the tool acts.
const OWN: [&str; 6] = ["user", "my", "account", "sender", "from", "author"];

/// Words in descriptions that indicate that an address is not a network address.
const OTHER_ADDRESSES: [&str; 12] = [
    "email", "mail", "postal", "street", "city", "memory", "wallet", "cell", "range", "billing", "shipping",
    "person",
];

/// Returns the meaning of an address: a git remote if the tool uses git, otherwise a URL to fetch.
pub(super) fn address_meaning(setting: &Setting) -> Meaning {
    Meaning::Is(if setting.git.is_some() { Role::GitRemoteUrl } else { Role::FetchUrl })
}

/// Recognizes network addresses and hosts.
pub(super) fn address(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    let head = argument.head();
    if setting.git.is_some() && (head == "remote" || argument.name() == "remote name") {
        return Some(Found::is(Role::GitRemoteUrl, Confidence::High, "a git remote, by name or address"));
    }
    if URL.contains(&head) {
        let git = ["git", "clone", "repo", "repository", "ssh", "remote"];
        if argument.is_named(&git) {
            let reason = "the address of a repository";
            return Some(Found::is(Role::GitRemoteUrl, Confidence::Medium, reason));
        }
        let reason = format!("`{head}` names an address");
        return Some(Found::new(address_meaning(setting), Confidence::High, reason));
    }
    if ["site", "webhook"].contains(&head) || head == "address" && !argument.description_has(&OTHER_ADDRESSES)
    {
        let reason = format!("`{head}` may name an address on the network");
        return Some(Found::new(address_meaning(setting), Confidence::Low, reason));
    }
    if ["domain", "host", "hostname"].contains(&head) {
        let opens = setting.has_word(&["proxy", "network", "egress", "firewall", "allow", "domain"]);
        let confidence = if opens { Confidence::High } else { Confidence::Low };
        return Some(Found::is(Role::ProxyDomain, confidence, "a host on the network"));
    }
    None
}

/// Recognizes a hosted repository's owner and name.
pub(super) fn repository(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    if !setting.is_forge() {
        return None;
    }
    let confidence = if setting.has_owner_and_repository() { Confidence::High } else { Confidence::Medium };
    match argument.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["owner" | "org" | "organization"]
        | ["repo" | "repository" | "project", "owner"]
        | ["org" | "organization" | "owner", "name" | "login"] => {
            Some(Found::is(Role::GithubOwner, confidence, "the account that owns the repository"))
        }
        ["repo" | "repository"] | ["repo" | "repository", "name"] => {
            Some(Found::is(Role::GithubRepo, confidence, "a hosted repository by its name"))
        }
        _ => None,
    }
}

/// Recognizes branches, commit messages and other git terms.
pub(super) fn git_word(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    if setting.git.is_none() && !setting.is_forge() {
        return None;
    }
    let head = argument.head();
    let of_branch =
        setting.words.iter().any(|word| ["branch", "checkout", "switch"].contains(&word.as_str()));
    if head == "branch" || argument.name().ends_with("branch name") || head == "name" && of_branch {
        return Some(Found::is(Role::BranchName, Confidence::High, "a branch"));
    }
    let of_request = setting.is_forge()
        && (["head", "base"].contains(&head) || argument.is_named(&["base"]) && head == "ref");
    if of_request && argument.shape.may_be_text() {
        return Some(Found::is(Role::BranchName, Confidence::Medium, "a source or target branch"));
    }
    if setting.git.is_some() && head == "message" {
        return Some(Found::is(Role::CommitMessage, Confidence::High, "a commit message"));
    }
    if !setting.git.is_some_and(|operation| operation.known) {
        return None;
    }
    const REVISIONS: [&str; 8] = ["commit", "branch", "ref", "reference", "revision", "tag", "sha", "head"];
    const BETWEEN: [&str; 6] = ["source", "target", "from", "to", "base", "onto"];
    let revision = BETWEEN.contains(&head)
        && argument.description_has(&REVISIONS)
        && !argument.description_has(&["path", "directory"]);
    revision.then(|| Found::none(Confidence::Medium, "a revision of the repository"))
}

/// Recognizes recipients and message texts.
pub(super) fn mail(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    const GOES_OUT: [&str; 14] = [
        "send",
        "reply",
        "forward",
        "draft",
        "compose",
        "mail",
        "email",
        "share",
        "invite",
        "permission",
        "notify",
        "transfer",
        "message",
        "attendee",
    ];
    const WRITTEN_TO: [&str; 8] =
        ["cc", "bcc", "recipient", "attendee", "invitee", "guest", "addressee", "receiver"];
    let goes_out = setting.words.iter().any(|word| GOES_OUT.contains(&word.as_str()));
    let head = argument.head();
    let formats =
        || argument.shape.flat().any(|shape| shape.formats.iter().any(|format| format.contains("email")));
    let says_mail = argument.description_has(&["email", "mail", "address", "recipient"]) || formats();
    if WRITTEN_TO.contains(&head) || head == "to" && argument.words.len() == 1 && (goes_out || says_mail) {
        let confidence = if goes_out || says_mail { Confidence::High } else { Confidence::Medium };
        return Some(Found::is(Role::EmailAddress, confidence, "a recipient"));
    }
    let is_mail = argument.is_named(&["email"]) || formats() || argument.is_named(&["share"]);
    if is_mail && !argument.is_named(&OWN) && !is_count(head) {
        let confidence = if goes_out { Confidence::High } else { Confidence::Medium };
        return Some(Found::is(Role::EmailAddress, confidence, "a person's address"));
    }
    if is_mail && argument.is_named(&["email"]) {
        return Some(Found::none(Confidence::Medium, "the acting account, not a recipient"));
    }
    let mails = setting.has_word(&["mail", "gmail", "email", "outlook", "draft", "compose"])
        || setting
            .arguments
            .iter()
            .any(|words| ["to", "recipient", "cc"].contains(&words.join(" ").as_str()));
    if mails && goes_out && ["body", "html", "content", "message"].contains(&head) {
        return Some(Found::is(Role::EmailBody, Confidence::High, "the text of a message"));
    }
    let of_person = argument.has_phrase(&["email address", "e-mail address", "emails of"]);
    if of_person && !is_text(head) && !argument.is_named(&OWN) {
        return Some(Found::is(
            Role::EmailAddress,
            Confidence::Medium,
            "its description mentions a person's address",
        ));
    }
    None
}

/// Recognizes permissions that the tool gives to other people.
pub(super) fn permission(setting: &Setting, argument: &Argument<'_>) -> Option<Found> {
    const SHARES: [&str; 6] = ["share", "sharing", "permission", "access", "acl", "invite"];
    let shares = setting.words.iter().any(|word| SHARES.contains(&word.as_str()));
    let is_permission = ["role", "permission", "access"].contains(&argument.head());
    (shares && is_permission && argument.shape.may_be_text())
        .then(|| Found::is(Role::SharePermission, Confidence::High, "the permissions of others"))
}

fn is_text(head: &str) -> bool {
    ["query", "body", "subject", "text", "content", "filter", "search", "message", "id"].contains(&head)
}

fn is_count(head: &str) -> bool {
    ["id", "count", "limit", "type", "subject", "query", "format", "template"].contains(&head)
}
