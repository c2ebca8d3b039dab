//! The filter language: `field op value` joined by AND.

use std::cmp::Ordering;

use super::TEXT_BYTES_MAX;
use crate::failure::CallFailure;
use crate::service::fields::{Field, Value};

/// Most comparisons in a filter.
const CLAUSES_MAX: usize = 32;

/// Comparisons that must all hold.
#[derive(Debug)]
pub(super) struct Filter<T: 'static>(Vec<Clause<T>>);

#[derive(Debug)]
struct Clause<T: 'static> {
    field: &'static Field<T>,
    operator: Operator,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Operator {
    /// How each is written. One that begins another comes after it.
    const ALL: [(&'static str, Self); 6] = [
        ("!=", Self::Unequal),
        ("<=", Self::LessOrEqual),
        (">=", Self::GreaterOrEqual),
        ("=", Self::Equal),
        ("<", Self::Less),
        (">", Self::Greater),
    ];

    fn holds(self, ordering: Ordering) -> bool {
        match self {
            Self::Equal => ordering.is_eq(),
            Self::Unequal => ordering.is_ne(),
            Self::Less => ordering.is_lt(),
            Self::LessOrEqual => ordering.is_le(),
            Self::Greater => ordering.is_gt(),
            Self::GreaterOrEqual => ordering.is_ge(),
        }
    }
}

impl<T> Filter<T> {
    /// Reads a filter. Positions in errors are bytes from its start.
    pub(super) fn parse(fields: &'static [Field<T>], text: &str) -> Result<Self, CallFailure> {
        if text.len() > TEXT_BYTES_MAX {
            let problem = format!("it is longer than {TEXT_BYTES_MAX} bytes");
            return Err(CallFailure::Filter { position: TEXT_BYTES_MAX, problem });
        }
        let mut reader = Reader { text, position: 0 };
        let mut clauses = Vec::new();
        reader.skip_space();
        while !reader.rest().is_empty() {
            if !clauses.is_empty() {
                reader.keyword_and()?;
            }
            clauses.push(reader.clause(fields)?);
            if clauses.len() > CLAUSES_MAX {
                return Err(reader.error(reader.position, format!("there are more than {CLAUSES_MAX} comparisons")));
            }
            reader.skip_space();
        }
        Ok(Self(clauses))
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether all comparisons hold.
    pub(super) fn accepts(&self, item: &T) -> bool {
        self.0.iter().all(|clause| clause.operator.holds((clause.field.get)(item).compare(&clause.value)))
    }
}

/// The field of this name. The error says which there are.
pub(super) fn field<T>(fields: &'static [Field<T>], name: &str) -> Result<&'static Field<T>, String> {
    fields.iter().find(|field| field.name == name).ok_or_else(|| {
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let name: String = name.chars().take(80).collect();
        format!("`{name}` is not a field; use {}", known.join(", "))
    })
}

struct Reader<'a> {
    text: &'a str,
    position: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        self.text.get(self.position..).unwrap_or_default()
    }

    fn error(&self, position: usize, problem: String) -> CallFailure {
        CallFailure::Filter { position, problem }
    }

    fn skip_space(&mut self) {
        self.position = self.text.len() - self.rest().trim_start().len();
    }

    /// Takes characters while they are wanted.
    fn take(&mut self, wanted: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|character| !wanted(character)).unwrap_or(rest.len());
        self.position += end;
        rest.get(..end).unwrap_or_default()
    }

    fn keyword_and(&mut self) -> Result<(), CallFailure> {
        let start = self.position;
        if self.take(|character| !character.is_whitespace()) != "AND" {
            return Err(self.error(start, "here comes AND, or the end".to_owned()));
        }
        self.skip_space();
        Ok(())
    }

    fn clause<T>(&mut self, fields: &'static [Field<T>]) -> Result<Clause<T>, CallFailure> {
        let start = self.position;
        let name = self.take(|character| character.is_ascii_alphanumeric() || character == '_');
        if name.is_empty() {
            return Err(self.error(start, "here comes the name of a field".to_owned()));
        }
        let field = field(fields, name).map_err(|problem| self.error(start, problem))?;
        self.skip_space();
        let start = self.position;
        let found = Operator::ALL.into_iter().find(|(written, _)| self.rest().starts_with(written));
        let Some((written, operator)) = found else {
            return Err(self.error(start, "here comes one of = != < <= > >=".to_owned()));
        };
        if !field.kind.is_ordered() && !matches!(operator, Operator::Equal | Operator::Unequal) {
            return Err(self.error(start, format!("`{name}` has no order; use = or !=")));
        }
        self.position += written.len();
        self.skip_space();
        let start = self.position;
        let value = field.kind.parse(self.value()?).map_err(|problem| self.error(start, problem))?;
        Ok(Clause { field, operator, value })
    }

    /// A value: up to the next white space, or in double quotes, which cannot be within.
    fn value(&mut self) -> Result<&'a str, CallFailure> {
        let start = self.position;
        if !self.rest().starts_with('"') {
            let value = self.take(|character| !character.is_whitespace());
            return match value {
                "" => Err(self.error(start, "here comes a value".to_owned())),
                value => Ok(value),
            };
        }
        self.position += 1;
        let value = self.take(|character| character != '"');
        if self.rest().is_empty() {
            return Err(self.error(start, "the quotation does not end".to_owned()));
        }
        self.position += 1;
        Ok(value)
    }
}
