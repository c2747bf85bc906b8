//! Arguments that are objects or nested lists, whose contents the annotation format cannot describe.
//!
//! - A resource inside such an argument cannot be judged, so the tool cannot be annotated.
//! - An opaque role inside such an argument becomes a role of the argument itself, although no list entry matches its
//!   value.

use super::context::{Argument, Setting};
use super::found::{Found, Meaning};
use super::shape::Shape;
use super::{Confidence, meaning};
use ironcurtain_policy::Role;

/// Error for a resource inside a nested argument, which cannot be judged.
#[derive(Debug, thiserror::Error)]
#[error("`{place}` names a resource inside an argument, where it cannot be judged: {reason}")]
pub(super) struct ResourceInside {
    place: String,
    reason: String,
}

/// Returns the meaning of a nested argument as a whole.
///
/// # Errors
/// Returns [`ResourceInside`] if a value inside names a resource.
pub(super) fn meaning(setting: &Setting, name: &str, shape: &Shape) -> Result<Found, ResourceInside> {
    let mut within = Vec::new();
    leaves(setting, name, name, shape, &mut within);
    if let Some((place, found)) = within.iter().find(|(_, found)| found.is_resource()) {
        return Err(ResourceInside { place: place.clone(), reason: found.reason.clone() });
    }
    let own = within.iter().find(|(_, found)| found.meaning != Meaning::Is(Role::None));
    if let Some((place, found)) = own {
        return Ok(Found { reason: format!("`{place}`: {}", found.reason), ..found.clone() });
    }
    let Some(least) = within.iter().map(|(_, found)| found.confidence).min() else {
        return Ok(Found::none(Confidence::Low, "an object whose content is not described"));
    };
    Ok(Found::none(least, "nothing in it names a resource"))
}

impl Found {
    fn is_resource(&self) -> bool {
        match self.meaning {
            Meaning::Path => true,
            Meaning::Is(role) => role.is_resource(),
        }
    }
}

/// Collects the meaning of every value inside an argument, with its dotted path.
fn leaves(setting: &Setting, place: &str, name: &str, shape: &Shape, within: &mut Vec<(String, Found)>) {
    for (field, shape) in &shape.fields {
        let place = format!("{place}.{field}");
        leaves(setting, &place, field, shape, within);
    }
    if let Some(items) = &shape.items {
        leaves(setting, &format!("{place}[]"), name, items, within);
    }
    if let Some(others) = &shape.others {
        leaves(setting, &format!("{place}.*"), name, others, within);
    }
    let is_leaf = shape.items.is_none() && shape.fields.is_empty() && shape.others.is_none();
    if is_leaf || shape.is_text_besides() {
        within.push((place.to_owned(), meaning::of(setting, &Argument::new(name, shape))));
    }
}
