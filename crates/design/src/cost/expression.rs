//! Expressions of networks to price, spelled like generator expressions where both exist.

use crate::cost::network::{Network, NetworkError, SIZE_MAX, slim_fly_degree};

/// Longest expression, in bytes.
const BYTES_MAX: usize = 256;
/// One of each family.
const EXAMPLES: &str =
    "dfc2:32x32,terminals=16  dragonfly-router:p=4,a=8,h=4  slim-fly:q=19  torus:10x10x10  fat-tree:k=16";

/// Errors of reading an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum ExpressionError {
    #[error("the expression has more than {BYTES_MAX} bytes; write one such as `dfc2:32x32,terminals=16`")]
    TooLong,
    #[error("`{name}` is not a network that canopy can price; write one of: {EXAMPLES}")]
    Unknown { name: String },
    #[error("`{family}` does not take `{found}`; it takes {takes}")]
    Argument { family: &'static str, found: String, takes: &'static str },
    #[error("`{key}` of `{family}` is given twice; give it once")]
    Twice { family: &'static str, key: &'static str },
    #[error("`{family}` needs {what}; it takes {takes}")]
    Missing { family: &'static str, what: &'static str, takes: &'static str },
    #[error("{key}: `{found}` is not a whole number below 2^64")]
    Number { key: &'static str, found: String },
    #[error(transparent)]
    Network(#[from] NetworkError),
}

/// What a family is called and takes: a bare value or none, and keys.
struct Family {
    name: &'static str,
    bare: Option<&'static str>,
    keys: &'static [&'static str],
    takes: &'static str,
    make: fn(&Arguments<'_>) -> Result<Network, ExpressionError>,
}

const TERMINALS: &[&str] = &["terminals"];

const FAMILIES: [Family; 5] = [
    Family {
        name: "dfc2",
        bare: Some("two sizes"),
        keys: TERMINALS,
        takes: "rows and columns such as `32x32`, and `terminals` of a switch (1 if not given)",
        make: dfc2,
    },
    Family {
        name: "dragonfly-router",
        bare: None,
        keys: &["p", "a", "h"],
        takes: "`h`, and `p` and `a` (h and 2h if not given)",
        make: dragonfly,
    },
    Family {
        name: "slim-fly",
        bare: None,
        keys: &["q", "terminals"],
        takes: "`q`, and `terminals` of a switch (half of its other ports if not given)",
        make: slim_fly,
    },
    Family {
        name: "torus",
        bare: Some("extents"),
        keys: TERMINALS,
        takes: "extents such as `10x10x10`, and `terminals` of a switch (1 if not given)",
        make: torus,
    },
    Family { name: "fat-tree", bare: None, keys: &["k"], takes: "`k`", make: fat_tree },
];

impl Network {
    /// Reads an expression such as `dfc2:32x32,terminals=16`.
    ///
    /// # Errors
    /// [`ExpressionError`], the first, with what would be accepted. O(text), and that of [`Network::checked`].
    pub fn read(expression: &str) -> Result<Self, ExpressionError> {
        if expression.len() > BYTES_MAX {
            return Err(ExpressionError::TooLong);
        }
        let (name, rest) = expression.trim().split_once(':').unwrap_or((expression.trim(), ""));
        let family = FAMILIES.iter().find(|family| family.name == name);
        let family = family.ok_or_else(|| ExpressionError::Unknown { name: name.to_owned() })?;
        let network = (family.make)(&Arguments::read(family, rest)?)?;
        Ok(network.checked()?)
    }
}

/// What is given to a family, each key once.
struct Arguments<'a> {
    family: &'static Family,
    bare: Option<&'a str>,
    given: Vec<(&'static str, u64)>,
}

impl<'a> Arguments<'a> {
    fn read(family: &'static Family, text: &'a str) -> Result<Self, ExpressionError> {
        let mut read = Self { family, bare: None, given: Vec::new() };
        let unknown = |found: &str| ExpressionError::Argument {
            family: family.name,
            found: found.to_owned(),
            takes: family.takes,
        };
        for (place, item) in text.split(',').enumerate().filter(|_| !text.is_empty()) {
            let Some((key, value)) = item.split_once('=') else {
                if place > 0 || family.bare.is_none() {
                    return Err(unknown(item));
                }
                read.bare = Some(item);
                continue;
            };
            let key = family.keys.iter().find(|known| **known == key).ok_or_else(|| unknown(key))?;
            if read.given.iter().any(|(earlier, _)| earlier == key) {
                return Err(ExpressionError::Twice { family: family.name, key });
            }
            read.given.push((key, number(key, value)?));
        }
        Ok(read)
    }

    fn find(&self, key: &str) -> Option<u64> {
        self.given.iter().find(|(known, _)| *known == key).map(|(_, value)| *value)
    }

    fn need(&self, key: &'static str) -> Result<u64, ExpressionError> {
        self.find(key).ok_or_else(|| self.missing(key))
    }

    /// The bare value `10x10x10`.
    fn extents(&self) -> Result<Vec<u64>, ExpressionError> {
        let what = self.family.bare.unwrap_or_default();
        let bare = self.bare.ok_or_else(|| self.missing(what))?;
        bare.split('x').map(|extent| number(what, extent)).collect()
    }

    const fn missing(&self, what: &'static str) -> ExpressionError {
        ExpressionError::Missing { family: self.family.name, what, takes: self.family.takes }
    }
}

fn number(key: &'static str, text: &str) -> Result<u64, ExpressionError> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.then(|| text.parse().ok()).flatten();
    number.ok_or_else(|| ExpressionError::Number { key, found: text.to_owned() })
}

fn dfc2(arguments: &Arguments<'_>) -> Result<Network, ExpressionError> {
    let [rows, columns] =
        <[u64; 2]>::try_from(arguments.extents()?).map_err(|_| arguments.missing("two sizes such as `32x32`"))?;
    Ok(Network::Dfc2 { rows, columns, terminals: arguments.find("terminals").unwrap_or(1) })
}

fn dragonfly(arguments: &Arguments<'_>) -> Result<Network, ExpressionError> {
    let h = arguments.need("h")?;
    let (p, a) = (arguments.find("p").unwrap_or(h), arguments.find("a").unwrap_or(h.saturating_mul(2)));
    Ok(Network::DragonflyRouter { p, a, h })
}

fn slim_fly(arguments: &Arguments<'_>) -> Result<Network, ExpressionError> {
    let q = arguments.need("q")?;
    // Beyond the greatest order it does not matter: that is refused.
    let usual = slim_fly_degree(q.min(SIZE_MAX)).div_ceil(2);
    Ok(Network::SlimFly { q, terminals: arguments.find("terminals").unwrap_or(usual) })
}

fn torus(arguments: &Arguments<'_>) -> Result<Network, ExpressionError> {
    Ok(Network::Torus { extents: arguments.extents()?, terminals: arguments.find("terminals").unwrap_or(1) })
}

fn fat_tree(arguments: &Arguments<'_>) -> Result<Network, ExpressionError> {
    Ok(Network::FatTree { k: arguments.need("k")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_and_written() {
        for (text, complete) in [
            ("dfc2:32x16,terminals=64", "dfc2:32x16,terminals=64"),
            (" dfc2:3x3 ", "dfc2:3x3,terminals=1"),
            ("dragonfly-router:p=4,a=8,h=4", "dragonfly-router:p=4,a=8,h=4"),
            ("dragonfly-router:h=13", "dragonfly-router:p=13,a=26,h=13"),
            ("slim-fly:q=19", "slim-fly:q=19,terminals=15"),
            ("torus:8x8x4,terminals=2", "torus:8x8x4,terminals=2"),
            ("fat-tree:k=16", "fat-tree:k=16"),
        ] {
            let network = Network::read(text).unwrap();
            assert_eq!(network.to_string(), complete);
            assert_eq!(Network::read(complete), Ok(network));
        }
    }

    #[test]
    fn refusals_say_what_would_be_accepted() {
        for (text, words) in [
            ("", "`` is not a network that canopy can price; write one of: dfc2:32x32"),
            ("ring:8", "`ring` is not a network that canopy can price"),
            ("dfc2", "`dfc2` needs two sizes; it takes rows and columns"),
            ("dfc2:4", "`dfc2` needs two sizes such as `32x32`"),
            ("dfc2:4x-1", "two sizes: `-1` is not a whole number"),
            ("dfc2:4x99999999999999999999", "is not a whole number below 2^64"),
            ("dfc2:0x4", "rows: 0 is out of range; use 1 to 1000000"),
            ("dfc2:4x4,terminals=0", "terminals: 0 is out of range; use 1 to 1000000"),
            ("dfc2:4x4,t=1", "`dfc2` does not take `t`; it takes rows and columns"),
            ("dfc2:4x4,terminals=1,terminals=2", "`terminals` of `dfc2` is given twice"),
            ("dfc2:4x4,4x4", "`dfc2` does not take `4x4`"),
            ("dfc2:1000000x1000000", "1000000000000 switches are too many; use at most 1000000000"),
            ("slim-fly:q=18446744073709551615", "q: 18446744073709551615 is out of range; use 3 to 1000000"),
            ("slim-fly:q=0", "q: 0 is out of range; use 3 to"),
            ("slim-fly:q=10", "no Slim Fly has order 10"),
            ("slim-fly:19", "`slim-fly` does not take `19`"),
            ("dragonfly-router:p=1,a=2", "`dragonfly-router` needs h"),
            ("dragonfly-router:h=18446744073709551615", "is out of range; use 1 to 1000000"),
            ("fat-tree:k=5", "k: 5 ports cannot be halved"),
            ("torus:4x2", "extents: 2 is out of range; use 3 to"),
        ] {
            let found = Network::read(text).unwrap_err().to_string();
            assert!(found.contains(words), "{text}: {found}");
        }
        assert_eq!(Network::read(&"x".repeat(300)), Err(ExpressionError::TooLong));
    }
}
