//! Keys that take away from a finished network: `down`, `nodes-down`, `degrade` and `faults`.

use crate::fault::Fault;
use crate::generate::arguments::{Arguments, value_error};
use crate::generate::error::ExpressionError;
use crate::generate::grammar::Argument;
use crate::generate::random_faults;
use crate::model::Topology;
use crate::part::read_part;
use crate::shorten::shorten;

/// What one key says about faults: an item of its list to a fault, `None` if it cannot be read.
type ReadFault = fn(&str) -> Option<Fault>;

/// Keys that puncture: name, what an item looks like, how it is read.
const FAULT_KEYS: &[(&str, &str, ReadFault)] = &[
    ("nodes-down", "ids joined by `+`, such as `212+020`", |id| Some(Fault::Node { id: id.to_owned() })),
    ("down", "links joined by `+`, such as `100-110+012>112` (`-` for both directions, `>` for one)", link_down),
    ("degrade", "links with fractions joined by `+`, such as `b0g3-ib*1/2+b0g4>ib*3/4`", degraded),
];

/// Whether any key takes something away.
pub(super) fn punctures(arguments: &Arguments<'_>) -> bool {
    FAULT_KEYS.iter().any(|&(key, ..)| arguments.find(key).is_some()) || arguments.find("faults").is_some()
}

/// Takes away what `nodes-down=`, `down=` and `degrade=` name, and what `faults=` draws from the undamaged network.
pub(super) fn puncture(topology: Topology, arguments: &Arguments<'_>) -> Result<Topology, ExpressionError> {
    let mut faults = Vec::new();
    let mut sources: Vec<(&'static str, &Argument<'_>, &str)> = Vec::new();
    for &(key, expected, read) in FAULT_KEYS {
        let Some(argument) = arguments.find(key) else { continue };
        for item in argument.value.split('+') {
            let fault = if item.is_empty() { None } else { read(item) };
            faults.push(fault.ok_or_else(|| value_error(argument, expected))?);
            sources.push((key, argument, item));
        }
    }
    faults.extend(random_faults::draw(&topology, arguments)?);
    if faults.is_empty() {
        return Ok(topology);
    }
    let left = topology.punctured(&faults).map_err(|problem| {
        match problem.position().and_then(|index| sources.get(index)) {
            Some(&(key, Argument { position, .. }, item)) => {
                ExpressionError::Fault { key, position: *position, item: shorten(item), problem: Box::new(problem) }
            }
            None => ExpressionError::Faults(problem),
        }
    })?;
    let named = &faults[..sources.len()];
    random_faults::check_connected(&left, || topology.punctured(named).ok(), arguments)?;
    Ok(left)
}

/// `a-b` or `a>b`: the ends, and whether both ways are meant.
fn ends(item: &str) -> Option<(String, String, bool)> {
    let mut parts = item.split(['-', '>']);
    let (from, to) = (parts.next()?, parts.next()?);
    let usable = !from.is_empty() && !to.is_empty() && parts.next().is_none();
    usable.then(|| (from.to_owned(), to.to_owned(), item.contains('-')))
}

fn link_down(item: &str) -> Option<Fault> {
    ends(item).map(|(from, to, both_ways)| Fault::Link { from, to, both_ways })
}

fn degraded(item: &str) -> Option<Fault> {
    let (link, fraction) = item.split_once('*')?;
    let (numerator, denominator) = read_part(fraction)?;
    ends(link).map(|(from, to, both_ways)| Fault::Degrade { from, to, both_ways, numerator, denominator })
}
