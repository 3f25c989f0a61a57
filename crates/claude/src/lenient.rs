//! Reads what can be read of an object in which something is not as expected.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

/// Reads an object without those of its fields that the type cannot take; `None` if it is no object.
///
/// For types whose fields all have a default. It is for objects that could not be read as they are: every field is tried
/// on its own.
pub(crate) fn from_str<T: DeserializeOwned>(object: &str) -> Option<T> {
    let fields: BTreeMap<String, &RawValue> = serde_json::from_str(object).ok()?;
    let field = |(name, value): (String, &RawValue)| format!("{}:{value}", Value::from(name));
    let fits = |field: &String| serde_json::from_str::<T>(&format!("{{{field}}}")).is_ok();
    let fitting: Vec<String> = fields.into_iter().map(field).filter(fits).collect();
    serde_json::from_str(&format!("{{{}}}", fitting.join(","))).ok()
}

/// Reads an object, without those of its fields that the type cannot take if need be; `None` if it is no object.
pub(crate) fn from_value<T: DeserializeOwned>(object: &Value) -> Option<T> {
    // A list could pass for an object's values in their order.
    let object = object.is_object().then_some(object)?;
    T::deserialize(object).ok().or_else(|| from_str(&object.to_string()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Thing {
        name: String,
        count: u32,
        parts: Vec<String>,
    }

    #[test]
    fn a_field_that_does_not_fit_costs_no_other() {
        let odd = json!({ "name": "a", "count": "many", "parts": null, "\u{1f600}\"": [] });
        let expected = Thing { name: "a".into(), ..Thing::default() };
        assert_eq!(from_value::<Thing>(&odd), Some(expected));
        assert_eq!(from_value::<Thing>(&json!(["a"])), None);
        let deep = format!(r#"{{"name":"a","parts":{}{}}}"#, "[".repeat(1000), "]".repeat(1000));
        assert_eq!(from_str::<Thing>(&deep).unwrap().name, "a");
    }
}
