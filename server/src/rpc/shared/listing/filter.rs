//! The filter language: `field op value`, joined by AND and OR, negated by NOT, grouped by parentheses.
//!
//! NOT binds tighter than AND, and AND than OR. The three are keywords only in capitals and where no field's name can
//! stand, so that no field is lost to them.

use std::cmp::Ordering;

use super::TEXT_BYTES_MAX;
use crate::failure::CallFailure;
use crate::rpc::shared::fields::{Field, Value};

/// Most comparisons in a filter.
const CLAUSES_MAX: usize = 32;
/// Most parentheses and NOTs within one another.
const DEPTH_MAX: usize = 32;

/// A condition on things; without one, everything is wanted.
#[derive(Debug)]
pub(super) struct Filter<T: 'static>(Option<Condition<T>>);

#[derive(Debug)]
enum Condition<T: 'static> {
    /// One comparison holds.
    Holds(Clause<T>),
    /// The inner condition does not hold.
    Not(Box<Self>),
    /// All hold; never empty.
    All(Vec<Self>),
    /// At least one holds; never empty.
    Any(Vec<Self>),
}

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
    /// Reads a filter. Positions in errors are bytes from its start. O(bytes).
    pub(super) fn parse(fields: &'static [Field<T>], text: &str) -> Result<Self, CallFailure> {
        if text.len() > TEXT_BYTES_MAX {
            let problem = format!("it is longer than {TEXT_BYTES_MAX} bytes");
            return Err(CallFailure::Filter { position: TEXT_BYTES_MAX, problem });
        }
        let mut reader = Reader { text, position: 0, clauses: 0, depth: 0 };
        reader.skip_space();
        if reader.rest().is_empty() {
            return Ok(Self(None));
        }
        let condition = reader.any(fields)?;
        match reader.rest().chars().next() {
            None => Ok(Self(Some(condition))),
            Some(')') => Err(reader.error(reader.position, "unexpected closing parenthesis".to_owned())),
            Some(_) => Err(reader.error(reader.position, "expected AND, OR, or the end".to_owned())),
        }
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Whether the condition holds.
    pub(super) fn accepts(&self, item: &T) -> bool {
        self.0.as_ref().is_none_or(|condition| condition.accepts(item))
    }
}

impl<T> Condition<T> {
    fn accepts(&self, item: &T) -> bool {
        match self {
            Self::Holds(clause) => clause.operator.holds(clause.field.kind.of(item).compare(&clause.value)),
            Self::Not(inner) => !inner.accepts(item),
            Self::All(parts) => parts.iter().all(|part| part.accepts(item)),
            Self::Any(parts) => parts.iter().any(|part| part.accepts(item)),
        }
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
    /// Comparisons so far.
    clauses: usize,
    /// Parentheses and NOTs that are open.
    depth: usize,
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

    /// Takes this keyword if it comes next, and white space after it.
    fn keyword(&mut self, keyword: &str) -> bool {
        let ends = |rest: &str| rest.chars().next().is_none_or(|next| next.is_whitespace() || next == '(');
        let found = self.rest().strip_prefix(keyword).is_some_and(ends);
        if found {
            self.position += keyword.len();
            self.skip_space();
        }
        found
    }

    /// Conditions joined by OR.
    fn any<T>(&mut self, fields: &'static [Field<T>]) -> Result<Condition<T>, CallFailure> {
        let mut parts = vec![self.all(fields)?];
        while self.keyword("OR") {
            parts.push(self.all(fields)?);
        }
        Ok(if parts.len() > 1 { Condition::Any(parts) } else { parts.remove(0) })
    }

    /// Conditions joined by AND.
    fn all<T>(&mut self, fields: &'static [Field<T>]) -> Result<Condition<T>, CallFailure> {
        let mut parts = vec![self.one(fields)?];
        while self.keyword("AND") {
            parts.push(self.one(fields)?);
        }
        Ok(if parts.len() > 1 { Condition::All(parts) } else { parts.remove(0) })
    }

    /// A comparison, a condition in parentheses, or the opposite of either; and white space after it.
    fn one<T>(&mut self, fields: &'static [Field<T>]) -> Result<Condition<T>, CallFailure> {
        let start = self.position;
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(self.error(start, format!("parentheses are nested more than {DEPTH_MAX} deep")));
        }
        let condition = if self.keyword("NOT") {
            Condition::Not(Box::new(self.one(fields)?))
        } else if self.rest().starts_with('(') {
            self.position += 1;
            self.skip_space();
            let inner = self.any(fields)?;
            if !self.rest().starts_with(')') {
                let problem = match self.rest() {
                    "" => "missing closing parenthesis".to_owned(),
                    _ => "expected AND, OR, or a closing parenthesis".to_owned(),
                };
                return Err(self.error(if self.rest().is_empty() { start } else { self.position }, problem));
            }
            self.position += 1;
            inner
        } else {
            self.clauses += 1;
            if self.clauses > CLAUSES_MAX {
                return Err(self.error(start, format!("it has more than {CLAUSES_MAX} comparisons")));
            }
            Condition::Holds(self.clause(fields)?)
        };
        self.depth -= 1;
        self.skip_space();
        Ok(condition)
    }

    fn clause<T>(&mut self, fields: &'static [Field<T>]) -> Result<Clause<T>, CallFailure> {
        let start = self.position;
        let name = self.take(|character| character.is_ascii_alphanumeric() || character == '_');
        if name.is_empty() {
            return Err(self.error(start, "expected the name of a field".to_owned()));
        }
        let field = field(fields, name).map_err(|problem| self.error(start, problem))?;
        self.skip_space();
        let start = self.position;
        let found = Operator::ALL.into_iter().find(|(written, _)| self.rest().starts_with(written));
        let Some((written, operator)) = found else {
            return Err(self.error(start, "expected one of = != < <= > >=".to_owned()));
        };
        if !field.kind.is_ordered() && !matches!(operator, Operator::Equal | Operator::Unequal) {
            return Err(self.error(start, format!("`{name}` cannot be ordered; use = or !=")));
        }
        self.position += written.len();
        self.skip_space();
        let start = self.position;
        let value = field.kind.parse(self.value()?).map_err(|problem| self.error(start, problem))?;
        Ok(Clause { field, operator, value })
    }

    /// A value: up to the next white space or parenthesis, or in double quotes, which cannot be within.
    fn value(&mut self) -> Result<&'a str, CallFailure> {
        let start = self.position;
        if !self.rest().starts_with('"') {
            let value = self.take(|character| !character.is_whitespace() && !matches!(character, '(' | ')'));
            return match value {
                "" => Err(self.error(start, "expected a value".to_owned())),
                value => Ok(value),
            };
        }
        self.position += 1;
        let value = self.take(|character| character != '"');
        if self.rest().is_empty() {
            return Err(self.error(start, "missing closing quote".to_owned()));
        }
        self.position += 1;
        Ok(value)
    }
}
