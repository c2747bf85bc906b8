//! The judge: what a tool call means and whether it may happen.
//!
//! - Pure: no IO, no clock, no randomness, no async. Whatever the disk knows comes in as a [`Fact`].
//! - Deny is what is left when nothing allows; the strictest answer over values and roles wins.
//! - A [`Permit`] is made by [`judge`] alone; whoever forwards a call takes one.
//!
//! The way of a call: [`Annotations::plan`] finds the values that name resources, the caller resolves each into a
//! [`Fact`], [`CallPlan::with_facts`] puts the canonical values in place, [`judge`] answers.

pub mod defaults;
pub mod strict;
pub mod words;

mod annotations;
mod arguments;
mod call;
mod decision;
mod denial;
mod domains;
mod error;
mod fields;
mod grants;
mod judge;
mod lists;
mod names;
mod protected;
mod roles;
mod roots;
mod rules;
mod schema;
#[cfg(test)]
mod schemas;
mod shared;
mod spot;
mod verbs;
mod verdict;

pub use annotations::{Annotations, ArgumentRoles, Condition, Guard, ToolAnnotation};
pub use arguments::{CallPlan, PlannedValue};
pub use call::{Fact, Given, ResolvedCall, Resource};
pub use decision::{AllowedBy, Decision, DeniedBy, Reason, Spoken};
pub use denial::Denial;
pub use domains::{Destination, Gates, Pattern, Patterns, is_ip_address};
pub use error::{LoadError, Place};
pub use grants::{AccessSet, Grant, GrantKind, HostGrant};
pub use judge::{Context, Explanation, Miss, Settled, Step, explain, judge};
pub use lists::DynamicLists;
pub use protected::{Kept, KeptThing, Protected};
pub use roles::{Access, Category, Role, RoleSet, Roles};
pub use roots::{OpenFolder, Root, file_uri, open_folders, policy_roots};
pub use rules::{
    DomainsCondition, ListCondition, ListEntry, PathsCondition, Policy, ResolveWithin, Rule, RuleCondition,
    RulesFor,
};
pub use schema::{Misfit, Schema, check as check_schema};
pub use shared::{Shared, SharedStr};
pub use verbs::Verb;
pub use verdict::{Asked, Escalation, Permit, Subject, Verdict};

/// A list that mostly holds one thing: judging asks for no memory then.
pub type Few<T> = smallvec::SmallVec<[T; 1]>;
