//! The offers of the project that the paths of a call lie in. Pure.

use super::{STANDING, tilde, verbs};
use crate::consent::grantable::{Grantable, folders};
use crate::consent::{Lifetime, Offer, Reach};
use crate::grants::GrantLimits;
use ironcurtain_policy::{Access, AccessSet};

/// The offers of the project, the narrower first: to read it, where nothing else is asked for and its own folder is not
/// offered already, and to change it. None where it may not be granted.
pub(super) fn project_offers(client: &str, grantable: &Grantable, limits: GrantLimits<'_>) -> Vec<Offer> {
    let Some(root) = grantable.project.as_ref().filter(|root| limits.may_be_granted(root)) else {
        return Vec::new();
    };
    let name = tilde(root, limits.home);
    let change = grantable.project_access();
    let standing = STANDING.into_iter().filter(|lifetime| !(change.delete && *lifetime == Lifetime::Always));
    let lifetimes: Vec<Lifetime> = standing.collect();
    let offer = |reach, access: AccessSet| Offer {
        reach,
        label: format!("the project {name}, to {}", verbs(access)),
        sentence: format!("{client} may {} everything in the project {name} and below", verbs(access)),
        lifetimes: lifetimes.clone(),
    };
    let read = AccessSet::only(Access::Read);
    let reads = grantable.requested.iter().all(|requested| requested.access == Access::Read);
    let is_its_folder = folders(&grantable.requested).iter().all(|(folder, _)| folder == root);
    let to_read = (reads && !is_its_folder).then(|| offer(Reach::ProjectToRead, read));
    to_read.into_iter().chain([offer(Reach::ProjectToChange, change)]).collect()
}
