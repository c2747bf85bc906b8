//! Offers for a folder that contains all paths of a call: the project or a folder that is open for reading. Pure.

use super::{ALL_LIFETIMES, tilde, verbs};
use crate::grantable::{Grantable, folders};
use crate::{Lifetime, Offer, Reach};
use ironcurtain_grants::GrantLimits;
use ironcurtain_paths::CanonicalPath;
use ironcurtain_policy::{Access, AccessSet};

/// Returns the offers to read and to change the project, narrower first. Reading is offered only if the call only reads
/// and no other offer is for this folder. Returns no offers if the project may not be granted.
pub(super) fn project_offers(client: &str, grantable: &Grantable, limits: GrantLimits<'_>) -> Vec<Offer> {
    let Some(root) = grantable.project.as_ref().filter(|root| limits.may_be_granted(root)) else {
        return Vec::new();
    };
    let name = tilde(root, limits.home);
    let change = grantable.access_to_change();
    let offer = |reach, access: AccessSet| Offer {
        reach,
        label: format!("the project {name}, to {}", verbs(access)),
        sentence: format!("{client} may {} everything in the project {name} and below", verbs(access)),
        lifetimes: lasting(grantable),
    };
    let read = AccessSet::only(Access::Read);
    let reads = grantable.requested.iter().all(|requested| requested.access == Access::Read);
    let is_its_folder = folders(&grantable.requested).iter().all(|(folder, _)| folder == root);
    let to_read = (reads && !is_its_folder).then(|| offer(Reach::ProjectToRead, read));
    to_read.into_iter().chain([offer(Reach::ProjectToChange, change)]).collect()
}

/// Returns the offer to change a folder that is already open for reading. Returns `None` if another offer includes the
/// folder or the folder may not be granted.
pub(super) fn open_folder_offer(
    client: &str,
    grantable: &Grantable,
    limits: GrantLimits<'_>,
) -> Option<Offer> {
    let changes = grantable.requested.iter().any(|requested| requested.access != Access::Read);
    let is_named = |root: &CanonicalPath| {
        grantable.project.as_ref() == Some(root)
            || folders(&grantable.requested).iter().all(|(at, _)| at == root)
    };
    let root = grantable
        .readable_folder
        .as_ref()
        .filter(|root| changes && limits.may_be_granted(root) && !is_named(root))?;
    let (name, access) = (tilde(root, limits.home), grantable.access_to_change());
    Some(Offer {
        reach: Reach::OpenFolderToChange,
        label: format!("everything in {name}, which it may read already"),
        sentence: format!("{client} may {} everything in {name} and below", verbs(access)),
        lifetimes: lasting(grantable),
    })
}

/// Returns the lifetimes available for changing a folder.
fn lasting(grantable: &Grantable) -> Vec<Lifetime> {
    ALL_LIFETIMES
        .into_iter()
        .filter(|lifetime| !(grantable.deletes() && *lifetime == Lifetime::Always))
        .collect()
}
