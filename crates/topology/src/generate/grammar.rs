//! The grammar of expressions:
//!
//! ```text
//! expr := call | family [":" args]
//! args := arg {"," arg}          arg := value | key "=" value      (only the first may be a bare value)
//! call := op [":" n] "(" expr {";" expr} ")" [(":" | ",") args]
//! ```
//!
//! A value is any text without `, ; ( )`. What families, keys and values mean is decided elsewhere.

use crate::generate::error::ExpressionError;
use crate::invisible::is_invisible;
use crate::shorten::shorten;

/// Operators that build a network from networks.
pub(super) const OPERATORS: &[&str] = &["line", "degree", "power", "product", "bidirect"];

/// Longest expression, in bytes: room for faults on some thousand links.
const LENGTH_MAX: usize = 64 << 10;
/// Most operators within each other; far beyond what stays within the limits on nodes.
const DEPTH_MAX: usize = 32;

/// A parsed expression.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Expression<'a> {
    /// A family and its arguments.
    Family(Call<'a>),
    /// An operator and what it is applied to.
    Composition(Composition<'a>),
}

/// An operator, what it is applied to, and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Composition<'a> {
    pub(super) operator: &'static str,
    pub(super) position: usize,
    /// Digits after the operator, with their position.
    pub(super) number: Option<(&'a str, usize)>,
    /// At least one.
    pub(super) operands: Vec<Expression<'a>>,
    pub(super) arguments: Vec<Argument<'a>>,
}

/// A family and its arguments.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    pub(super) name: &'a str,
    pub(super) position: usize,
    pub(super) arguments: Vec<Argument<'a>>,
}

/// `value` or `key=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Argument<'a> {
    /// `None` for the bare value that may come first.
    pub(super) key: Option<&'a str>,
    pub(super) value: &'a str,
    /// Where the argument starts, in characters from 1.
    pub(super) position: usize,
}

/// Parses a whole expression. O(length).
pub(super) fn parse(text: &str) -> Result<Expression<'_>, ExpressionError> {
    if text.len() > LENGTH_MAX {
        return Err(ExpressionError::TooLong { found: text.len(), limit: LENGTH_MAX });
    }
    let mut parser = Parser { text, at: 0 };
    if let Some(blank) = text.find(|c: char| c.is_whitespace() || is_invisible(c)) {
        parser.at = blank;
        return Err(parser.unexpected("an expression without white space"));
    }
    let expression = parser.expression(0)?;
    if parser.rest().is_empty() { Ok(expression) } else { Err(parser.unexpected("`,` or the end")) }
}

struct Parser<'a> {
    text: &'a str,
    /// Byte offset of what comes next.
    at: usize,
}

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Where `at` is, in characters from 1.
    fn position(&self) -> usize {
        self.text[..self.at].chars().count() + 1
    }

    fn unexpected(&self, expected: &'static str) -> ExpressionError {
        let found =
            self.rest().chars().next().map_or_else(|| "the end".to_owned(), |c| format!("`{}`", c.escape_debug()));
        ExpressionError::Syntax { position: self.position(), found, expected }
    }

    /// Everything before the first of `stops`.
    fn take_until(&mut self, stops: &[char]) -> &'a str {
        let rest = self.rest();
        let taken = &rest[..rest.find(stops).unwrap_or(rest.len())];
        self.at += taken.len();
        taken
    }

    /// Steps over `token` if it is next.
    fn skip(&mut self, token: char) -> bool {
        let found = self.rest().starts_with(token);
        self.at += if found { token.len_utf8() } else { 0 };
        found
    }

    fn expression(&mut self, depth: usize) -> Result<Expression<'a>, ExpressionError> {
        let position = self.position();
        if depth > DEPTH_MAX {
            return Err(ExpressionError::TooDeep { position, limit: DEPTH_MAX });
        }
        let name = self.take_until(&[':', ',', ';', '(', ')', '=']);
        if name.is_empty() {
            return Err(self.unexpected("the name of a family or operator"));
        }
        if let Some(&operator) = OPERATORS.iter().find(|&&operator| operator == name) {
            return self.composition(operator, position, depth).map(Expression::Composition);
        }
        if self.rest().starts_with('(') {
            return Err(self.unexpected(
                "`:` and arguments, because only line, degree, power, product and bidirect take parentheses",
            ));
        }
        let arguments = self.arguments()?;
        Ok(Expression::Family(Call { name, position, arguments }))
    }

    /// What follows the operator's name.
    fn composition(
        &mut self,
        operator: &'static str,
        position: usize,
        depth: usize,
    ) -> Result<Composition<'a>, ExpressionError> {
        let mut number = None;
        if self.skip(':') {
            let at = self.position();
            let digits = self.take_until(&['(']);
            if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
                self.at -= digits.len();
                return Err(self.unexpected("a number and `(`"));
            }
            number = Some((digits, at));
        }
        if !self.skip('(') {
            return Err(self.unexpected("`(` and an expression"));
        }
        let mut operands = vec![self.expression(depth + 1)?];
        while self.skip(';') {
            operands.push(self.expression(depth + 1)?);
        }
        if !self.skip(')') {
            return Err(self.unexpected("`;` or `)`"));
        }
        // After a parenthesis, a comma can only mean what a colon does.
        let arguments = if self.skip(',') { self.argument_list()? } else { self.arguments()? };
        Ok(Composition { operator, position, number, operands, arguments })
    }

    /// `:` and arguments, if any.
    fn arguments(&mut self) -> Result<Vec<Argument<'a>>, ExpressionError> {
        if self.skip(':') { self.argument_list() } else { Ok(Vec::new()) }
    }

    fn argument_list(&mut self) -> Result<Vec<Argument<'a>>, ExpressionError> {
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.argument(arguments.is_empty())?);
            if !self.skip(',') {
                return Ok(arguments);
            }
        }
    }

    fn argument(&mut self, first: bool) -> Result<Argument<'a>, ExpressionError> {
        let position = self.position();
        let text = self.take_until(&[',', ';', '(', ')']);
        if text.is_empty() {
            return Err(self.unexpected("a value or `key=value`"));
        }
        match text.split_once('=') {
            None if first => Ok(Argument { key: None, value: text, position }),
            None => Err(ExpressionError::LateBareValue { value: shorten(text), position }),
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                Ok(Argument { key: Some(key), value, position })
            }
            Some(_) => {
                self.at -= text.len();
                Err(self.unexpected("`key=value` with a key and a value"))
            }
        }
    }
}
