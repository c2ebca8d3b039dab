//! Into how many stages an exchange is divided.

/// Most peers outside its box that a rank gets while more stages would do: each takes room in a runtime. Execution
/// plans of MSCCL++ name 256 buffers of others, those in the box included: one of each peer in one phase, two in two.
const PEERS_MAX: [u32; 2] = [240, 112];

/// The most for so many phases.
pub(crate) fn peers_max(phases: usize) -> u32 {
    PEERS_MAX[usize::from(phases > 1)]
}

/// Most empty boxes: there is a number with small factors among so many.
const EMPTY_MAX: u32 = 64;

/// Most stages, or one more than there are levels: three bring the peers of 131,072 ranks below 80.
const STAGES_MAX: usize = 4;

/// Digits for boxes in sets, sets in larger ones, and so on: the number of the outermost sets comes first, and so do its
/// digits, so that links between sets carry each share once.
///
/// The fewest for which no rank has more than `peers_max` peers outside its box, else those with fewest peers. O(√count) for
/// each digit.
pub(crate) fn digits(levels: &[u32], peers_max: u32) -> Vec<u32> {
    let levels: Vec<u32> = levels.iter().copied().filter(|&size| size > 1).collect();
    let mut best: Option<(u32, Vec<u32>)> = None;
    for stages in levels.len()..=STAGES_MAX.max(levels.len() + 1) {
        for all in divided(&levels, stages) {
            let peers = all.iter().map(|&size| size - 1).sum();
            if best.as_ref().is_none_or(|(least, _)| peers < *least) {
                best = Some((peers, all));
            }
        }
        if best.as_ref().is_some_and(|(peers, _)| *peers <= peers_max) {
            break;
        }
    }
    best.map(|(_, digits)| digits).filter(|digits| !digits.is_empty()).unwrap_or_else(|| vec![1])
}

/// So many digits for levels, one at least for each.
fn divided(levels: &[u32], stages: usize) -> Vec<Vec<u32>> {
    let Some((&size, inner)) = levels.split_first() else {
        return if stages == 0 { vec![Vec::new()] } else { Vec::new() };
    };
    let own = if inner.is_empty() { stages..=stages } else { 1..=stages.saturating_sub(inner.len()) };
    let divided =
        |own| divided(inner, stages - own).into_iter().map(move |digits| [factors(size, own), digits].concat());
    own.filter(|&own| own > 0).flat_map(divided).collect()
}

/// How many boxes the grid has beside those that are there, so that their number has digits: as few as bring the peers
/// of a rank down to so many, or to the fewest.
pub(crate) fn empty_boxes(boxes: u32, peers_max: u32) -> u32 {
    let peers = |number: u32| digits(&[number], peers_max).iter().map(|&size| size - 1).sum::<u32>();
    if peers(boxes) <= peers_max {
        return 0;
    }
    let more = (0..=EMPTY_MAX).filter_map(|empty| Some((empty, peers(boxes.checked_add(empty)?))));
    let few = more.clone().find(|&(_, peers)| peers <= peers_max);
    few.or_else(|| more.min_by_key(|&(_, peers)| peers)).map_or(0, |(empty, _)| empty)
}

/// So many factors of a number with the smallest sum, ascending.
fn factors(number: u32, count: usize) -> Vec<u32> {
    match count {
        0 => Vec::new(),
        1 => vec![number],
        _ => {
            let divisors = (1..).take_while(|&divisor: &u32| u64::from(divisor).pow(2) <= u64::from(number));
            let divided = divisors.filter(|&divisor| number.is_multiple_of(divisor));
            let all = divided.map(|divisor| {
                let mut factors = factors(number / divisor, count - 1);
                factors.push(divisor);
                factors.sort_unstable();
                factors
            });
            all.min_by_key(|factors| factors.iter().map(|&factor| u64::from(factor)).sum::<u64>()).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{digits, empty_boxes, peers_max};

    #[test]
    fn there_are_as_few_stages_as_peers_allow() {
        let [one, two] = [1, 2].map(peers_max);
        assert_eq!(digits(&[1], one), [1]);
        assert_eq!((digits(&[128], one), digits(&[128], two)), (vec![128], vec![8, 16]));
        assert_eq!((digits(&[2048], one), digits(&[2048], two)), (vec![32, 64], vec![32, 64]));
        assert_eq!((digits(&[8192], one), digits(&[8192], two)), (vec![64, 128], vec![16, 16, 32]));
        assert_eq!(digits(&[16_384], one), [16, 32, 32]);
        assert_eq!(digits(&[65_536], one), [32, 32, 64]);
        assert_eq!(digits(&[16, 8], one), [16, 8]);
        assert_eq!(digits(&[1024, 16], one), [32, 32, 16]);
        // Dragonflies and fat trees.
        assert_eq!(digits(&[129, 16, 8], one), [129, 16, 8]);
        assert_eq!(digits(&[129, 16, 8], two), [3, 43, 16, 8]);
        assert_eq!(digits(&[513, 32, 8], one), [19, 27, 32, 8]);
        assert_eq!(digits(&[80, 40, 40], two), [8, 10, 40, 40]);
        assert_eq!(digits(&[1, 1, 7], two), [7]);
        // A prime number has no factors.
        assert_eq!(digits(&[16_381], one), [16_381]);
        let empty = |boxes| empty_boxes(boxes, one);
        assert_eq!([empty(16_381), empty(16_384), empty(257), empty(241)], [2, 0, 1, 0]);
        assert_eq!([523, 524].map(|boxes| empty_boxes(boxes, two)), [2, 1]);
    }
}
