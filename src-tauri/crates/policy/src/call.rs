//! Calls with canonical values, as judged and as sent to the server.

use crate::annotations::{AnnotatedTool, is_truthy};
use crate::domains::Destination;
use crate::{CallPlan, Category, Denial, JudgedRequest, PlannedValue, Role, RoleSet, file_address};
use ironcurtain_paths::CanonicalPath;
use serde_json::{Map, Value as Json};
use std::borrow::Cow;
use std::sync::Arc;

/// Information about one planned value, supplied by the caller because the judge cannot compute it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// Canonical path. Required for every path value.
    Path(CanonicalPath),
    /// All URLs that git has configured for a remote. Empty if git does not know the remote.
    Remotes(Vec<String>),
    /// No information is needed. The value is normalized according to its role.
    Plain,
    /// The value is judged exactly as written. Used to replay recorded calls.
    Verbatim,
}

/// A call that is ready to be judged and sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedCall {
    tool: Arc<AnnotatedTool>,
    pub(crate) arguments: Arc<Map<String, Json>>,
    /// Roles of all the tool's arguments, including arguments that the call omits.
    pub(crate) carried: RoleSet,
    /// Judged roles of the tool, including those without a value in this call.
    judged: Vec<Role>,
    /// Values that have a role.
    given: Vec<ResolvedValue>,
    /// `true` if the server declares that the tool only reads, and the server cannot currently change or send anything.
    has_read_only_hint: bool,
}

/// One value in the call, in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedValue {
    /// Name of the argument that contains the value.
    argument: Arc<str>,
    /// Roles of the argument.
    pub roles: RoleSet,
    /// Canonical value.
    pub value: Resource,
}

/// Canonical value of an argument, by kind.
#[derive(Debug, Clone, PartialEq)]
pub enum Resource {
    /// A file or folder.
    Path(CanonicalPath),
    /// Network target of a URL or git remote.
    Url(Arc<Destination>),
    /// Any other string.
    Text(Arc<str>),
    /// A value that is not a string. It matches no list entry.
    NonString,
}

impl CallPlan<'_> {
    /// Applies the facts and writes the canonical values into the arguments. Expects one fact per planned value, in
    /// order.
    ///
    /// # Errors
    /// Returns a denial if the facts do not match the plan.
    pub fn resolve(&self, facts: impl IntoIterator<Item = Fact>) -> Result<ResolvedCall, Denial> {
        ResolvedCall::new(self, facts.into_iter())
    }
}

impl ResolvedCall {
    fn new(plan: &CallPlan<'_>, mut facts: impl Iterator<Item = Fact>) -> Result<Self, Denial> {
        let mut call = Self {
            tool: Arc::clone(&plan.tool),
            arguments: Arc::clone(plan.arguments),
            carried: plan.carried,
            judged: plan.judged.clone(),
            given: Vec::new(),
            has_read_only_hint: false,
        };
        for planned in &plan.values {
            call.resolve(planned, facts.next().ok_or_else(fact_count_mismatch)?)?;
        }
        facts.next().map_or(Ok(call), |_| Err(fact_count_mismatch()))
    }

