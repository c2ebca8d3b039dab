//! As much of JSON Schema as the schema of topologies uses. A keyword that it does not know is a failure.

use regex::Regex;
use serde_json::{Map, Value};

/// A schema with its definitions.
pub(crate) struct Schema(Value);

impl Schema {
    pub(crate) fn read(text: &str) -> Self {
        Self(serde_json::from_str(text).unwrap())
    }

    /// Where a value is not as the schema says.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.check_by(&self.0, value, "$")
    }

    fn holds(&self, schema: &Value, value: &Value) -> bool {
        self.check_by(schema, value, "").is_ok()
    }

    fn check_by(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = schema.as_object().unwrap();
        for (keyword, wanted) in schema {
            if !self.keyword(schema, (keyword, wanted), value, at)? {
                return Err(format!("{at}: {value} against {keyword}: {wanted}"));
            }
        }
        Ok(())
    }

    /// Whether a value is as one keyword says; errors are those inside of it.
    fn keyword(
        &self,
        schema: &Map<String, Value>,
        (keyword, wanted): (&str, &Value),
        value: &Value,
        at: &str,
    ) -> Result<bool, String> {
        let all = |schemas: &Value| schemas.as_array().cloned().unwrap();
        Ok(match keyword {
            "$schema" | "title" | "description" | "examples" | "default" | "definitions" | "then" | "else" => true,
            "$ref" => {
                let pointer = wanted.as_str().and_then(|text| text.strip_prefix('#')).unwrap();
                self.check_by(self.0.pointer(pointer).unwrap(), value, at)?;
                true
            }
            "type" => match wanted {
                Value::Array(types) => types.iter().any(|name| is_type(value, name)),
                name => is_type(value, name),
            },
            "const" => value == wanted,
            "enum" => wanted.as_array().unwrap().contains(value),
            "pattern" => value.as_str().is_none_or(|text| Regex::new(wanted.as_str().unwrap()).unwrap().is_match(text)),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 >= wanted.as_u64().unwrap()),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() as u64 <= wanted.as_u64().unwrap()),
            "minimum" => value.as_f64().is_none_or(|number| number >= wanted.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= wanted.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|items| items.len() as u64 >= wanted.as_u64().unwrap()),
            "items" => {
                for (position, item) in value.as_array().into_iter().flatten().enumerate() {
                    self.check_by(wanted, item, &format!("{at}[{position}]"))?;
                }
                true
            }
            "required" => {
                let has = |name: &Value| value.get(name.as_str().unwrap()).is_some();
                !value.is_object() || wanted.as_array().unwrap().iter().all(has)
            }
            "properties" => {
                for (name, property) in wanted.as_object().unwrap() {
                    if let Some(found) = value.get(name) {
                        self.check_by(property, found, &format!("{at}.{name}"))?;
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(wanted, &Value::Bool(false));
                let known = schema["properties"].as_object().unwrap();
                value.as_object().is_none_or(|object| object.keys().all(|name| known.contains_key(name)))
            }
            "allOf" => all(wanted).iter().all(|schema| self.holds(schema, value)),
            "anyOf" => all(wanted).iter().any(|schema| self.holds(schema, value)),
            "not" => !self.holds(wanted, value),
            "if" => {
                let branch = if self.holds(wanted, value) { "then" } else { "else" };
                schema.get(branch).is_none_or(|schema| self.holds(schema, value))
            }
            other => panic!("unknown keyword {other}"),
        })
    }
}

fn is_type(value: &Value, name: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("unknown type {other}"),
    }
}
