//! Combines the rules of all layers that apply to one value or call.
//!
//! - The strictest decision wins. If a managed rule and a user rule are equally strict, the managed rule is reported.
//! - A managed rule that allows decides only if no user rule applies.

use super::cover::LayerRules;
use crate::{Decision, Rule};

/// Rules of all layers that apply to a value or a call.
#[derive(Clone, Copy)]
pub(super) struct Ruling<'a> {
    /// Rule that decides, or `None` if nothing covers the value.
    pub(super) decider: Option<&'a Rule>,
    /// Rule of each managed layer, even if its match is uncertain and no layer decides.
    managed: [Option<&'a Rule>; 2],
}

impl<'a> Ruling<'a> {
    /// Returns the decision of a policy without managed rules.
    pub(super) fn user_only(user: LayerRules<'a>) -> Self {
        Self { decider: user.decider, managed: [None; 2] }
    }

    /// Combines the layers. If at least one layer decides, an uncertain match in another layer still requires approval.
    pub(super) fn combine(managed: [LayerRules<'a>; 2], user: LayerRules<'a>) -> Self {
        let is_decided = managed.iter().chain([&user]).any(|layer| layer.decider.is_some());
        let managed = managed.map(LayerRules::decider_or_possible);
        let decider = match (strictest(managed), user.decider_or_possible()) {
            (Some(managed), Some(user)) if managed.then == Decision::Allow || user.then > managed.then => {
                Some(user)
            }
            (managed, user) => managed.or(user),
        };
        Self { decider: decider.filter(|_| is_decided), managed }
    }

    /// Returns the strictest managed rule that denies the value or requires approval for it.
    pub(super) fn restriction(&self) -> Option<&'a Rule> {
        strictest(self.managed).filter(|rule| rule.restricts())
    }

    /// Returns `true` if a rule overrides a grant created at this time.
    pub(super) fn overrides_grant_of(&self, created_ms: u64) -> bool {
        let mut rules = self.decider.into_iter().chain(self.managed.into_iter().flatten());
        rules.any(|rule| rule.overrides_grant_of(created_ms))
    }
}

fn strictest([first, second]: [Option<&Rule>; 2]) -> Option<&Rule> {
    match (first, second) {
        (Some(first), Some(second)) if second.then > first.then => Some(second),
        (first, second) => first.or(second),
    }
}
