//! Deserializers for values of one of two types. Their errors name both types.

use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, Deserialize, Deserializer, Unexpected, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Deserializes `false` as `None`, and an object as `Some`.
pub(super) fn false_or<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<T>, D::Error> {
    struct Reader<T>(PhantomData<T>);
    impl<'de, T: Deserialize<'de>> Visitor<'de> for Reader<T> {
        type Value = Option<T>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("`false` or an object")
        }

        fn visit_bool<E: de::Error>(self, on: bool) -> Result<Self::Value, E> {
            if on { Err(E::invalid_value(Unexpected::Bool(true), &self)) } else { Ok(None) }
        }

        fn visit_map<A: de::MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            T::deserialize(MapAccessDeserializer::new(map)).map(Some)
        }
    }
    from.deserialize_any(Reader(PhantomData))
}

/// Either `"*"` or a list of names.
pub(super) enum NamesOrAll {
    All,
    Names(Vec<String>),
}

impl<'de> Deserialize<'de> for NamesOrAll {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = NamesOrAll;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`\"*\"` or a list of names")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<NamesOrAll, E> {
                if text == "*" {
                    return Ok(NamesOrAll::All);
                }
                Err(E::invalid_value(Unexpected::Str(text), &self))
            }

            fn visit_seq<A: de::SeqAccess<'de>>(self, names: A) -> Result<NamesOrAll, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(names)).map(NamesOrAll::Names)
            }
        }
        from.deserialize_any(Reader)
    }
}
