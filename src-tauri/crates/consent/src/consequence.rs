//! Describes the effects of a call in one line each, worst effect first. Pure.
//!
//! - Every value with a role is shown in full, either in an effect line or as a named argument.
//! - The line for a tool with unknown effects also shows the first argument, because the tool's name alone says
//!   little.
//! - A line's verb is the verb of the value's worst role ([`ironcurtain_policy::Role::verb`]). The tool's name can
//!   select a different verb for that role, but never a milder one. Only the role, not the tool's name, determines
//!   whether the line says that a program is run.
//! - An argument such as `force` can add to a line's note or select a worse verb, but never a milder one.

mod called;
mod flags;
mod request;

use super::words::{Amount, note};
use super::{Consequence, TextPart};
use crate::found_paths::{FoundPath, FoundPaths};
pub(super) use called::text_of;
use ironcurtain_paths::{CanonicalPath, Link, PathKind};
use ironcurtain_policy::{
    ApprovalSubject, PendingApproval, ResolvedCall, ResolvedValue, Resource, Role, RoleSet, Verb,
};
use ironcurtain_sandbox::autostart;
use ironcurtain_visible as visible;
use serde_json::Value;
use std::cmp::Reverse;

/// Maximum length of a commit title in an effect line, in characters.
const MAX_TITLE_LEN: usize = 120;

/// Call whose effect lines are built.
pub(super) struct CallEffects<'a> {
    pub(super) call: &'a ResolvedCall,
    pub(super) found: &'a FoundPaths,
    pub(super) approvals: &'a [PendingApproval],
    /// Amount of content that would be written or changed, or `None` if unknown.
    pub(super) amount: Option<Amount>,
    /// The user's home directory, used to recognize autostart files.
    pub(super) home: &'a CanonicalPath,
}

/// Effect lines of a call, and the arguments that appear in them.
pub(super) struct ConsequenceLines<'a> {
    pub(super) lines: Vec<Consequence>,
    pub(super) arguments: Vec<&'a str>,
}

/// Returns the effects of a call as lines.
pub(super) fn consequences<'a>(effects: &CallEffects<'a>) -> ConsequenceLines<'a> {
    let mut output = ConsequenceLines { lines: Vec::new(), arguments: Vec::new() };
    if effects.call.is_unannotated() {
        let note = Some("IronCurtain does not know what this tool does".to_owned());
        let called = effects.called(&mut output);
        output.lines.push(Consequence { note, ..Consequence::new(Verb::Call, called) });
        return output;
    }
    effects.commands(&mut output);
    effects.paths(&mut output);
    effects.remotes(&mut output);
    effects.addresses(&mut output);
    effects.people(&mut output);
    effects.github(&mut output);
    effects.request(&mut output);
    // Only the tool knows the default for a missing value, so the line names the tool.
    let absent = |approval: &PendingApproval| approval.subject == ApprovalSubject::Absent;
    if output.lines.is_empty() {
        let called = effects.called(&mut output);
        output.lines.push(Consequence::new(Verb::Use, called));
    } else if effects.approvals.iter().any(absent) {
        output.lines.push(Consequence::new(Verb::Use, vec![untrusted(effects.call.tool())]));
    }
    effects.flags(&mut output);
    output.lines.sort_by_key(|line| (Reverse(line.verb), line.allowed));
    output
}

