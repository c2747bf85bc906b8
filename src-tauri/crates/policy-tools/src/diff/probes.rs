//! Generates the calls on which two policies are compared.
//!
//! - If the arguments' values have few combinations, all are generated. Otherwise, each value of an argument is
//!   combined with representatives of the others, then pairs of arguments are varied, and the result is marked as
//!   incomplete.

use super::slots::Slot;
use serde_json::{Map, Value};

/// Calls generated for one tool.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) arguments: Vec<Map<String, Value>>,
    pub(super) cut_short: bool,
}

/// Generates up to `max` calls with these arguments. `representatives` returns an argument's representative values,
/// which are combined with all values of another argument.
pub(super) fn calls<'a>(
    slots: &'a [Slot<'a>],
    max: usize,
    representatives: impl Fn(&'a Slot<'a>) -> Vec<&'a Option<Value>>,
) -> Calls {
    let all: Vec<Vec<&Option<Value>>> = slots.iter().map(|slot| slot.values.iter().collect()).collect();
    let mut calls = Calls { cut_short: slots.iter().any(|slot| slot.cut_short), ..Calls::default() };
    if combination_count(&all) <= max {
        calls.combine(slots, &all, max);
        return calls;
    }
    calls.cut_short = true;
    let representatives: Vec<Vec<&Option<Value>>> = slots.iter().map(representatives).collect();
    let varied: Vec<usize> =
        (0..slots.len()).filter(|at| all.get(*at).is_some_and(|v| v.len() > 1)).collect();
    // Half of the calls vary a single argument, and the other half vary a pair of arguments.
    let share = (max / 2).checked_div(varied.len()).unwrap_or(max);
    for first in &varied {
        let mut choices =
            limit_combinations(&representatives, share / all.get(*first).map_or(1, Vec::len).max(1));
        use_first_values(&mut choices, &all, *first, share);
        calls.combine(slots, &choices, share);
    }
    let pairs = varied
        .iter()
        .enumerate()
        .flat_map(|(at, first)| varied.iter().skip(at + 1).map(move |second| (*first, *second)));
    let share = (max / 2).checked_div(pairs.clone().count()).unwrap_or(0);
    for (first, second) in pairs {
        let mut choices = limit_combinations(&representatives, 1);
        let values_per_argument = share.isqrt().max(1);
        use_first_values(&mut choices, &all, first, values_per_argument);
        use_first_values(&mut choices, &all, second, values_per_argument);
        calls.combine(slots, &choices, share);
    }
    calls
}

fn combination_count(choices: &[Vec<&Option<Value>>]) -> usize {
    choices.iter().fold(1, |count: usize, values| count.saturating_mul(values.len().max(1)))
}

/// Shortens the lists of representatives until there are at most `max` combinations.
fn limit_combinations<'a>(
    representatives: &[Vec<&'a Option<Value>>],
    max: usize,
) -> Vec<Vec<&'a Option<Value>>> {
    let mut choices = representatives.to_vec();
    while combination_count(&choices) > max.max(1) {
        let longest_list = choices.iter_mut().max_by_key(|values| values.len());
        longest_list.map(Vec::pop);
    }
    choices
}

/// Replaces an argument's representatives with the first `max` of all its values.
fn use_first_values<'a>(
    choices: &mut [Vec<&'a Option<Value>>],
    all: &[Vec<&'a Option<Value>>],
    at: usize,
    max: usize,
) {
    if let (Some(choice), Some(values)) = (choices.get_mut(at), all.get(at)) {
        *choice = values.iter().take(max).copied().collect();
    }
}

impl Calls {
    /// Adds up to `max` combinations of the given values.
    fn combine(&mut self, slots: &[Slot<'_>], choices: &[Vec<&Option<Value>>], max: usize) {
        let mut combined = vec![Map::new()];
        for (slot, values) in slots.iter().zip(choices) {
            let with_value = |call: &Map<String, Value>, value: &Option<Value>| {
                let mut call = call.clone();
                if let Some(value) = value {
                    call.insert(slot.name.to_string(), value.clone());
                }
                call
            };
            let next =
                combined.iter().flat_map(|call| values.iter().map(move |value| with_value(call, value)));
            combined = next.take(max).collect();
        }
        self.arguments.extend(combined);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::sync::Arc;

    /// Returns the calls generated for arguments with these numbers of values. Each call is written as the values of
    /// `w`, `x`, `y` and `z`. The flag is `true` if the calls are incomplete. Each argument has two representatives.
    fn generated(counts: [usize; 4], max: usize) -> (String, bool) {
        let names = ["w", "x", "y", "z"].map(Arc::<str>::from);
        let slot = |(name, count)| Slot {
            name,
            values: (0..count).map(|value| Some(json!(value))).collect(),
            cut_short: false,
        };
        let slots: Vec<Slot<'_>> = names.iter().zip(counts).map(slot).collect();
        let calls = calls(&slots, max, |slot| slot.values.iter().take(2).collect());
        let digits = |call: &Map<String, Value>| call.values().map(Value::to_string).collect::<String>();
        (calls.arguments.iter().map(digits).collect::<Vec<_>>().join(" "), calls.cut_short)
    }

    #[test]
    fn all_combinations_are_generated_within_the_limit() {
        let all = "0000 0001 0010 0011 0020 0021 0100 0101 0110 0111 0120 0121";
        assert_eq!(generated([1, 2, 3, 2], 12), (all.to_owned(), false));
        assert!(generated([1, 2, 3, 2], 11).1);
    }

    #[test]
    fn beyond_the_limit_half_vary_one_argument_and_half_two() {
        // Of 40 calls, 20 vary one argument, 6 for each of three: every value of `x` alone, and every value of `y`
        // and `z` with two values of another argument. The other 20 vary pairs, 6 for each of three: the first two
        // values of both. `w` has one value and is not varied.
        let first = [
            "0000 0100 0200 0300 0400 0500",
            "0000 0010 0020 0100 0110 0120",
            "0000 0001 0002 0100 0101 0102",
        ];
        let two = ["0000 0010 0100 0110", "0000 0001 0100 0101", "0000 0001 0010 0011"];
        assert_eq!(generated([1, 6, 3, 3], 40), ([first, two].concat().join(" "), true));
    }
}