    /// Returns the server name.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.tool.server
    }

    /// Returns the tool name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool.name
    }

    /// Returns `true` if the tool is unannotated, so the meaning of its arguments is unknown.
    #[must_use]
    pub fn is_unannotated(&self) -> bool {
        self.tool.is_unannotated
    }

    /// Sets whether the server declares that the tool only reads. The caller passes `true` only while the server
    /// cannot change or send anything.
    #[must_use]
    pub fn with_read_only_hint(self, has_read_only_hint: bool) -> Self {
        Self { has_read_only_hint, ..self }
    }

    /// Returns `true` if the tool only reads, according to its annotation or, if it is unannotated, its server's
    /// declaration ([`Self::with_read_only_hint`]).
    #[must_use]
    pub fn only_reads(&self) -> bool {
        self.tool.annotation.read_only || self.is_unannotated() && self.has_read_only_hint
    }

    /// Returns the judged request, or `None` for a tool call.
    #[must_use]
    pub fn request(&self) -> Option<JudgedRequest> {
        self.tool.request
    }

    /// Returns the arguments to send, with canonical values.
    #[must_use]
    pub fn transport_arguments(&self) -> &Map<String, Json> {
        &self.arguments
    }

    /// Returns a shared reference to the arguments to send.
    #[must_use]
    pub fn shared_arguments(&self) -> Arc<Map<String, Json>> {
        Arc::clone(&self.arguments)
    }

    /// Returns `true` if the call has this argument and it is neither null nor an empty string.
    pub(crate) fn has_argument(&self, argument: &str) -> bool {
        match self.arguments.get(argument) {
            None | Some(Json::Null) => false,
            Some(Json::String(text)) => !text.is_empty(),
            Some(Json::Bool(_) | Json::Number(_) | Json::Array(_) | Json::Object(_)) => true,
        }
    }

    /// Returns `true` if the call contains no path, URL, host or repository.
    #[must_use]
    pub fn has_no_resource(&self) -> bool {
        self.judged.iter().all(|role| self.values(*role).next().is_none())
    }

    /// Returns the judged roles of the tool, including those without a value in this call.
    #[must_use]
    pub fn roles(&self) -> &[Role] {
        &self.judged
    }

    /// Returns `true` if a folder argument in this call includes everything in the folder.
    pub(crate) fn descends(&self) -> bool {
        let annotation = &self.tool.annotation;
        annotation.descends
            || annotation
                .recursion_arguments
                .iter()
                .any(|name| self.arguments.get(&**name).is_some_and(is_truthy))
    }

    /// Returns the name of the argument that contains a value.
    #[must_use]
    pub fn argument<'a>(&self, value: &'a ResolvedValue) -> &'a Arc<str> {
        &value.argument
    }

    /// Returns the values that have a role.
    #[must_use]
    pub fn given(&self) -> &[ResolvedValue] {
        &self.given
    }

    /// Iterates over the values with this role, even if the role is not judged.
    pub fn values(&self, role: Role) -> impl Iterator<Item = &ResolvedValue> + Clone {
        self.given.iter().filter(move |given| given.roles.contains(role))
    }

    /// Iterates over the call's paths, each with its role and argument name.
    pub fn paths(&self) -> impl Iterator<Item = (Role, &str, &CanonicalPath)> {
        self.judged.iter().flat_map(|role| {
            self.values(*role).filter_map(|given| match &given.value {
                Resource::Path(path) => Some((*role, &**self.argument(given), path)),
                Resource::Url(_) | Resource::Text(_) | Resource::NonString => None,
            })
        })
    }

    /// Adds the canonical values for one planned value and updates the arguments to send.
    fn resolve(&mut self, planned: &PlannedValue<'_>, fact: Fact) -> Result<(), Denial> {
        match (category(planned), fact) {
            (Category::Path, Fact::Path(path)) => {
                if self.tool.request.is_some() && file_address(&path).is_none() {
                    let reason = format!(
                        "`{path}` has no `file:` URI that all servers interpret the same way; use one of the \
                         server's tools"
                    );
                    return Err(Denial::invalid(reason));
                }
                self.set_argument(planned, path.as_str());
                self.add_value(planned, Resource::Path(path));
            }
            (Category::Url, Fact::Remotes(urls)) if planned.is_remote() => self.add_remotes(planned, &urls),
            (Category::Url, Fact::Plain | Fact::Verbatim) => self.add_address(planned),
            (Category::Identifier | Category::Opaque, Fact::Plain | Fact::Verbatim)
                if planned.raw.is_none() =>
            {
                self.add_value(planned, Resource::NonString);
            }
            (Category::Identifier, Fact::Plain) => {
                let canonical = lower_case(planned.text());
                self.set_argument(planned, &canonical);
                self.add_value(planned, Resource::Text((*canonical).into()));
            }
            (Category::Identifier | Category::Opaque, Fact::Plain | Fact::Verbatim) => {
                self.add_value(planned, Resource::Text(planned.text().into()));
            }
            (_, Fact::Path(_) | Fact::Remotes(_) | Fact::Plain | Fact::Verbatim) => {
                let reason = format!("argument `{}` was not resolved", planned.argument);
                return Err(Denial::invalid(reason));
            }
        }
        Ok(())
    }

    /// Adds a remote's URLs. If git knows no URL, the remote itself is judged as an address, and an omitted remote as
    /// an unknown address.
    fn add_remotes(&mut self, planned: &PlannedValue<'_>, urls: &[String]) {
        if urls.is_empty() {
            return match planned.raw {
                Some(_) => self.add_address(planned),
                None => self.add_value(planned, Resource::Url(Destination::unknown("(unknown)").into())),
            };
        }
        if let Some(raw) = planned.raw {
            self.set_argument(planned, Destination::parse(Role::GitRemoteUrl, raw).text());
        }
        for url in urls {
            self.add_value(planned, Resource::Url(Destination::parse(Role::GitRemoteUrl, url).into()));
        }
    }

    fn add_address(&mut self, planned: &PlannedValue<'_>) {
        let Some(raw) = planned.raw else {
            // An empty string counts as an address. A missing argument does not.
            if self.arguments.get(&**planned.argument).is_some_and(Json::is_string) {
                self.add_value(planned, Resource::Url(Destination::unknown("(unknown)").into()));
            }
            return;
        };
        let role = if planned.is_remote() { Role::GitRemoteUrl } else { Role::FetchUrl };
        let destination = Destination::parse(role, raw);
        self.set_argument(planned, destination.address_to_send());
        self.add_value(planned, Resource::Url(destination.into()));
    }

    fn set_argument(&mut self, planned: &PlannedValue<'_>, canonical: &str) {
        if planned.raw == Some(canonical) {
            return;
        }
        let arguments = Arc::make_mut(&mut self.arguments);
        let Some(argument) = arguments.get_mut(&**planned.argument) else { return };
        let slot = match planned.index {
            Some(index) => argument.get_mut(index),
            None => Some(argument),
        };
        if let Some(slot) = slot {
            *slot = Json::String(canonical.to_owned());
        }
    }

    fn add_value(&mut self, planned: &PlannedValue<'_>, value: Resource) {
        self.given.push(ResolvedValue {
            argument: Arc::clone(planned.argument),
            roles: planned.roles,
            value,
        });
    }
}

/// Converts text to lower case. Does not copy ASCII text that is already lower case.
fn lower_case(text: &str) -> Cow<'_, str> {
    let is_lower = text.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower { Cow::Borrowed(text) } else { Cow::Owned(text.to_lowercase()) }
}

/// Returns the category that determines how a value is normalized. All resource roles of a value have the same
/// category.
fn category(planned: &PlannedValue<'_>) -> Category {
    let has_any = |roles| planned.roles.meets(roles);
    match () {
        () if has_any(RoleSet::PATHS) => Category::Path,
        () if has_any(RoleSet::URLS) => Category::Url,
        () if has_any(RoleSet::IDENTIFIERS) => Category::Identifier,
        () => Category::Opaque,
    }
}

fn fact_count_mismatch() -> Denial {
    Denial::invalid("not every value of the call was resolved")
}
