//! Families of graphs of ranks alone, as their arguments name them: which member is meant, what its nodes are called and
//! what its refusals read like.

use canopy_direct::{Digraph, Family, FamilyError, Limit, TooLarge};
use num_integer::gcd;

use crate::error::TopologyError;
use crate::generate::arguments::{Arguments, count, value_error};
use crate::generate::error::ExpressionError;
use crate::limits::TopologyLimits;

/// Longest id of a node, in bytes.
pub(super) const ID_BYTES_MAX: usize = 255;

/// Chips along the side of a cube of TPUs, which optical switches join with others.
const CUBE_SIDE: u64 = 4;

type Member = Result<Family, ExpressionError>;

/// `ring:8`, `ring:8,dir=uni`.
pub(super) fn ring(arguments: &Arguments<'_>) -> Member {
    let n = arguments.bare_number()?;
    let one_way = match arguments.find("dir") {
        None => false,
        Some(argument) => match argument.value {
            "uni" => true,
            "bi" => false,
            _ => return Err(value_error(argument, "`uni` or `bi`")),
        },
    };
    Ok(Family::Ring { n, one_way })
}

/// `circulant:n=16`, `circulant:n=16,offsets=3+4`, each with more parallel links if `d` says so.
pub(super) fn circulant(arguments: &Arguments<'_>) -> Member {
    let n = arguments.number("n", None)?;
    let Some(list) = arguments.find("offsets") else {
        let d = arguments.number("d", Some(4))?;
        return Family::least_circulant(n, d).map_err(|error| refusal(error, arguments));
    };
    let offsets: Vec<u64> = list
        .value
        .split('+')
        .map(|offset| count(list, offset).map(|offset| u64::try_from(offset).unwrap_or(u64::MAX)))
        .collect::<Result<_, _>>()?;
    let pairs = 2 * offsets.len() as u64;
    let copies = match arguments.find("d") {
        None => 1,
        Some(argument) => {
            let d = arguments.number("d", None)?;
            if !d.is_multiple_of(pairs) {
                return Err(value_error(argument, "a multiple of twice the number of offsets"));
            }
            d / pairs
        }
    };
    Ok(Family::Circulant { n, offsets, copies })
}

/// `shifted-ring:n=16`: two rings, both ways, the second in steps of the least number above 1 that visits all ranks; of six or
/// fewer ranks, where there is none, two equal rings.
///
/// Source: Wang et al., "TopoOpt", NSDI 2023; the first baseline of Zhao 2026, §3.7.
pub(super) fn shifted_ring(arguments: &Arguments<'_>) -> Member {
    let n = arguments.number("n", None)?;
    let step = (2..n.div_ceil(2)).find(|step| gcd(*step, n) == 1);
    Ok(match step {
        Some(step) => Family::Circulant { n, offsets: vec![1, step], copies: 1 },
        None => Family::BiRing { n, d: 4 },
    })
}

/// `dfc2:4x4`, `dfc2:3x3x3`: grids with fully joined lines, of two dimensions or more.
pub(super) fn dfc2(arguments: &Arguments<'_>) -> Member {
    let extents = arguments.extents()?;
    match extents.as_slice() {
        &[rows, columns] => Ok(Family::Dfc2 { rows, columns }),
        [_] => Err(value_error(arguments.bare()?, "two sizes such as `4x4`, or more")),
        _ => Ok(Family::Hamming { extents }),
    }
}

/// `distreg:n=32,d=4`.
pub(super) fn distreg(arguments: &Arguments<'_>) -> Member {
    if let (Some(argument), false) = (arguments.find("d"), arguments.number("d", Some(4))? == 4) {
        return Err(value_error(argument, "4, the degree of all known distance-regular networks"));
    }
    Ok(Family::DistanceRegular { n: arguments.number("n", None)? })
}

/// The bare value `4x5`.
pub(super) fn two_sizes(arguments: &Arguments<'_>) -> Result<[u64; 2], ExpressionError> {
    let sizes = arguments.extents()?;
    <[u64; 2]>::try_from(sizes).or_else(|_| Err(value_error(arguments.bare()?, "two sizes such as `4x4`")))
}

