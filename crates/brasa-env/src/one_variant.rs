//! Settings that are one of several: a choice among the variants of an enum, read so that a second one is not overlooked.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error, IgnoredAny, MapAccess, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer, forward_to_deserialize_any};

/// Reads an enum of which a config holds one variant, for `#[serde(deserialize_with = "brasa_env::one_variant")]`.
///
/// A change of a single key may put a second variant beside the first: `--set scenario.uara.reward.rate.per_mbps=1` where the
/// file has `binary`. What serde says of that names neither.
///
/// ```
/// #[derive(Debug, serde::Deserialize)]
/// #[serde(rename_all = "kebab-case", deny_unknown_fields)]
/// enum Paint {
///     Plain,
///     Striped { width_m: f64 },
///     Dotted { radius_m: f64 },
/// }
///
/// #[derive(Debug, serde::Deserialize)]
/// struct Wall {
///     #[serde(deserialize_with = "brasa_env::one_variant")]
///     paint: Paint,
/// }
/// ```
///
/// # Errors
/// Of the format, for an unknown variant, or for more than one.
pub fn one_variant<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    // Saved states are bytes that describe nothing; nobody writes them by hand.
    if deserializer.is_human_readable() { T::deserialize(Choice(deserializer)) } else { T::deserialize(deserializer) }
}

/// Reads enums by way of maps, so that all keys are seen.
struct Choice<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Choice<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Alternatives { variants, visitor })
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct Alternatives<V> {
    variants: &'static [&'static str],
    visitor: V,
}

fn names(variants: &[&str]) -> String {
    variants.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Alternatives<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "one of {}", names(self.variants))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<V::Value, E> {
        self.visitor.visit_enum(StrDeserializer::new(name))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.visitor.visit_enum(OneKey { variants: self.variants, map })
    }
}

/// A map with one key, the variant.
struct OneKey<A> {
    variants: &'static [&'static str],
    map: A,
}

impl<'de, A: MapAccess<'de>> OneKey<A> {
    /// Reads the value, and makes sure that nothing follows.
    fn value<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<S::Value, A::Error> {
        let value = self.map.next_value_seed(seed)?;
        match self.map.next_key::<String>()? {
            None => Ok(value),
            Some(other) => {
                Err(A::Error::custom(format!("must be one of {}, got `{other}` beside another", names(self.variants))))
            }
        }
    }
}

impl<'de, A: MapAccess<'de>> EnumAccess<'de> for OneKey<A> {
    type Error = A::Error;
    type Variant = Self;

    fn variant_seed<S: DeserializeSeed<'de>>(mut self, seed: S) -> Result<(S::Value, Self), A::Error> {
        match self.map.next_key_seed(seed)? {
            Some(variant) => Ok((variant, self)),
            None => Err(A::Error::custom(format!("must be one of {}, got none", names(self.variants)))),
        }
    }
}

impl<'de, A: MapAccess<'de>> VariantAccess<'de> for OneKey<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.value(PhantomData::<IgnoredAny>)?;
        Err(A::Error::custom("a variant without a value is written as its name alone"))
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.value(seed)
    }

    fn tuple_variant<V: Visitor<'de>>(self, len: usize, visitor: V) -> Result<V::Value, A::Error> {
        self.value(Tuple(len, visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.value(Struct(fields, visitor))
    }
}

/// What is in a variant with several values.
struct Tuple<V>(usize, V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Tuple<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_tuple(self.0, self.1)
    }
}

/// What is in a variant with named values.
struct Struct<V>(&'static [&'static str], V);

impl<'de, V: Visitor<'de>> DeserializeSeed<'de> for Struct<V> {
    type Value = V::Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<V::Value, D::Error> {
        deserializer.deserialize_struct("variant", self.0, self.1)
    }
}
