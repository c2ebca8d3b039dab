//! A value of a JSON document together with the way to it.

use super::json::Json;
use super::{ExecutionPlanError, Read};

/// Where a value stands: kept as links to the values around it, and written out only for an error.
#[derive(Clone, Copy)]
enum Step<'a> {
    Top,
    Field(&'a At<'a>, &'static str),
    Element(&'a At<'a>, usize),
}

/// A value and its place.
#[derive(Clone, Copy)]
pub(super) struct At<'a> {
    value: &'a Json<'a>,
    step: Step<'a>,
}

impl<'a> At<'a> {
    pub(super) const fn top(value: &'a Json<'a>) -> Self {
        Self { value, step: Step::Top }
    }

    /// The path from the top, such as `gpus[0].threadblocks[2].ops[5].name`.
    pub(super) fn path(&self) -> String {
        match self.step {
            Step::Top => "the plan".to_owned(),
            Step::Field(outer, name) => outer.path_of(name),
            Step::Element(outer, index) => format!("{}[{index}]", outer.path()),
        }
    }

    /// The path of a field of this value.
    pub(super) fn path_of(&self, name: &str) -> String {
        match self.step {
            Step::Top => name.to_owned(),
            _ => format!("{}.{name}", self.path()),
        }
    }

    /// The error that something else is expected here.
    pub(super) fn wrong(&self, expected: &'static str) -> ExecutionPlanError {
        let found = self.value.to_string().chars().take(80).collect();
        ExecutionPlanError::Type { path: self.path(), found, expected }
    }

    pub(super) fn require_object(&self) -> Read<()> {
        if self.value.is_object() { Ok(()) } else { Err(self.wrong("an object")) }
    }

    /// A field, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<&'a Json<'a>> {
        self.value.get(name)
    }

    /// A field that is known to be there, else null.
    pub(super) fn at(&'a self, name: &'static str) -> At<'a> {
        At { value: self.value.get(name).unwrap_or(&Json::Null), step: Step::Field(self, name) }
    }

    /// A field that must be there.
    pub(super) fn need(&'a self, name: &'static str, remedy: &'static str) -> Read<At<'a>> {
        self.require_object()?;
        match self.value.get(name) {
            Some(value) => Ok(At { value, step: Step::Field(self, name) }),
            None => Err(ExecutionPlanError::Missing { path: self.path_of(name), remedy }),
        }
    }

    pub(super) fn text(&self) -> Read<String> {
        self.value.as_text().map(str::to_owned).ok_or_else(|| self.wrong("a text"))
    }

    pub(super) fn flag(&self) -> Read<bool> {
        self.value.as_flag().ok_or_else(|| self.wrong("true or false"))
    }

    /// A whole number of 64 bits.
    pub(super) fn long(&self) -> Read<u64> {
        self.value.as_whole().ok_or_else(|| self.wrong("a whole number from 0 to 18446744073709551615"))
    }

    /// A whole number that fits everything the runtime makes of it.
    pub(super) fn number(&self) -> Read<u32> {
        let number = self.value.as_whole().and_then(|number| u32::try_from(number).ok());
        number.filter(|&number| number <= 1 << 30).ok_or_else(|| self.wrong("a whole number from 0 to 1073741824"))
    }

    pub(super) fn flag_or(&'a self, name: &'static str, default: bool) -> Read<bool> {
        self.get(name).map_or(Ok(default), |_| self.at(name).flag())
    }

    pub(super) fn long_or(&'a self, name: &'static str, default: u64) -> Read<u64> {
        self.get(name).map_or(Ok(default), |_| self.at(name).long())
    }

    /// Every element of a list.
    pub(super) fn each<T>(&self, one: impl Fn(&At<'_>) -> Read<T>) -> Read<Vec<T>> {
        let elements = self.value.as_list().ok_or_else(|| self.wrong("a list"))?;
        let element = |(index, value)| one(&At { value, step: Step::Element(self, index) });
        elements.iter().enumerate().map(element).collect()
    }

    /// Every element of a list that may be left out.
    pub(super) fn list_or_empty<T>(&'a self, name: &'static str, one: impl Fn(&At<'_>) -> Read<T>) -> Read<Vec<T>> {
        match self.get(name) {
            Some(_) => self.at(name).each(one),
            None => Ok(Vec::new()),
        }
    }
}
