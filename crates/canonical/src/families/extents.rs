//! Grids of a number of ranks, and what their distances look like.

/// What each line of a grid is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Seen from an end.
    Path,
    /// Seen from anywhere.
    Cycle,
}

impl Line {
    /// How many nodes of a line of so many are at each distance.
    fn layers(self, extent: usize) -> Vec<usize> {
        match self {
            Self::Path => vec![1; extent],
            // Two on either side, one opposite where there is one.
            Self::Cycle => (0..=extent / 2).map(|at| if at == 0 || 2 * at == extent { 1 } else { 2 }).collect(),
        }
    }

    /// The greatest distance on a line of so many nodes.
    const fn reach(self, extent: usize) -> usize {
        match self {
            Self::Path => extent - 1,
            Self::Cycle => extent / 2,
        }
    }
}

/// All ways to write a number as a product of so many factors that do not fall, each at least `least` ≥ 2.
///
/// O(√number) per factor but the last two, of which there are at most log₂ of the number.
pub(crate) fn factorisations(number: usize, count: usize, least: usize) -> Vec<Vec<usize>> {
    match count {
        0 => {
            if number == 1 {
                vec![Vec::new()]
            } else {
                Vec::new()
            }
        }
        1 => {
            if number >= least {
                vec![vec![number]]
            } else {
                Vec::new()
            }
        }
        _ => {
            let mut found = Vec::new();
            for factor in (least..).take_while(|&factor| is_power_within(factor, count, number)) {
                if number.is_multiple_of(factor) {
                    for rest in factorisations(number / factor, count - 1, factor) {
                        found.push([vec![factor], rest].concat());
                    }
                }
            }
            found
        }
    }
}

/// Whether `factor^count ≤ number`.
fn is_power_within(factor: usize, count: usize, number: usize) -> bool {
    u32::try_from(count).ok().and_then(|count| factor.checked_pow(count)).is_some_and(|power| power <= number)
}

/// Whether in a grid of these extents there are so many nodes at each distance. Distances in a grid are sums of distances
/// along its lines, so numbers of nodes are products of polynomials. O(nodes · dimensions) at most.
pub(crate) fn has_layers(extents: &[usize], line: Line, layers: &[usize]) -> bool {
    if extents.iter().map(|&extent| line.reach(extent)).sum::<usize>() + 1 != layers.len() {
        return false;
    }
    let mut product = vec![1_usize];
    for &extent in extents {
        let factor = line.layers(extent);
        let mut longer = vec![0_usize; product.len() + factor.len() - 1];
        // The product of two polynomials whose coefficients are numbers of nodes by distance.
        for (at, &nodes) in product.iter().enumerate() {
            for (further, &more) in factor.iter().enumerate() {
                longer[at + further] += nodes * more;
            }
        }
        product = longer;
    }
    product == layers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_all_there_and_once() {
        assert_eq!(factorisations(64, 2, 3), [[4, 16], [8, 8]]);
        assert_eq!(factorisations(24, 3, 2), [[2, 2, 6], [2, 3, 4]]);
        assert_eq!(factorisations(7, 2, 2), Vec::<Vec<usize>>::new());
        assert_eq!(factorisations(7, 1, 3), [[7]]);
        assert_eq!((factorisations(1, 0, 2).len(), factorisations(2, 0, 2).len()), (1, 0));
        assert!(factorisations(usize::MAX, 64, 2).is_empty());
    }

    #[test]
    fn distances_in_grids() {
        assert!(has_layers(&[3, 4], Line::Path, &[1, 2, 3, 3, 2, 1]));
        assert!(has_layers(&[3, 4], Line::Cycle, &[1, 4, 5, 2]));
        assert!(!has_layers(&[2, 6], Line::Cycle, &[1, 4, 5, 2]));
        assert!(!has_layers(&[3, 4], Line::Cycle, &[1, 4, 5]));
    }
}
