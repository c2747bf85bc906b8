//! A call with every value in its canonical form: what is judged, and what is sent.

use crate::domains::Destination;
use crate::judge::INVALID_ARGUMENT;
use crate::{CallPlan, Category, Denial, PlannedValue, Role};
use ironcurtain_paths::CanonicalPath;
use serde_json::{Map, Value as Json};

/// What the caller found out about one planned value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// Where a path leads. The only fact a path takes.
    Path(CanonicalPath),
    /// Every address a git remote stands for, by the word of git; none when git knows none.
    Remotes(Vec<String>),
    /// Nothing to find out: the value is made canonical by its role.
    Plain,
    /// The value is judged exactly as it is written: for replaying recorded calls.
    Verbatim,
}

/// A call ready to be judged and sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ResolvedCall {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Map<String, Json>,
    pub(crate) descends: bool,
    /// Every role any argument of the tool carries.
    pub(crate) carried: Vec<Role>,
    /// Every judged role of the tool, also those the call gives no value for.
    pub(crate) judged: Vec<RoleValues>,
    /// Values of roles that are never judged alone.
    pub(crate) opaque: Vec<RoleValues>,
}

/// The values of one role.
#[derive(Debug, Clone, PartialEq)]
pub struct RoleValues {
    /// The role.
    pub role: Role,
    /// Its values, each with the argument it came in.
    pub values: Vec<(String, Resource)>,
}

/// A value in canonical form.
#[derive(Debug, Clone, PartialEq)]
pub enum Resource {
    /// A path.
    Path(CanonicalPath),
    /// An address.
    Url(Destination),
    /// A text.
    Text(String),
    /// Not a text: no list covers it.
    Shapeless,
}

impl ResolvedCall {
    pub(crate) fn new(plan: CallPlan, facts: Vec<Fact>) -> Result<Self, Denial> {
        if facts.len() != plan.values.len() {
            return Err(Denial::new(INVALID_ARGUMENT, "not every value of the call was resolved"));
        }
        let judged = plan.carried.iter().filter(|role| role.is_resource());
        let mut call = Self {
            server: plan.server,
            tool: plan.tool,
            arguments: plan.arguments,
            descends: plan.descends,
            judged: judged.map(|role| RoleValues { role: *role, values: Vec::new() }).collect(),
            carried: plan.carried,
            opaque: Vec::new(),
        };
        for (planned, fact) in plan.values.iter().zip(facts) {
            for value in call.resolve(planned, fact)? {
                for role in &planned.roles {
                    call.give(*role, &planned.argument, value.clone());
                }
            }
        }
        Ok(call)
    }

    /// The server.
    #[must_use]
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.tool
    }

    /// The arguments to send, canonical values in place.
    #[must_use]
    pub fn transport_arguments(&self) -> &Map<String, Json> {
        &self.arguments
    }

    /// Every judged role of the tool with its values.
    #[must_use]
    pub fn roles(&self) -> &[RoleValues] {
        &self.judged
    }

    /// Every path of the call with its role and its argument.
    pub fn paths(&self) -> impl Iterator<Item = (Role, &str, &CanonicalPath)> {
        self.judged.iter().flat_map(|of| {
            of.values.iter().filter_map(|(argument, value)| match value {
                Resource::Path(path) => Some((of.role, argument.as_str(), path)),
                Resource::Url(_) | Resource::Text(_) | Resource::Shapeless => None,
            })
        })
    }

    /// The values of a role, judged or not.
    pub(crate) fn values(&self, role: Role) -> &[(String, Resource)] {
        self.judged
            .iter()
            .chain(&self.opaque)
            .find(|of| of.role == role)
            .map_or(&[], |of| of.values.as_slice())
    }

    /// The canonical values of one planned value, put in place in the arguments.
    fn resolve(&mut self, planned: &PlannedValue, fact: Fact) -> Result<Vec<Resource>, Denial> {
        match (category(planned), fact) {
            (Category::Path, Fact::Path(path)) => {
                self.put(planned, path.as_str());
                Ok(vec![Resource::Path(path)])
            }
            (Category::Url, Fact::Remotes(urls)) if planned.is_remote() => Ok(self.remotes(planned, &urls)),
            (Category::Url, Fact::Plain | Fact::Verbatim) => Ok(self.address(planned)),
            (Category::Identifier | Category::Opaque, Fact::Plain | Fact::Verbatim)
                if planned.raw.is_none() =>
            {
                Ok(vec![Resource::Shapeless])
            }
            (Category::Identifier, Fact::Plain) => {
                let canonical = planned.text().to_lowercase();
                self.put(planned, &canonical);
                Ok(vec![Resource::Text(canonical)])
            }
            (Category::Identifier | Category::Opaque, Fact::Plain | Fact::Verbatim) => {
                Ok(vec![Resource::Text(planned.text().to_owned())])
            }
            (_, Fact::Path(_) | Fact::Remotes(_) | Fact::Plain | Fact::Verbatim) => {
                let reason = format!("argument `{}` was not resolved", planned.argument);
                Err(Denial::new(INVALID_ARGUMENT, reason))
            }
        }
    }

    /// What a remote stands for. A name that git does not know is taken for an address: no pattern covers it.
    fn remotes(&mut self, planned: &PlannedValue, urls: &[String]) -> Vec<Resource> {
        let written = self.address(planned);
        if urls.is_empty() {
            return written;
        }
        urls.iter().map(|url| Resource::Url(Destination::parse(Role::GitRemoteUrl, url))).collect()
    }

    fn address(&mut self, planned: &PlannedValue) -> Vec<Resource> {
        let Some(raw) = &planned.raw else { return Vec::new() };
        let role = if planned.is_remote() { Role::GitRemoteUrl } else { Role::FetchUrl };
        let destination = Destination::parse(role, raw);
        self.put(planned, destination.text());
        vec![Resource::Url(destination)]
    }

    fn put(&mut self, planned: &PlannedValue, canonical: &str) {
        let Some(argument) = self.arguments.get_mut(&planned.argument) else { return };
        let place = match planned.index {
            Some(index) => argument.get_mut(index),
            None => Some(argument),
        };
        if let Some(place) = place {
            *place = Json::String(canonical.to_owned());
        }
    }

    fn give(&mut self, role: Role, argument: &str, value: Resource) {
        let value = (argument.to_owned(), value);
        if let Some(of) = self.judged.iter_mut().chain(&mut self.opaque).find(|of| of.role == role) {
            of.values.push(value);
        } else {
            self.opaque.push(RoleValues { role, values: vec![value] });
        }
    }
}

/// The category a value is made canonical by: that of its resource roles, which agree.
fn category(planned: &PlannedValue) -> Category {
    planned.roles.iter().find(|role| role.is_resource()).map_or(Category::Opaque, |role| role.category())
}
