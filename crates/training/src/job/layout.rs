//! Parallel dimensions of a job, and which ranks differ in some of them only.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Most ranks of a layout.
const RANKS_MAX: u64 = 1 << 20;
/// Most dimensions.
const DIMENSIONS_MAX: usize = 16;

/// Why a layout is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the messages name every field")]
pub enum LayoutError {
    #[error("`{word}` is not a dimension with its size; write it as in `tp=8 dp=16`")]
    Word { word: String },
    #[error("the dimension `{name}` is stated twice; state each once")]
    Twice { name: String },
    #[error(
        "there is no order called `{name}`; use megatron or torchtitan, or list the dimensions with the fastest first"
    )]
    UnknownOrder { name: String },
    #[error("`{name}` is not a dimension of {order}; it has {known}")]
    UnknownDimension { name: String, order: &'static str, known: String },
    #[error("no dimension is `{name}`; there are {known}")]
    NoDimension { name: String, known: String },
    #[error("{} are not dimensions of one order, so that no ranks differ in these alone", names.join(" and "))]
    OtherOrder { names: Vec<String> },
    #[error("the experts' dimensions make {experts} ranks, and the others {others}; let both be equal")]
    Experts { experts: u64, others: u64 },
    #[error("the layout has more than {max} ranks; state less")]
    TooLarge { max: u64 },
    #[error("a layout needs one dimension at least, and no more than {max}")]
    Count { max: usize },
}

/// A dimension and its size.
type Dimension = (String, u32);

/// Numbers of ranks as digits: in each order, the first dimension counts fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Ways to number the same ranks; the first has all ranks of the job.
    orders: Vec<Vec<Dimension>>,
}

/// An order that frameworks use: its name, its dimensions with the fastest first.
const ORDERS: [(&str, &[&str]); 2] =
    [("megatron", &["tp", "cp", "dp", "pp"]), ("torchtitan", &["tp", "cp", "dp_shard", "dp_replicate", "pp"])];
/// The second order of Megatron-core, for experts: `ep` ranks of `etp` hold other experts each, in `edp` copies.
const EXPERTS: &[&str] = &["etp", "ep", "edp", "pp"];

impl Layout {
    /// Number of ranks.
    pub fn rank_count(&self) -> u32 {
        self.orders[0].iter().map(|(_, size)| size).product()
    }

    /// The groups of ranks that differ in these dimensions only, each in the order of its ranks' numbers.
    ///
    /// # Errors
    /// A dimension that is not there; dimensions of different orders. O(ranks · dimensions).
    pub fn groups_over(&self, names: &[impl AsRef<str>]) -> Result<Vec<Vec<u32>>, LayoutError> {
        let known = || {
            let mut known: Vec<&str> = self.orders.iter().flatten().map(|(name, _)| name.as_str()).collect();
            known.dedup();
            known.join(", ")
        };
        for name in names.iter().map(AsRef::as_ref) {
            if !self.orders.iter().flatten().any(|(known, _)| known == name) {
                return Err(LayoutError::NoDimension { name: name.to_owned(), known: known() });
            }
        }
        let has_all =
            |order: &&Vec<Dimension>| names.iter().all(|name| order.iter().any(|(known, _)| known == name.as_ref()));
        let order = self.orders.iter().find(has_all).ok_or_else(|| LayoutError::OtherOrder {
            names: names.iter().map(|name| name.as_ref().to_owned()).collect(),
        })?;
        let mut groups: BTreeMap<u64, Vec<u32>> = BTreeMap::new();
        for rank in 0..self.rank_count() {
            // The rank with the digits of these dimensions at zero is the first of its group.
            let (mut rest, mut stride, mut first) = (rank, 1_u64, 0_u64);
            for (name, size) in order {
                let digit = rest % size;
                rest /= size;
                if !names.iter().any(|asked| asked.as_ref() == name) {
                    first += u64::from(digit) * stride;
                }
                stride *= u64::from(*size);
            }
            groups.entry(first).or_default().push(rank);
        }
        Ok(groups.into_values().collect())
    }
}

/// Most orders of dimensions that are looked at.
const PERMUTED_MAX: usize = 120;

impl Layout {
    /// Layouts of the same dimensions in every order, this one first, at most 120; where a dimension of one rank stands
    /// makes no difference. Of a layout with two orders, as with experts, this one only.
    pub fn orders_of_dimensions(&self) -> Vec<Self> {
        let [order] = self.orders.as_slice() else { return vec![self.clone()] };
        let (dimensions, ones): (Vec<Dimension>, Vec<Dimension>) =
            order.iter().cloned().partition(|(_, size)| *size > 1);
        let mut found = Vec::new();
        permute(&mut Vec::new(), &dimensions, &mut found);
        found.into_iter().map(|order| Self { orders: vec![[order, ones.clone()].concat()] }).collect()
    }

