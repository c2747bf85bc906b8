//! Recognizes arguments whose names refer to hosts, URLs, hosted repositories, git or mail.

use super::Confidence;
use super::clues::URL_WORDS;
use super::context::{Argument, ToolContext};
use super::inference::{Inference, Meaning};
use ironcurtain_policy::Role;

/// Words that mean the account on whose behalf the tool acts.
const OWN_ACCOUNT_WORDS: [&str; 6] = ["user", "my", "account", "sender", "from", "author"];

/// Words in descriptions that indicate that an address is not a network address.
const OTHER_ADDRESSES: [&str; 12] = [
    "email", "mail", "postal", "street", "city", "memory", "wallet", "cell", "range", "billing", "shipping",
    "person",
];

/// Returns the meaning of an address: a git remote if the tool uses git, otherwise a URL to fetch.
pub(super) fn address_meaning(context: &ToolContext) -> Meaning {
    Meaning::Role(if context.git.is_some() { Role::GitRemoteUrl } else { Role::FetchUrl })
}

/// Recognizes network addresses and hosts.
pub(super) fn address(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    let head = argument.head();
    if context.git.is_some() && (head == "remote" || argument.name() == "remote name") {
        return Some(Inference::role(
            Role::GitRemoteUrl,
            Confidence::High,
            "a git remote, by name or address",
        ));
    }
    if URL_WORDS.contains(&head) {
        let git = ["git", "clone", "repo", "repository", "ssh", "remote"];
        if argument.is_named(&git) {
            let reason = "the address of a repository";
            return Some(Inference::role(Role::GitRemoteUrl, Confidence::Medium, reason));
        }
        let reason = format!("`{head}` names an address");
        return Some(Inference::new(address_meaning(context), Confidence::High, reason));
    }
    if ["site", "webhook"].contains(&head) || head == "address" && !argument.description_has(&OTHER_ADDRESSES)
    {
        let reason = format!("`{head}` may name an address on the network");
        return Some(Inference::new(address_meaning(context), Confidence::Low, reason));
    }
    if ["domain", "host", "hostname"].contains(&head) {
        let is_network_tool =
            context.has_word(&["proxy", "network", "egress", "firewall", "allow", "domain"]);
        let confidence = if is_network_tool { Confidence::High } else { Confidence::Low };
        return Some(Inference::role(Role::ProxyDomain, confidence, "a host on the network"));
    }
    None
}

/// Recognizes a hosted repository's owner and name.
pub(super) fn repository(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    if !context.is_forge() {
        return None;
    }
    let confidence = if context.has_owner_and_repository() { Confidence::High } else { Confidence::Medium };
    match argument.words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["owner" | "org" | "organization"]
        | ["repo" | "repository" | "project", "owner"]
        | ["org" | "organization" | "owner", "name" | "login"] => {
            Some(Inference::role(Role::GithubOwner, confidence, "the account that owns the repository"))
        }
        ["repo" | "repository"] | ["repo" | "repository", "name"] => {
            Some(Inference::role(Role::GithubRepo, confidence, "a hosted repository by its name"))
        }
        _ => None,
    }
}

/// Recognizes branches, commit messages and other git terms.
pub(super) fn git_term(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    if context.git.is_none() && !context.is_forge() {
        return None;
    }
    let head = argument.head();
    let is_branch_tool =
        context.words.iter().any(|word| ["branch", "checkout", "switch"].contains(&word.as_str()));
    if head == "branch" || argument.name().ends_with("branch name") || head == "name" && is_branch_tool {
        return Some(Inference::role(Role::BranchName, Confidence::High, "a branch"));
    }
    let is_pull_request_branch = context.is_forge()
        && (["head", "base"].contains(&head) || argument.is_named(&["base"]) && head == "ref");
    if is_pull_request_branch && argument.shape.can_be_string() {
        return Some(Inference::role(Role::BranchName, Confidence::Medium, "a source or target branch"));
    }
    if context.git.is_some() && head == "message" {
        return Some(Inference::role(Role::CommitMessage, Confidence::High, "a commit message"));
    }
    if !context.git.is_some_and(|operation| operation.known) {
        return None;
    }
    const REVISIONS: [&str; 8] = ["commit", "branch", "ref", "reference", "revision", "tag", "sha", "head"];
    const REVISION_ARGUMENTS: [&str; 6] = ["source", "target", "from", "to", "base", "onto"];
    let revision = REVISION_ARGUMENTS.contains(&head)
        && argument.description_has(&REVISIONS)
        && !argument.description_has(&["path", "directory"]);
    revision.then(|| Inference::none(Confidence::Medium, "a revision of the repository"))
}

