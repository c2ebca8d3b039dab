//! What ranks start with and must end with: numbers made from a seed, so that every rank can check its output alone.

use canopy_plan::{Promise, Promises, oneccl::Program};
use canopy_topology::Rank;
use clap::ValueEnum;

/// Types of elements, and how reductions add two of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum ElementType {
    Float32,
    Float64,
    Int32,
    Int64,
}

impl ElementType {
    /// Bytes of an element.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Float32 | Self::Int32 => 4,
            Self::Float64 | Self::Int64 => 8,
        }
    }

    /// Bits of whole numbers that are exact.
    const fn whole_bits(self) -> u32 {
        match self {
            Self::Float32 => 24,
            Self::Float64 => 53,
            Self::Int32 => 31,
            Self::Int64 => 63,
        }
    }

    /// Writes a whole number that is exact in this type as an element.
    #[expect(clippy::cast_precision_loss, reason = "numbers have no more bits than are exact")]
    fn put(self, number: u64, element: &mut [u8]) {
        match self {
            Self::Float32 => element.copy_from_slice(&(number as f32).to_le_bytes()),
            Self::Float64 => element.copy_from_slice(&(number as f64).to_le_bytes()),
            Self::Int32 => element.copy_from_slice(&number.to_le_bytes()[..4]),
            Self::Int64 => element.copy_from_slice(&number.to_le_bytes()),
        }
    }

    /// Adds elements to as many others.
    pub(super) fn add(self, target: &mut [u8], source: &[u8]) {
        match self {
            Self::Float32 => each(target, source, |a, b| (f32::from_le_bytes(a) + f32::from_le_bytes(b)).to_le_bytes()),
            Self::Float64 => each(target, source, |a, b| (f64::from_le_bytes(a) + f64::from_le_bytes(b)).to_le_bytes()),
            Self::Int32 => {
                each(target, source, |a, b| i32::from_le_bytes(a).wrapping_add(i32::from_le_bytes(b)).to_le_bytes());
            }
            Self::Int64 => {
                each(target, source, |a, b| i64::from_le_bytes(a).wrapping_add(i64::from_le_bytes(b)).to_le_bytes());
            }
        }
    }
}

/// Combines each pair of elements of so many bytes.
fn each<const N: usize>(target: &mut [u8], source: &[u8], combine: impl Fn([u8; N], [u8; N]) -> [u8; N]) {
    let (targets, _) = target.as_chunks_mut::<N>();
    let (sources, _) = source.as_chunks::<N>();
    for (target, source) in targets.iter_mut().zip(sources) {
        *target = combine(*target, *source);
    }
}

/// The numbers of all ranks' inputs.
///
/// They are whole and so small that the sum over all ranks is exact in every type: then the order of additions does
/// not matter, and outputs can be compared byte by byte.
pub(super) struct Data<'p> {
    program: &'p Program,
    seed: u64,
    /// Per share, or of the message where there are none.
    elements: u64,
    element: ElementType,
    mask: u64,
}

impl<'p> Data<'p> {
    pub(super) fn new(program: &'p Program, seed: u64, elements: u64, element: ElementType) -> Self {
        let bits = element.whole_bits() - program.rank_count.next_power_of_two().trailing_zeros();
        Self { program, seed, elements, element, mask: (1 << bits) - 1 }
    }

    fn number(&self, rank: u32, place: u64) -> u64 {
        mix(self.seed ^ mix(u64::from(rank) << 32) ^ place) & self.mask
    }

    /// Fills a rank's input.
    pub(super) fn fill(&self, rank: u32, input: &mut [u8]) {
        for (place, element) in (0..).zip(input.chunks_exact_mut(self.element.bytes())) {
            self.element.put(self.number(rank, place), element);
        }
    }

    /// The first element of a rank's output that is not what the collective promises.
    pub(super) fn first_wrong(&self, rank: u32, output: &[u8]) -> Option<u64> {
        let mut expected = [0_u8; 8];
        let expected = &mut expected[..self.element.bytes()];
        let promises = Promises::new(self.program.collective, self.elements);
        (0..).zip(output.chunks_exact(self.element.bytes())).find_map(|(place, found)| {
            let number = match promises.at(Rank::new(rank), place)? {
                Promise::From(origin, place) => self.number(origin.number(), place),
                Promise::All(place) => (0..self.program.rank_count).map(|rank| self.number(rank, place)).sum(),
            };
            self.element.put(number, expected);
            (found != expected).then_some(place)
        })
    }
}

/// One step of `SplitMix64` (Steele, Lea and Flood 2014): an invertible mixing of 64 bits.
pub(super) fn mix(state: u64) -> u64 {
    let mut z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use canopy_plan::oneccl::parse;

    use super::*;

    const ALLREDUCE: &str = include_str!("../../../../../../crates/plan/tests/oneccl_files/allreduce_pair.xml");

    /// The sum of two ranks' inputs, added as the data plane does, is what a rank expects; one bit less is not.
    #[test]
    fn sums_are_exact_in_every_type() {
        let program = parse(ALLREDUCE).unwrap();
        for element in [ElementType::Float32, ElementType::Float64, ElementType::Int32, ElementType::Int64] {
            let data = Data::new(&program, 5, 1000, element);
            let mut buffers = [0, 1].map(|_| vec![0; 1000 * element.bytes()]);
            for (rank, buffer) in (0..).zip(&mut buffers) {
                data.fill(rank, buffer);
            }
            let [mut sum, other] = buffers;
            assert!(data.first_wrong(0, &sum).is_some());
            element.add(&mut sum, &other);
            assert_eq!(data.first_wrong(0, &sum), None, "{element:?}");
            sum[999 * element.bytes()] ^= 1;
            assert_eq!(data.first_wrong(1, &sum), Some(999), "{element:?}");
        }
    }
}