impl<'a> CallEffects<'a> {
    fn values_with_role(&self, role: Role) -> Vec<&'a ResolvedValue> {
        self.call.values(role).collect()
    }

    fn verb_of_name(&self) -> Option<Verb> {
        Verb::from_tool_name(self.call.tool())
    }

    fn is_allowed(&self, given: &ResolvedValue) -> bool {
        let argument = self.call.argument(given);
        let is_asked = |approval: &PendingApproval| {
            let is_same = match (&approval.subject, &given.value) {
                (ApprovalSubject::Path(asked), Resource::Path(path)) => asked == path,
                (ApprovalSubject::Text(asked), Resource::Url(url)) => **asked == *url.text(),
                (ApprovalSubject::Text(asked), Resource::Text(text)) => asked == text,
                (ApprovalSubject::Text(_), Resource::NonString)
                | (ApprovalSubject::Absent | ApprovalSubject::Call, _) => true,
                (ApprovalSubject::Path(_) | ApprovalSubject::Text(_), _) => false,
            };
            approval.argument == *argument && is_same
        };
        !self.approvals.iter().any(is_asked)
    }

    /// Adds a line for each distinct path. For a moved file, the line includes the destination.
    fn paths(&self, output: &mut ConsequenceLines<'a>) {
        let mut paths: Vec<&ResolvedValue> = Vec::new();
        for given in self.call.given().iter().filter(|given| given.roles.meets(RoleSet::PATHS)) {
            output.arguments.push(self.call.argument(given));
            if !paths.iter().any(|other| other.value == given.value && other.roles == given.roles) {
                paths.push(given);
            }
        }
        let is_deleted = |given: &&ResolvedValue| given.roles.contains(Role::DeletePath);
        let (gone, rest): (Vec<&ResolvedValue>, Vec<&ResolvedValue>) =
            paths.iter().copied().partition(is_deleted);
        let to = match rest.as_slice() {
            [to] if self.verb_of_name() == Some(Verb::Move) && to.roles.contains(Role::WritePath) => {
                Some(*to)
            }
            [] | [_, ..] => None,
        };
        for given in gone {
            let mut line = self.path(given, output);
            if let (Some(to), Some(Resource::Path(path))) = (to, to.map(|to| &to.value)) {
                line.verb = Verb::Move;
                line.object
                    .extend([TextPart::Fixed(" to "), TextPart::Path(visible::isolated_path(path.as_str()))]);
                line.allowed &= self.is_allowed(to);
            }
            output.lines.push(line);
        }
        // If a move replaces a file, that file gets its own line.
        let replaces = |given: &ResolvedValue| to.is_none() || self.target(given) != Some(PathKind::Missing);
        let lines: Vec<Consequence> =
            rest.into_iter().filter(|given| replaces(given)).map(|given| self.path(given, output)).collect();
        output.lines.extend(lines);
    }

    fn path(&self, given: &ResolvedValue, output: &mut ConsequenceLines<'a>) -> Consequence {
        let Resource::Path(path) = &given.value else { return Consequence::new(Verb::Use, Vec::new()) };
        let target = self.target(given);
        let mut verb = self.verb_of_path(given.roles, target);
        let mut object = vec![TextPart::Path(visible::isolated_path(path.as_str()))];
        if let Some(when) = self.autostart_trigger(given.roles, path) {
            verb = Verb::Plant;
            object.splice(
                0..0,
                [TextPart::Fixed("a program that runs "), TextPart::Fixed(when), TextPart::Fixed(": ")],
            );
        }
        let message = self.values_with_role(Role::CommitMessage);
        if let ([message], Verb::Commit) = (message.as_slice(), verb)
            && let Resource::Text(text) = &message.value
        {
            let title = visible::head(text, MAX_TITLE_LEN);
            if title == **text {
                output.arguments.push(self.call.argument(message));
            }
            let title = TextPart::Untrusted(visible::line(&title));
            object =
                vec![title, TextPart::Fixed(" in "), TextPart::Path(visible::isolated_path(path.as_str()))];
        }
        let found = self.found(given);
        // Set only if a symlink led to the path. A relative path or `~` is only a different spelling.
        let asked_for =
            found.filter(|found| !found.links.is_empty()).map(|found| visible::isolated_path(&found.written));
        let leads_out = |link: &&Link| link.path.parent().is_some_and(|folder| !folder.contains(path));
        let out_of =
            found.and_then(|found| found.links.iter().find(leads_out)).and_then(|link| link.path.parent());
        // In a repository folder, git changes only its own records, so the folder's kind is irrelevant.
        let is_known = matches!((verb, target), (Verb::Record | Verb::Commit, Some(PathKind::Folder)));
        let target = target.filter(|_| !is_known);
        let note = target.map(|target| note(verb, target, self.amount.as_ref()));
        let out_of = out_of.map(|folder| visible::isolated_path(folder.as_str()));
        Consequence { verb, object, note, asked_for, out_of, allowed: self.is_allowed(given) }
    }

    /// Returns a phrase for when a written autostart file will run, or `None` for any other file.
    fn autostart_trigger(&self, roles: RoleSet, path: &CanonicalPath) -> Option<&'static str> {
        let is_written = roles.contains(Role::WritePath);
        is_written
            .then(|| autostart::autostart_condition(path.as_str(), Some(self.home.as_str())))?
            .map(|runs| runs.when)
    }

    /// Adds the command or program that the call runs, in full. A program and its arguments share one line.
    fn commands(&self, output: &mut ConsequenceLines<'a>) {
        let mut words = Vec::new();
        for given in self.values_with_role(Role::Command) {
            let argument = self.call.argument(given);
            words.push(match &given.value {
                Resource::Text(text) => text.to_string(),
                // Values that are not plain text.
                Resource::NonString | Resource::Path(_) | Resource::Url(_) => {
                    self.call.transport_arguments().get(&**argument).map(Value::to_string).unwrap_or_default()
                }
            });
            output.arguments.push(argument);
        }
        if !words.is_empty() {
            let command = TextPart::Untrusted(visible::lines(&words.join(" ")));
            output.lines.push(Consequence::new(Verb::Run, vec![command]));
        }
    }

    /// Returns the verb of the worst role, refined by the target's kind and the tool's name.
    fn verb_of_path(&self, roles: RoleSet, target: Option<PathKind>) -> Verb {
        let worst = roles.iter().filter_map(Role::verb).max().unwrap_or(Verb::Use);
        match (worst, self.verb_of_name()) {
            (Verb::Read, Some(Verb::List)) => Verb::List,
            (Verb::Write, Some(Verb::Create))
                if target == Some(PathKind::Missing) && self.amount.is_none() =>
            {
                Verb::Create
            }
            (Verb::Write, named) => match target {
                Some(PathKind::File { .. }) if named != Some(Verb::Change) => Verb::Overwrite,
                Some(PathKind::File { .. } | PathKind::Folder) => Verb::Change,
                Some(PathKind::Missing | PathKind::Special) | None => Verb::Write,
            },
            (Verb::Record, Some(Verb::Commit)) => Verb::Commit,
            (worst, _) => worst,
        }
    }

    fn found(&self, given: &ResolvedValue) -> Option<&'a FoundPath> {
        let Resource::Path(path) = &given.value else { return None };
        let argument = self.call.argument(given);
        self.found.find(argument, path)
    }

    fn target(&self, given: &ResolvedValue) -> Option<PathKind> {
        self.found(given).map(|found| found.target)
    }

    /// Adds git remotes and branches. A tool is assumed to push unless it is known only to fetch.
    fn remotes(&self, output: &mut ConsequenceLines<'a>) {
        let remotes = self.values_with_role(Role::GitRemoteUrl);
        let fetches = self.verb_of_name().is_some_and(Verb::is_read_only);
        let (verb, joint) = if fetches { (Verb::Fetch, "from ") } else { (Verb::Push, "to ") };
        let branches = self.values_with_role(Role::BranchName);
        for given in &remotes {
            let Resource::Url(url) = &given.value else { continue };
            let mut object: Vec<TextPart> = Vec::new();
            for branch in &branches {
                let Resource::Text(text) = &branch.value else { continue };
                output.arguments.push(self.call.argument(branch));
                object.extend([untrusted(text), TextPart::Fixed(" ")]);
            }
            object.extend([TextPart::Fixed(joint), untrusted(url.text())]);
            let argument = self.call.argument(given);
            output.arguments.push(argument);
            let written = self.call.transport_arguments().get(&**argument).and_then(Value::as_str);
            let asked_for = written
                .filter(|written| *written != url.address_to_send() && !written.is_empty())
                .map(untrusted_line);
            let leads_out = verb == Verb::Push && url.domain().is_some();
            output.lines.push(Consequence {
                note: leads_out.then(|| "your code leaves this computer".to_owned()),
                asked_for,
                allowed: self.is_allowed(given),
                ..Consequence::new(verb, object)
            });
        }
    }

    /// Adds URLs and network hosts that the call accesses.
    fn addresses(&self, output: &mut ConsequenceLines<'a>) {
        for given in self.values_with_role(Role::FetchUrl) {
            let Resource::Url(url) = &given.value else { continue };
            output.arguments.push(self.call.argument(given));
            let sends = self.verb_of_name().filter(|named| *named >= Verb::Publish);
            let object = match sends {
                Some(_) => vec![TextPart::Fixed("to "), untrusted(url.text())],
                None => vec![untrusted(url.text())],
            };
            let verb = sends.unwrap_or(Verb::Fetch);
            output
                .lines
                .push(Consequence { allowed: self.is_allowed(given), ..Consequence::new(verb, object) });
        }
        for given in self.values_with_role(Role::ProxyDomain) {
            let Resource::Text(host) = &given.value else { continue };
            output.arguments.push(self.call.argument(given));
            let allowed = self.is_allowed(given);
            output
                .lines
                .push(Consequence { allowed, ..Consequence::new(Verb::Reach, vec![untrusted(host)]) });
        }
    }

    /// Adds people who receive a message or get access to shared data.
    fn people(&self, output: &mut ConsequenceLines<'a>) {
        let permissions = self.values_with_role(Role::SharePermission);
        for given in self.values_with_role(Role::EmailAddress) {
            let Resource::Text(address) = &given.value else { continue };
            output.arguments.push(self.call.argument(given));
            let shares = !permissions.is_empty() || self.verb_of_name() == Some(Verb::Share);
            let (verb, joint) = if shares { (Verb::Share, "with ") } else { (Verb::Send, "a message to ") };
            let mut object = vec![TextPart::Fixed(joint), untrusted(address)];
            for permission in &permissions {
                let Resource::Text(text) = &permission.value else { continue };
                output.arguments.push(self.call.argument(permission));
                object.extend([TextPart::Fixed(" as "), untrusted(text)]);
            }
            // A message is allowed for all recipients or for none, so they share one line.
            output.lines.push(Consequence::new(verb, object));
        }
    }

    /// Adds the GitHub repositories or the account that the call acts on.
    fn github(&self, output: &mut ConsequenceLines<'a>) {
        let (owners, repos) =
            (self.values_with_role(Role::GithubOwner), self.values_with_role(Role::GithubRepo));
        let given: Vec<&ResolvedValue> = owners.iter().chain(&repos).copied().collect();
        let texts = |values: &[&ResolvedValue]| -> Vec<String> {
            let text = |given: &&ResolvedValue| match &given.value {
                Resource::Text(text) => Some(text.to_string()),
                Resource::Path(_) | Resource::Url(_) | Resource::NonString => None,
            };
            values.iter().filter_map(text).collect()
        };
        let (owners, repos) = (texts(&owners).join(", "), texts(&repos).join(", "));
        let name = match (owners.is_empty(), repos.is_empty()) {
            (true, true) => return,
            (false, false) => format!("{owners}/{repos}"),
            (false, true) => owners,
            (true, false) => repos,
        };
        let (verb, object) = match self.verb_of_name() {
            Some(named) if named.is_read_only() => {
                (Verb::Read, vec![untrusted(&name), TextPart::Fixed(" on GitHub")])
            }
            Some(Verb::Delete) => {
                (Verb::Delete, vec![TextPart::Fixed("at "), untrusted(&name), TextPart::Fixed(" on GitHub")])
            }
            Some(_) | None => {
                (Verb::Publish, vec![TextPart::Fixed("to "), untrusted(&name), TextPart::Fixed(" on GitHub")])
            }
        };
        output.arguments.extend(given.iter().map(|given| self.call.argument(given).as_ref()));
        let allowed = given.iter().all(|given| self.is_allowed(given));
        output.lines.push(Consequence { allowed, ..Consequence::new(verb, object) });
    }
}

fn untrusted(text: &str) -> TextPart {
    TextPart::Untrusted(untrusted_line(text))
}

fn untrusted_line(text: &str) -> String {
    visible::line(text)
}

#[cfg(test)]
mod tests;