/// `tpu-v4:4x4x8`, `tpu-v5p:4x4x8,twist=true`: chips in a grid of three dimensions. Slices of whole cubes of 4 × 4 × 4
/// chips are tori, since their ends meet in optical switches; smaller ones are meshes.
///
/// Source: Jouppi et al., "TPU v4: an optically reconfigurable supercomputer for machine learning", ISCA 2023, §2.
pub(super) fn tpu(arguments: &Arguments<'_>) -> Member {
    let sizes = arguments.extents()?;
    let Ok(sizes) = <[u64; 3]>::try_from(sizes) else {
        return Err(value_error(arguments.bare()?, "three sizes such as `4x4x8`"));
    };
    let extents = sizes.to_vec();
    let is_whole = sizes.iter().all(|size| size.is_multiple_of(CUBE_SIDE));
    match arguments.flag("twist")? {
        Some(argument) => {
            let [first, second, third] = sizes;
            if !is_whole || first != second || first.checked_mul(2) != Some(third) {
                return Err(value_error(argument, "`false`, or sizes a×a×2a that are multiples of 4, such as `4x4x8`"));
            }
            Ok(Family::TwistedTorus { extents })
        }
        None if is_whole => Ok(Family::Torus { extents }),
        None => Ok(Family::Mesh { extents }),
    }
}

/// How large a graph may become.
pub(super) fn limit(limits: &TopologyLimits) -> Limit {
    let narrow = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
    Limit { order_max: narrow(limits.nodes_max), edges_max: narrow(limits.links_max) }
}

/// A graph over the limit, as topologies say it.
pub(super) fn too_large(error: TooLarge) -> ExpressionError {
    let TooLarge { what, found, limit } = error;
    TopologyError::TooLarge { what, found: found.to_string(), limit: limit as usize }.into()
}

/// Why there is no such member, with the place of the argument at fault.
pub(super) fn refusal(error: FamilyError, arguments: &Arguments<'_>) -> ExpressionError {
    match error {
        FamilyError::TooLarge(error) => too_large(error),
        FamilyError::Value { key, found, expected, .. } => {
            let position = arguments.position_of(key);
            ExpressionError::Value { key: key.to_owned(), position, value: found, expected }
        }
    }
}

/// Ids of the nodes of a member: coordinates of grids, words of Kautz graphs, else numbers.
pub(super) fn ids(member: &Family, graph: &Digraph, arguments: &Arguments<'_>) -> Result<Vec<String>, ExpressionError> {
    match member {
        Family::Mesh { extents }
        | Family::Torus { extents }
        | Family::Hamming { extents }
        | Family::TwistedTorus { extents } => grid_ids(extents, arguments),
        Family::Dfc2 { rows, columns } => grid_ids(&[*rows, *columns], arguments),
        Family::Kautz { d, n } => Ok(word_ids(*d, *n)),
        _ => Ok((0..graph.order()).map(|node| node.to_string()).collect()),
    }
}

/// Refuses grids of so many dimensions that ids become too long.
fn grid_ids(extents: &[u64], arguments: &Arguments<'_>) -> Result<Vec<String>, ExpressionError> {
    // A digit and a separator, at least.
    if 2 * extents.len() > ID_BYTES_MAX {
        return Err(value_error(arguments.bare()?, "at most 127 extents, for ids of at most 255 bytes"));
    }
    let numbers = |&extent: &u64| (0..extent).map(|coordinate| coordinate.to_string()).collect();
    Ok(coordinate_ids(&extents.iter().map(numbers).collect::<Vec<_>>()))
}

/// `120` while every extent is at most ten, else `1.2.0`, in row-major order; `letters` are what each coordinate is
/// called.
pub(super) fn coordinate_ids(letters: &[Vec<String>]) -> Vec<String> {
    let separator = if letters.iter().all(|own| own.len() <= 10) { "" } else { "." };
    let mut ids = vec![String::new()];
    for (dimension, own) in letters.iter().enumerate() {
        let separator = if dimension == 0 { "" } else { separator };
        let longer = |id: String| own.iter().map(move |letter| format!("{id}{separator}{letter}"));
        ids = ids.into_iter().flat_map(longer).collect();
    }
    ids
}

/// Words of `n` letters out of `d + 1` without a letter twice in a row, in alphabetical order, written like coordinates.
fn word_ids(d: u64, n: u64) -> Vec<String> {
    let separator = if d < 10 { "" } else { "." };
    let mut words: Vec<(String, u64)> = (0..=d).map(|letter| (letter.to_string(), letter)).collect();
    for _ in 1..n {
        let longer = |(word, last): (String, u64)| {
            let others = (0..=d).filter(move |&letter| letter != last);
            others.map(move |letter| (format!("{word}{separator}{letter}"), letter))
        };
        words = words.into_iter().flat_map(longer).collect();
    }
    words.into_iter().map(|(word, _)| word).collect()
}
