//! Arguments that are objects or nested lists, whose contents the annotation format cannot describe.
//!
//! - A resource inside such an argument cannot be judged, so the tool cannot be annotated.
//! - An opaque role inside such an argument becomes a role of the argument itself, although no list entry matches its
//!   value.

use super::context::{Argument, ToolContext};
use super::inference::{Inference, Meaning};
use super::shape::Shape;
use super::{Confidence, meaning};
use ironcurtain_policy::Role;

/// Error for a resource inside a nested argument, which cannot be judged.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` names a resource inside an argument, where it cannot be judged: {reason}")]
pub(super) struct NestedResource {
    path: String,
    reason: String,
}

/// Returns the meaning of a nested argument as a whole.
///
/// # Errors
/// Returns [`NestedResource`] if a value inside names a resource.
pub(super) fn infer(context: &ToolContext, name: &str, shape: &Shape) -> Result<Inference, NestedResource> {
    let mut inferences = Vec::new();
    collect_leaves(context, name, name, shape, &mut inferences);
    if let Some((path, found)) = inferences.iter().find(|(_, found)| found.is_resource()) {
        return Err(NestedResource { path: path.clone(), reason: found.reason.clone() });
    }
    let opaque = inferences.iter().find(|(_, found)| found.meaning != Meaning::Role(Role::None));
    if let Some((path, found)) = opaque {
        return Ok(Inference { reason: format!("`{path}`: {}", found.reason), ..found.clone() });
    }
    let Some(lowest) = inferences.iter().map(|(_, found)| found.confidence).min() else {
        return Ok(Inference::none(Confidence::Low, "an object whose content is not described"));
    };
    Ok(Inference::none(lowest, "nothing in it names a resource"))
}

impl Inference {
    fn is_resource(&self) -> bool {
        match self.meaning {
            Meaning::Path => true,
            Meaning::Role(role) => role.is_resource(),
        }
    }
}

/// Collects the meaning of every value inside an argument, with its dotted path.
fn collect_leaves(
    context: &ToolContext,
    path: &str,
    name: &str,
    shape: &Shape,
    inferences: &mut Vec<(String, Inference)>,
) {
    for (field, shape) in &shape.fields {
        let path = format!("{path}.{field}");
        collect_leaves(context, &path, field, shape, inferences);
    }
    if let Some(items) = &shape.items {
        collect_leaves(context, &format!("{path}[]"), name, items, inferences);
    }
    if let Some(others) = &shape.undeclared {
        collect_leaves(context, &format!("{path}.*"), name, others, inferences);
    }
    let is_leaf = shape.items.is_none() && shape.fields.is_empty() && shape.undeclared.is_none();
    if is_leaf || shape.can_be_string_itself() {
        inferences.push((path.to_owned(), meaning::infer(context, &Argument::new(name, shape))));
    }
}
