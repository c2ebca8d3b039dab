//! Arithmetic over fields of JSON objects: `+ - * / ^`, parentheses, numbers and paths.

use serde_json::Value;

use super::RowError;

/// An expression that is being read, and the objects whose fields it names.
pub(super) struct Field<'a> {
    rest: &'a str,
    objects: &'a [Value],
}

impl<'a> Field<'a> {
    pub(super) fn new(text: &'a str, objects: &'a [Value]) -> Self {
        Self { rest: text, objects }
    }

    pub(super) fn value(mut self) -> Result<f64, RowError> {
        let value = self.sum()?;
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() { Ok(value) } else { Err(format!("`{}` is left over", self.rest).into()) }
    }

    fn takes(&mut self, sign: char) -> bool {
        let after = self.rest.trim_start().strip_prefix(sign);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }

    fn sum(&mut self) -> Result<f64, RowError> {
        let mut value = self.product()?;
        loop {
            if self.takes('+') {
                value += self.product()?;
            } else if self.takes('-') {
                value -= self.product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<f64, RowError> {
        let mut value = self.power()?;
        loop {
            if self.takes('*') {
                value *= self.power()?;
            } else if self.takes('/') {
                value /= self.power()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn power(&mut self) -> Result<f64, RowError> {
        let base = self.factor()?;
        Ok(if self.takes('^') { base.powf(self.factor()?) } else { base })
    }

    fn factor(&mut self) -> Result<f64, RowError> {
        if self.takes('(') {
            let value = self.sum()?;
            return if self.takes(')') { Ok(value) } else { Err("a parenthesis is not closed".into()) };
        }
        self.rest = self.rest.trim_start();
        let mut depth = 0_u32;
        let end = self.rest.find(|c: char| {
            depth = depth + u32::from(c == '[') - u32::from(c == ']' && depth > 0);
            depth == 0 && !(c.is_alphanumeric() || "_.:]".contains(c))
        });
        let (word, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return Ok(word.parse()?);
        }
        let (object, path) = match word.as_bytes() {
            [letter @ b'a'..=b'z', b':', ..] => (usize::from(letter - b'a'), &word[2..]),
            _ => (0, word),
        };
        let object = self.objects.get(object).ok_or_else(|| format!("`{word}`: there are fewer commands"))?;
        numeric(at(object, path)?).ok_or_else(|| format!("`{word}` is not a number").into())
    }
}

/// The value at a path: names and indices after points; `[name=text]` is the first entry of a list with this text.
fn at<'a>(object: &'a Value, path: &str) -> Result<&'a Value, RowError> {
    let mut value = object;
    let mut rest = path;
    while !rest.is_empty() {
        let (step, after) = match rest.strip_prefix('[').and_then(|inside| inside.split_once(']')) {
            Some(found) => found,
            None => rest.split_at(rest.find('.').unwrap_or(rest.len())),
        };
        rest = after.strip_prefix('.').unwrap_or(after);
        let found = match (value, step.split_once('=')) {
            (Value::Array(entries), Some((name, text))) => {
                entries.iter().find(|entry| entry.get(name).and_then(Value::as_str) == Some(text))
            }
            (Value::Array(entries), None) => step.parse().ok().and_then(|index: usize| entries.get(index)),
            (other, _) => other.get(step),
        };
        value = found.ok_or_else(|| format!("nothing at `{step}` of `{path}`"))?;
    }
    Ok(value)
}

/// Numbers, exact fractions as text, and `true` as 1.
fn numeric(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::Bool(flag) => Some(f64::from(u8::from(*flag))),
        Value::String(text) => match text.split_once('/') {
            Some((above, below)) => Some(above.parse::<f64>().ok()? / below.parse::<f64>().ok()?),
            None => text.parse().ok(),
        },
        Value::Array(entries) => u32::try_from(entries.len()).ok().map(f64::from),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_added_up() {
        let objects = [
            json!({"bound":{"algbw":"100/3","tight":true},"sizes":[{"time_ps":8}],"found":[{"name":"a(b;c)","t":"3/4"}]}),
            json!({"sizes":[{"time_ps":2}]}),
        ];
        for (text, value) in [
            ("bound.algbw * 3 - 1", 99.0),
            ("a:sizes.0.time_ps / b:sizes.0.time_ps", 4.0),
            ("found.[name=a(b;c)].t + bound.tight", 1.75),
            ("(1 + 2) * 4 / 1e1", 1.2),
            ("2 * (a:sizes.0.time_ps * b:sizes.0.time_ps)^(1 / 4)", 4.0),
            ("sizes", 1.0),
        ] {
            let found = Field::new(text, &objects).value().unwrap();
            assert!((found - value).abs() < 1e-12, "{text}: {found}");
        }
        for text in
            ["bound", "nothing", "b:nothing", "1 +", "(1", "1 1", "c:x", "2 ^", "sizes.1.time_ps", "sizes.[x=y]"]
        {
            assert!(Field::new(text, &objects).value().is_err(), "{text}");
        }
        assert!(Field::new("b:x", &objects[..1]).value().is_err());
    }
}
