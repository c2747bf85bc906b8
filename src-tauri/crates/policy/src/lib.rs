//! Determines the meaning of tool calls and decides on them.
//!
//! - Pure: no I/O, no clock, no randomness, no async. The caller supplies information about the disk as [`Fact`]s.
//! - A call that nothing allows is denied. The strictest decision over all values and roles wins.
//! - Only [`judge()`] creates a [`Permit`], and forwarding a call requires one.
//!
//! A call passes through these steps: [`Annotations::plan`] finds the values that name resources, the caller resolves
//! each to a [`Fact`], [`CallPlan::resolve`] inserts the canonical values, and [`judge()`] decides.

pub mod defaults;
pub mod strict;
pub mod words;

mod annotations;
mod call;
mod decision;
mod denial;
mod domains;
mod error;
mod file_writes;
mod grants;
mod json_location;
mod judge;
mod lists;
mod managed_paths;
mod open_folders;
mod plan;
mod protected;
mod requests;
mod roles;
mod rules;
mod schema;
#[cfg(test)]
mod schemas;
mod server_reach;
mod tool_use;
mod verbs;
mod verdict;

pub use annotations::{
    Annotations, ArgumentCondition, ArgumentRoles, ConditionalRoles, ToolAnnotation, Unannotated,
};
pub use call::{Fact, ResolvedCall, ResolvedValue, Resource};
pub use decision::{AllowedBy, Decision, DeniedBy, RuleReason};
pub use denial::Denial;
pub use domains::{AllowedHosts, Destination, HostPattern, HostPatterns, PatternError, is_ip_address};
pub use error::{LoadError, SourceLocation};
pub use file_writes::FileWrites;
pub use grants::{AccessSet, GrantKind, HostGrant, PathGrant, ToolGrant, ToolScope};
pub use judge::{Context, Explanation, ExplanationStep, Mismatch, StepBasis, explain, judge, restriction};
pub use lists::DynamicLists;
pub use open_folders::{OpenFolder, is_suspended, open_folders};
pub use plan::{CallPlan, FileOperation, HostConnection, PlannedValue};
pub use protected::{ProtectedPaths, ReadOnlyPath, ReadOnlyReason};
pub use requests::{AddressError, JudgedRequest, PATH, ResourceAddress, URI, file_address};
pub use roles::{Access, Category, Role, RoleSet, Roles};
pub use rules::{
    DomainsCondition, Layer, ListCondition, ListEntry, PathsCondition, Policy, ResolveWithin, Rule,
    RuleCondition, RulesFor, WithinError,
};
pub use schema::{Schema, SchemaMismatch, check as check_schema};
pub use server_reach::ServerReach;
pub use tool_use::{BoundValue, ToolUse};
pub use verbs::Verb;
pub use verdict::{ApprovalSubject, Escalation, PendingApproval, Permit, Verdict};
