//! Fields of a JSON object by name.

use serde_json::{Map, Value};

/// Up to so many fields are found faster by a look at each than by a hash.
const FEW: usize = 8;

/// The field of this name.
pub(crate) fn field<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    if fields.len() > FEW {
        return fields.get(name);
    }
    fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_is_found_among_few_and_among_many() {
        for count in [0, 1, FEW, FEW + 1, 100] {
            let fields: Map<String, Value> = (0..count).map(|at| (at.to_string(), at.into())).collect();
            for at in 0..=count {
                assert_eq!(field(&fields, &at.to_string()), fields.get(&at.to_string()));
            }
        }
    }
}
