//! JSON objects read one level at a time, every value kept as its own text.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::text::Text;

/// One object's members, each value not yet interpreted.
#[derive(Debug)]
pub(crate) struct Object<'a>(Vec<(Text<'a>, &'a RawValue)>);

impl<'a> Object<'a> {
    /// Returns the object that `json` is, or `None` if it is something else.
    pub(crate) fn of(json: &'a str) -> Option<Self> {
        // Asking first spares serde_json the decoding of a long string into an error.
        json.trim_start().starts_with('{').then(|| serde_json::from_str(json).ok()).flatten()
    }

    /// Returns a member's value; a `null` counts as missing, and the last of one name wins.
    pub(crate) fn get(&self, name: &str) -> Option<&'a RawValue> {
        let (_, value) = self.0.iter().rfind(|(key, _)| key.as_str() == name)?;
        (value.get() != "null").then_some(value)
    }

    /// Returns the text of a member that is a string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'a, str>> {
        let json = self.get(name)?.get();
        json.starts_with('"')
            .then(|| serde_json::from_str::<Text<'a>>(json).ok())
            .flatten()
            .map(|Text(it)| it)
    }

    /// Returns a member that is an object.
    pub(crate) fn object(&self, name: &str) -> Option<Object<'a>> {
        self.get(name).and_then(|value| Object::of(value.get()))
    }

    /// Returns every member, in order.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object<'de>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::with_capacity(16);
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Object(members))
    }
}
