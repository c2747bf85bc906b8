//! Checks that all parsers read every number exactly, because calls are sent as the client wrote them.
//!
//! - An integer without a fraction or exponent must be exact as an `f64` or fit into 64 bits. Otherwise, a program
//!   that supports longer integers would read a different number than the one that was judged and shown.
//! - Every program reads a number with a fraction or an exponent as the nearest `f64`. The JSON parser rejects
//!   numbers beyond the range of `f64`.

use super::ReadError;

/// Checks that all parsers read every number in a JSON text exactly.
///
/// # Errors
/// Returns [`ReadError`] for the first number that some parser may read differently.
pub fn check_numbers(json: &str) -> Result<(), ReadError> {
    let mut rest = json;
    while let Some(at) = rest.find(|c: char| c == '"' || c == '-' || c.is_ascii_digit()) {
        let (_, from_number) = rest.split_at(at);
        rest = match from_number.strip_prefix('"') {
            Some(text) => after_string(text),
            None => {
                let (number, after) =
                    from_number.split_at(from_number.find(ends_number).unwrap_or(from_number.len()));
                let inexact = || inexact_number(number, json.len() - from_number.len(), json);
                is_exact(number).then_some(after).ok_or_else(inexact)?
            }
        };
    }
    Ok(())
}

/// Returns the text after a string literal whose opening quote has already been consumed.
fn after_string(mut text: &str) -> &str {
    while let Some((before, after)) = text.split_once(['"', '\\']) {
        if text.as_bytes().get(before.len()) == Some(&b'"') {
            return after;
        }
        let mut escaped = after.chars();
        escaped.next();
        text = escaped.as_str();
    }
    ""
}

fn ends_number(c: char) -> bool {
    !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')
}

fn is_exact(number: &str) -> bool {
    let is_long = || number.parse::<i64>().is_err() && number.parse::<u64>().is_err();
    let rounds = || number.parse::<f64>().is_ok_and(|nearest| format!("{nearest:.0}") != number);
    number.contains(['.', 'e', 'E']) || !is_long() || !rounds()
}

fn inexact_number(number: &str, at: usize, json: &str) -> ReadError {
    let digits = number.trim_start_matches('-').len();
    let line = json.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
    let message = format!("a whole number of {digits} digits cannot be read exactly");
    ReadError { line: Some(line), field: String::new(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strict::UniqueKeys;
    use serde_json::Value;

    fn read(json: &str) -> Value {
        let UniqueKeys(value) = serde_json::from_str(json).unwrap();
        value
    }

    #[test]
    fn a_long_decimal_number_is_the_nearest_f64() {
        for number in [
            "907.3038322028689",
            "-31.245270191439438",
            "1.7976931348623157e308",
            "2.2250738585072011e-308",
            "0.10000000000000000555111512312578270211815834045410156250001",
            "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880.0",
        ] {
            let nearest: f64 = number.parse().unwrap();
            assert_eq!(read(number).as_f64(), Some(nearest), "{number}");
            assert_eq!(read(&read(number).to_string()), read(number), "{number}, written down");
            assert_eq!(check_numbers(number), Ok(()), "{number}");
        }
    }

    #[test]
    fn a_whole_number_is_exact_or_refused() {
        for number in [
            "0",
            "-0",
            "1",
            "9007199254740993",
            "18446744073709551615",
            "-9223372036854775808",
            "18446744073709551616",
            "100000000000000000000",
            "-100000000000000000000",
        ] {
            let zero = number == "-0";
            let held = read(number).as_f64().map(|nearest| format!("{nearest:.0}"));
            let whole = read(number).as_i64().is_some() || read(number).as_u64().is_some();
            assert!(whole || zero || held.as_deref() == Some(number), "{number}");
            assert_eq!(check_numbers(number), Ok(()), "{number}");
        }
        for (number, digits) in [
            ("18446744073709551617", 20),
            ("-9223372036854775809", 19),
            ("123456789012345678901234567890", 30),
            ("-123456789012345678901234567890", 30),
        ] {
            let message = check_numbers(number).unwrap_err().to_string();
            assert_eq!(message, format!("a whole number of {digits} digits cannot be read exactly"));
            let with_exponent = format!("{number}e0");
            assert_eq!(check_numbers(&with_exponent), Ok(()), "every program reads the nearest f64");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for number in ["1e400", "-1e400", &"9".repeat(400)] {
            let error = serde_json::from_str::<UniqueKeys>(number).unwrap_err().to_string();
            assert!(error.starts_with("number out of range"), "{error}");
        }
        assert_eq!(read("1e-400"), 0.0, "every program reads a tiny number as zero");
    }

    #[test]
    fn numbers_are_found_anywhere_except_in_strings() {
        let long = "123456789012345678901234567890";
        for (json, line) in [
            (format!(r#"{{"a\\":[1,"\"",{{"b":{long}}}]}}"#), 1),
            (format!("[\"\\\\\",{long},\n{long}]"), 1),
            (format!("[\n1,\n\"é\\u0022\",-{long},\n2\n]"), 3),
        ] {
            assert_eq!(check_numbers(&json).unwrap_err().line, Some(line), "{json}");
            assert_eq!(check_numbers(&json.replace(long, "1")), Ok(()), "{json}");
            assert_eq!(
                check_numbers(&json.replace(long, &format!("\"{long}\"")).replace('-', "")),
                Ok(()),
                "{json}"
            );
        }
        let texts = format!(r#"{{"{long}":"{long} \" {long} \\","\\":"\\\"{long}"}}"#);
        read(&texts);
        assert_eq!(check_numbers(&texts), Ok(()));
    }
}
