//! Makes up calls in which two policies may differ.
//!
//! - Where they are few, every combination of the values of all arguments. Where they are many, every value of each
//!   argument beside a few of the others, and then pairs of arguments: that is said to be cut short.

use super::slots::Slot;
use serde_json::{Map, Value};

/// Calls of one tool.
#[derive(Default)]
pub(super) struct Calls {
    pub(super) arguments: Vec<Map<String, Value>>,
    pub(super) cut_short: bool,
}

/// Calls of a tool with these arguments, up to a number. `few` picks the values of an argument that stand beside all
/// values of another.
pub(super) fn calls<'a>(
    slots: &'a [Slot<'a>],
    most: usize,
    few: impl Fn(&'a Slot<'a>) -> Vec<&'a Option<Value>>,
) -> Calls {
    let all: Vec<Vec<&Option<Value>>> = slots.iter().map(|slot| slot.values.iter().collect()).collect();
    let mut calls = Calls { cut_short: slots.iter().any(|slot| slot.cut_short), ..Calls::default() };
    if number(&all) <= most {
        calls.combine(slots, &all, most);
        return calls;
    }
    calls.cut_short = true;
    let few: Vec<Vec<&Option<Value>>> = slots.iter().map(few).collect();
    let varied: Vec<usize> =
        (0..slots.len()).filter(|at| all.get(*at).is_some_and(|v| v.len() > 1)).collect();
    // Half of them vary one argument, the others two.
    let share = (most / 2).checked_div(varied.len()).unwrap_or(most);
    for one in &varied {
        let mut choices = narrowed(&few, share / all.get(*one).map_or(1, Vec::len).max(1));
        widen(&mut choices, &all, *one, share);
        calls.combine(slots, &choices, share);
    }
    let pairs = varied
        .iter()
        .enumerate()
        .flat_map(|(at, one)| varied.iter().skip(at + 1).map(move |other| (*one, *other)));
    let share = (most / 2).checked_div(pairs.clone().count()).unwrap_or(0);
    for (one, other) in pairs {
        let mut choices = narrowed(&few, 1);
        let side = share.isqrt().max(1);
        widen(&mut choices, &all, one, side);
        widen(&mut choices, &all, other, side);
        calls.combine(slots, &choices, share);
    }
    calls
}

fn number(choices: &[Vec<&Option<Value>>]) -> usize {
    choices.iter().fold(1, |number: usize, values| number.saturating_mul(values.len().max(1)))
}

/// The first of the choices of each argument, so that no more than so many calls can be made of them.
fn narrowed<'a>(few: &[Vec<&'a Option<Value>>], most: usize) -> Vec<Vec<&'a Option<Value>>> {
    let mut choices = few.to_vec();
    while number(&choices) > most.max(1) {
        let longest = choices.iter_mut().max_by_key(|values| values.len());
        longest.map(Vec::pop);
    }
    choices
}

/// Lets one argument have the first of all its values.
fn widen<'a>(choices: &mut [Vec<&'a Option<Value>>], all: &[Vec<&'a Option<Value>>], at: usize, most: usize) {
    if let (Some(choice), Some(values)) = (choices.get_mut(at), all.get(at)) {
        *choice = values.iter().take(most).copied().collect();
    }
}

impl Calls {
    /// Adds every combination, up to a number.
    fn combine(&mut self, slots: &[Slot<'_>], choices: &[Vec<&Option<Value>>], most: usize) {
        let mut combined = vec![Map::new()];
        for (slot, values) in slots.iter().zip(choices) {
            let with = |call: &Map<String, Value>, value: &Option<Value>| {
                let mut call = call.clone();
                if let Some(value) = value {
                    call.insert(slot.name.to_string(), value.clone());
                }
                call
            };
            let next = combined.iter().flat_map(|call| values.iter().map(move |value| with(call, value)));
            combined = next.take(most).collect();
        }
        self.arguments.extend(combined);
    }
}