/// Recognizes recipients and message texts.
pub(super) fn mail(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    const SENDING_WORDS: [&str; 14] = [
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
    const RECIPIENT_WORDS: [&str; 8] =
        ["cc", "bcc", "recipient", "attendee", "invitee", "guest", "addressee", "receiver"];
    let sends = context.words.iter().any(|word| SENDING_WORDS.contains(&word.as_str()));
    let head = argument.head();
    let has_email_format =
        || argument.shape.flat().any(|shape| shape.formats.iter().any(|format| format.contains("email")));
    let mentions_mail =
        argument.description_has(&["email", "mail", "address", "recipient"]) || has_email_format();
    if RECIPIENT_WORDS.contains(&head)
        || head == "to" && argument.words.len() == 1 && (sends || mentions_mail)
    {
        let confidence = if sends || mentions_mail { Confidence::High } else { Confidence::Medium };
        return Some(Inference::role(Role::EmailAddress, confidence, "a recipient"));
    }
    let is_mail = argument.is_named(&["email"]) || has_email_format() || argument.is_named(&["share"]);
    if is_mail && !argument.is_named(&OWN_ACCOUNT_WORDS) && !is_count(head) {
        let confidence = if sends { Confidence::High } else { Confidence::Medium };
        return Some(Inference::role(Role::EmailAddress, confidence, "a person's address"));
    }
    if is_mail && argument.is_named(&["email"]) {
        return Some(Inference::none(Confidence::Medium, "the acting account, not a recipient"));
    }
    let is_mail_tool = context.has_word(&["mail", "gmail", "email", "outlook", "draft", "compose"])
        || context
            .arguments
            .iter()
            .any(|words| ["to", "recipient", "cc"].contains(&words.join(" ").as_str()));
    if is_mail_tool && sends && ["body", "html", "content", "message"].contains(&head) {
        return Some(Inference::role(Role::EmailBody, Confidence::High, "the text of a message"));
    }
    let mentions_person = argument.has_phrase(&["email address", "e-mail address", "emails of"]);
    if mentions_person && !is_text(head) && !argument.is_named(&OWN_ACCOUNT_WORDS) {
        return Some(Inference::role(
            Role::EmailAddress,
            Confidence::Medium,
            "its description mentions a person's address",
        ));
    }
    None
}

/// Recognizes permissions that the tool gives to other people.
pub(super) fn permission(context: &ToolContext, argument: &Argument<'_>) -> Option<Inference> {
    const SHARING_WORDS: [&str; 6] = ["share", "sharing", "permission", "access", "acl", "invite"];
    let shares = context.words.iter().any(|word| SHARING_WORDS.contains(&word.as_str()));
    let is_permission = ["role", "permission", "access"].contains(&argument.head());
    (shares && is_permission && argument.shape.can_be_string())
        .then(|| Inference::role(Role::SharePermission, Confidence::High, "the permissions of others"))
}

fn is_text(head: &str) -> bool {
    ["query", "body", "subject", "text", "content", "filter", "search", "message", "id"].contains(&head)
}

fn is_count(head: &str) -> bool {
    ["id", "count", "limit", "type", "subject", "query", "format", "template"].contains(&head)
}