    /// By rank of this layout, the rank that it is in another order of the same dimensions. O(ranks · dimensions²).
    pub fn places_in(&self, other: &Self) -> Vec<u32> {
        let (own, others) = (&self.orders[0], &other.orders[0]);
        let stride = |name: &str| -> u32 {
            let before = others.iter().take_while(|(known, _)| known != name);
            before.map(|(_, size)| size).product()
        };
        let strides: Vec<u32> = own.iter().map(|(name, _)| stride(name)).collect();
        let place = |rank: u32| {
            let digits = own.iter().zip(&strides).scan(rank, |rest, ((_, size), stride)| {
                let digit = *rest % size;
                *rest /= size;
                Some(digit * stride)
            });
            digits.sum()
        };
        (0..self.rank_count()).map(place).collect()
    }
}

/// Adds every order that begins like this, in the order of the dimensions that are left.
fn permute(begun: &mut Vec<Dimension>, left: &[Dimension], found: &mut Vec<Vec<Dimension>>) {
    if left.is_empty() {
        found.push(begun.clone());
    }
    for (place, dimension) in left.iter().enumerate() {
        if found.len() >= PERMUTED_MAX {
            return;
        }
        let rest: Vec<Dimension> =
            left.iter().enumerate().filter(|&(other, _)| other != place).map(|(_, one)| one.clone()).collect();
        begun.push(dimension.clone());
        permute(begun, &rest, found);
        begun.pop();
    }
}

/// Writes what is read, but for the name of a framework and dimensions of one rank.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.orders[0].iter().filter(|(_, size)| *size > 1);
        let words: Vec<String> = several.map(|(name, size)| format!("{name}={size}")).collect();
        f.write_str(&words.join(" "))
    }
}

impl FromStr for Layout {
    type Err = LayoutError;

    /// Reads `tp=8 dp=16 pp=8`, the fastest first, or `megatron: tp=8 pp=8 dp=16 ep=64 etp=1`, in any order.
    fn from_str(line: &str) -> Result<Self, LayoutError> {
        let (order, sizes) = match line.split_once(':') {
            Some((name, rest)) => (Some(name.trim()), rest),
            None => (None, line),
        };
        let mut stated: Vec<Dimension> = Vec::new();
        for word in sizes.split_whitespace() {
            let bad = || LayoutError::Word { word: word.chars().take(40).collect() };
            let (name, size) = word.split_once('=').ok_or_else(bad)?;
            let size: u32 = size.parse().ok().filter(|&size| size > 0).ok_or_else(bad)?;
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if name.is_empty() || !name.bytes().all(is_name) {
                return Err(bad());
            }
            if stated.iter().any(|(known, _)| known == name) {
                return Err(LayoutError::Twice { name: name.to_owned() });
            }
            stated.push((name.to_owned(), size));
        }
        if stated.is_empty() || stated.len() > DIMENSIONS_MAX {
            return Err(LayoutError::Count { max: DIMENSIONS_MAX });
        }
        let orders = match order {
            None => vec![stated],
            Some(name) => ordered(name, &stated)?,
        };
        let layout = Self { orders };
        let counts: Vec<u64> = layout
            .orders
            .iter()
            .map(|order| order.iter().try_fold(1_u64, |product, (_, size)| product.checked_mul(u64::from(*size))))
            .map(|count| count.filter(|&count| count <= RANKS_MAX).ok_or(LayoutError::TooLarge { max: RANKS_MAX }))
            .collect::<Result<_, _>>()?;
        match counts[..] {
            [others, experts] if others != experts => Err(LayoutError::Experts { experts, others }),
            _ => Ok(layout),
        }
    }
}

