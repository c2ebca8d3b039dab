//! Goods of a few classes on their way to a few places, each class to some of them: whole numbers.

/// What a class has, and a bit for each place that takes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Supply {
    pub(super) places: u32,
    pub(super) count: u64,
}

/// How much of each class goes to each place, by class, then by place; `None` if there is no room for all.
///
/// Each class is divided equally as far as there is room; the rest goes along shortest alternating paths, each with as
/// much as it takes. O(classes² · places²) for some hundred classes.
pub(super) fn transport(supplies: &[Supply], mut room: Vec<u64>) -> Option<Vec<Vec<u64>>> {
    let mut sent = vec![vec![0_u64; room.len()]; supplies.len()];
    for (supply, sent) in supplies.iter().zip(&mut sent) {
        let part = supply.count / u64::from(supply.places.count_ones().max(1));
        let places = sent.iter_mut().zip(&mut room).enumerate().filter(|(place, _)| supply.places >> place & 1 == 1);
        for (_, (sent, room)) in places {
            *sent = part.min(*room);
            *room -= *sent;
        }
    }
    for class in 0..supplies.len() {
        let mut left = supplies[class].count - sent[class].iter().sum::<u64>();
        while left > 0 {
            let path = path(supplies, &sent, &room, class)?;
            let moved = path.iter().filter_map(|step| Some(sent[step.class][step.from?])).min();
            let last = path.first()?.to;
            let amount = left.min(room[last]).min(moved.unwrap_or(u64::MAX));
            room[last] -= amount;
            for step in path {
                sent[step.class][step.to] += amount;
                if let Some(from) = step.from {
                    sent[step.class][from] -= amount;
                }
            }
            left -= amount;
        }
    }
    Some(sent)
}

/// A class sends to one place what it sent to another, or what is left of it.
struct Step {
    class: usize,
    from: Option<usize>,
    to: usize,
}

/// Steps from a place with room back to a class that has something left.
fn path(supplies: &[Supply], sent: &[Vec<u64>], room: &[u64], first: usize) -> Option<Vec<Step>> {
    // By place the class that reached it, by class the place it is reached from.
    let mut places: Vec<Option<usize>> = vec![None; room.len()];
    let mut classes: Vec<Option<Option<usize>>> = vec![None; supplies.len()];
    classes[first] = Some(None);
    let (mut reached, mut at) = (vec![first], 0);
    while let Some(&class) = reached.get(at) {
        at += 1;
        for place in (0..room.len()).filter(|&place| supplies[class].places >> place & 1 == 1) {
            if places[place].is_some() {
                continue;
            }
            places[place] = Some(class);
            if room[place] > 0 {
                return Some(steps(&places, &classes, place));
            }
            for other in 0..supplies.len() {
                if classes[other].is_none() && sent[other][place] > 0 {
                    classes[other] = Some(Some(place));
                    reached.push(other);
                }
            }
        }
    }
    None
}

fn steps(places: &[Option<usize>], classes: &[Option<Option<usize>>], last: usize) -> Vec<Step> {
    let (mut steps, mut next) = (Vec::new(), Some(last));
    while let Some(to) = next {
        let Some(class) = places[to] else { break };
        let from = classes[class].flatten();
        steps.push(Step { class, from, to });
        next = from;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::{Supply, transport};

    #[test]
    fn classes_make_room_for_each_other() {
        let supply = |places, count| Supply { places, count };
        let sent = transport(&[supply(0b11, 5), supply(0b01, 5)], vec![5, 5]).unwrap();
        assert_eq!(sent, [[0, 5], [5, 0]]);
        let sent = transport(&[supply(0b110, 4), supply(0b011, 4), supply(0b001, 4)], vec![4, 4, 4]).unwrap();
        assert_eq!(sent, [[0, 0, 4], [0, 4, 0], [4, 0, 0]]);
        assert_eq!(transport(&[supply(0b01, 5), supply(0b01, 1)], vec![5, 9]), None);
        assert_eq!(transport(&[supply(0, 1)], vec![5]), None);
        assert_eq!(transport(&[], vec![]), Some(vec![]));
    }

    /// By the theorem of Hall, there is room exactly if each set of places has room for what only they take.
    #[test]
    fn room_is_found_where_there_is_some() {
        let mut draws = 1_u64;
        let mut below = |limit: u32| {
            draws = draws.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            u32::try_from(draws >> 33).map_or(0, |draw| draw % limit)
        };
        let mut found = [0, 0];
        for _ in 0..2000 {
            let places = 1 + below(4);
            let classes = below(5);
            let supplies: Vec<Supply> =
                (0..classes).map(|_| Supply { places: below(1 << places), count: below(6).into() }).collect();
            let room: Vec<u64> = (0..places).map(|_| below(9).into()).collect();
            let is_enough = (0..1_u32 << places).all(|set| {
                let need: u64 = supplies.iter().filter(|one| one.places & !set == 0).map(|one| one.count).sum();
                need <= (0..places).filter(|place| set >> place & 1 == 1).map(|place| room[place as usize]).sum()
            });
            let sent = transport(&supplies, room.clone());
            assert_eq!(sent.is_some(), is_enough, "{supplies:?} {room:?}");
            found[usize::from(is_enough)] += 1;
            let Some(sent) = sent else { continue };
            for (of, supply) in sent.iter().zip(&supplies) {
                assert_eq!(of.iter().sum::<u64>(), supply.count);
                assert!((0..places).all(|place| of[place as usize] == 0 || supply.places >> place & 1 == 1));
            }
            for place in 0..places as usize {
                assert!(sent.iter().map(|of| of[place]).sum::<u64>() <= room[place]);
            }
        }
        assert!(found[0] > 300 && found[1] > 300, "{found:?}");
    }
}