/// The dimensions in the order of a framework; what is not stated has one rank.
fn ordered(name: &str, stated: &[Dimension]) -> Result<Vec<Vec<Dimension>>, LayoutError> {
    let found = ORDERS.iter().find(|(known, _)| *known == name);
    let &(order, dimensions) =
        found.ok_or_else(|| LayoutError::UnknownOrder { name: name.chars().take(40).collect() })?;
    let experts: &[&str] = if order == "megatron" { EXPERTS } else { &[] };
    let mut known = dimensions.iter().chain(experts);
    if let Some((name, _)) = stated.iter().find(|(name, _)| !known.clone().any(|known| known == name)) {
        let known = known.by_ref().copied().collect::<Vec<&str>>().join(", ");
        return Err(LayoutError::UnknownDimension { name: name.clone(), order, known });
    }
    let size = |name: &str| stated.iter().find(|(stated, _)| stated == name).map(|&(_, size)| size);
    let sized = |names: &[&str]| -> Vec<Dimension> {
        names.iter().map(|&name| (name.to_owned(), size(name).unwrap_or(1))).collect()
    };
    let mut orders = vec![sized(dimensions)];
    if experts.iter().any(|name| *name != "pp" && size(name).is_some()) {
        let mut own = sized(experts);
        // Experts take as many ranks as a tensor group, and the copies are what is left of all ranks.
        let all: u64 = orders[0].iter().map(|&(_, size)| u64::from(size)).product();
        let etp = size("etp").or_else(|| size("tp")).unwrap_or(1);
        own[0].1 = etp;
        if size("edp").is_none() {
            let others = u64::from(own[0].1) * u64::from(own[1].1) * u64::from(own[3].1);
            own[2].1 = u32::try_from(all / others).unwrap_or(u32::MAX).max(1);
        }
        orders.push(own);
    }
    Ok(orders)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_dimension_counts_fastest() {
        let layout: Layout = "tp=2 dp=3".parse().unwrap();
        assert_eq!(layout.rank_count(), 6);
        assert_eq!(layout.groups_over(&["tp"]).unwrap(), [[0, 1], [2, 3], [4, 5]]);
        assert_eq!(layout.groups_over(&["dp"]).unwrap(), [[0, 2, 4], [1, 3, 5]]);
        assert_eq!(layout.groups_over(&["dp", "tp"]).unwrap(), [[0, 1, 2, 3, 4, 5]]);
    }

    /// World of 16 with tp 2, pp 4, dp 2, as the documentation of Megatron-core lists it.
    #[test]
    fn megatron_has_tensor_groups_side_by_side_and_stages_far_apart() {
        let layout: Layout = "megatron: tp=2 pp=4 dp=2".parse().unwrap();
        assert_eq!(layout.groups_over(&["tp"]).unwrap()[..2], [[0, 1], [2, 3]]);
        assert_eq!(layout.groups_over(&["dp"]).unwrap()[..2], [[0, 2], [1, 3]]);
        assert_eq!(layout.groups_over(&["pp"]).unwrap()[..2], [[0, 4, 8, 12], [1, 5, 9, 13]]);
    }

    #[test]
    fn experts_are_numbered_by_an_order_of_their_own() {
        let layout: Layout = "megatron: tp=8 pp=8 dp=16 ep=64 etp=1".parse().unwrap();
        let groups = layout.groups_over(&["ep"]).unwrap();
        assert_eq!((groups.len(), groups[0].len()), (16, 64));
        assert_eq!(groups[1], (64..128).collect::<Vec<u32>>());
        assert_eq!(layout.groups_over(&["edp"]).unwrap()[0], [0, 64]);
        assert!(matches!(layout.groups_over(&["tp", "ep"]), Err(LayoutError::OtherOrder { .. })));
    }

    #[test]
    fn torchtitan_shards_inside_replicas() {
        let layout: Layout = "torchtitan: dp_replicate=2 dp_shard=2 tp=2".parse().unwrap();
        assert_eq!(layout.groups_over(&["dp_shard"]).unwrap()[0], [0, 2]);
        assert_eq!(layout.groups_over(&["dp_replicate"]).unwrap()[0], [0, 4]);
    }

    #[test]
    fn ranks_keep_their_digits_in_another_order() {
        let layout: Layout = "tp=2 pp=1 dp=3".parse().unwrap();
        let orders = layout.orders_of_dimensions();
        assert_eq!(orders.iter().map(ToString::to_string).collect::<Vec<_>>(), ["tp=2 dp=3", "dp=3 tp=2"]);
        assert_eq!(layout.places_in(&orders[0]), [0, 1, 2, 3, 4, 5]);
        assert_eq!(layout.places_in(&orders[1]), [0, 3, 1, 4, 2, 5]);
        let many: Layout = "a=2 b=2 c=2 d=2 e=2 f=2".parse().unwrap();
        assert_eq!(many.orders_of_dimensions().len(), 120);
    }

    #[test]
    fn bad_lines_are_refused_with_what_helps() {
        for (line, part) in [
            ("", "one dimension at least"),
            ("tp", "`tp` is not a dimension with its size"),
            ("tp=0", "`tp=0`"),
            ("tp=2 tp=2", "twice"),
            ("deepspeed: tp=2", "no order called `deepspeed`"),
            ("megatron: xp=2", "`xp` is not a dimension of megatron"),
            ("tp=99999 dp=99999 pp=99999", "more than"),
            ("megatron: tp=8 dp=2 ep=3 etp=1 edp=2", "the experts' dimensions make 6 ranks, and the others 16"),
        ] {
            let error = line.parse::<Layout>().unwrap_err().to_string();
            assert!(error.contains(part), "{line}: {error}");
        }
        let layout: Layout = "tp=2 dp=2".parse().unwrap();
        assert!(layout.groups_over(&["ep"]).unwrap_err().to_string().contains("there are tp, dp"));
    }
}
