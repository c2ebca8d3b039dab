use canopy_optimize::Never;

use super::*;

fn fraction(numerator: u64, denominator: u64) -> Fraction {
    Fraction::new(numerator.into(), denominator.into()).unwrap()
}

/// d/N times the sum of the loads.
fn bandwidth(degree: u32, nodes: u32, loads: &[Fraction]) -> Fraction {
    let sum = loads.iter().fold(Fraction::ZERO, |sum, &load| sum.checked_add(load).unwrap());
    Fraction::new(sum.numerator * u128::from(degree), sum.denominator * u128::from(nodes)).unwrap()
}

/// Loads, distances and cycles from the links themselves.
fn by_brute_force(degree: u32, nodes: u32) -> ImaseItoh {
    let (d, n) = (degree as usize, nodes as usize);
    let out: Vec<Vec<usize>> =
        (0..n).map(|x| (1..=d).map(|a| (d + 1) * n * n - d * x - a).map(|y| y % n).collect()).collect();
    let mut into = vec![Vec::new(); n];
    for (from, heads) in out.iter().enumerate() {
        for &to in heads {
            into[to].push(from);
        }
    }
    let gather = distances(&out);
    let scatter: Vec<Vec<u64>> = (0..n).map(|u| (0..n).map(|v| gather[v][u]).collect()).collect();
    let back = |u: usize, v: usize| u32::try_from(gather[v][u]).unwrap();
    let (mut cycles, mut returns) = (Histogram::default(), Histogram::default());
    for (u, heads) in out.iter().enumerate() {
        cycles.add(heads.iter().map(|&v| 1 + back(u, v)).min().unwrap(), 1);
        heads.iter().for_each(|&v| returns.add(back(u, v), 1));
    }
    ImaseItoh {
        gather_loads: loads(&into, &gather),
        scatter_loads: loads(&out, &scatter),
        distance_sum: gather.iter().flatten().sum(),
        cycles,
        returns,
    }
}

fn distances(out: &[Vec<usize>]) -> Vec<Vec<u64>> {
    let from = |start: usize| {
        let mut distances = vec![u64::MAX; out.len()];
        distances[start] = 0;
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            for &next in &out[node] {
                if distances[next] == u64::MAX {
                    distances[next] = distances[node] + 1;
                    queue.push_back(next);
                }
            }
        }
        distances
    };
    (0..out.len()).map(from).collect()
}

/// `into[u]`: the nodes with a link into u; `distance[v][u]`. All sets of links are tried.
fn loads(into: &[Vec<usize>], distance: &[Vec<u64>]) -> Vec<Fraction> {
    let diameter = *distance.iter().flatten().max().unwrap();
    let load = |step: u64| {
        let at = |u: usize| {
            let usable = (0..into.len()).filter(|&v| distance[v][u] == step).map(|v| {
                let usable = into[u].iter().enumerate().filter(|&(_, &w)| distance[v][w] == step - 1);
                usable.fold(0_u32, |links, (index, _)| links | 1 << index)
            });
            let usable: Vec<u32> = usable.collect();
            let quotient = |set: u32| {
                let inside = usable.iter().filter(|&&links| links & !set == 0).count() as u64;
                fraction(inside, set.count_ones().into())
            };
            (1..1_u32 << into[u].len()).map(quotient).max().unwrap()
        };
        (0..into.len()).map(at).max().unwrap()
    };
    (1..=diameter).map(load).collect()
}

#[test]
fn the_links_themselves_give_the_same() {
    for (degree, most) in [(2, 90), (3, 60), (4, 75), (5, 50), (7, 40), (8, 30)] {
        for nodes in degree + 1..=most {
            assert_eq!(
                imase_itoh(degree, nodes, &Never).unwrap(),
                by_brute_force(degree, nodes),
                "d = {degree}, N = {nodes}"
            );
        }
    }
}

/// Wide nodes, whose last step has links in many sets.
#[test]
fn wide_nodes_too() {
    for nodes in [13, 20, 41, 60, 97] {
        assert_eq!(imase_itoh(12, nodes, &Never).unwrap(), by_brute_force(12, nodes), "N = {nodes}");
    }
}

/// Digest of the dissertation, section 11: exact step loads.
#[test]
fn published_loads() {
    let whole = |loads: &[u64]| loads.iter().map(|&load| fraction(load, 1)).collect::<Vec<_>>();
    assert_eq!(imase_itoh(4, 1024, &Never).unwrap().gather_loads, whole(&[1, 4, 16, 64, 256]));
    assert_eq!(imase_itoh(4, 20, &Never).unwrap().gather_loads, whole(&[1, 4]));
    assert_eq!(imase_itoh(2, 12, &Never).unwrap().gather_loads, whole(&[1, 2, 4]));
    let eleven = imase_itoh(4, 11, &Never).unwrap();
    assert_eq!(bandwidth(4, 11, &eleven.gather_loads), fraction(14, 11));
    assert_eq!(bandwidth(4, 11, &eleven.scatter_loads), fraction(16, 11));
}

/// Table A.3 and section 3.5: at most twice the optimum, at most one step more than the Moore bound.
#[test]
fn never_twice_as_bad_as_the_best() {
    for degree in [2, 4] {
        for nodes in degree + 1..150 {
            let found = imase_itoh(degree, nodes, &Never).unwrap();
            for loads in [&found.gather_loads, &found.scatter_loads] {
                let cost = bandwidth(degree, nodes, loads);
                let twice = fraction(2 * u64::from(nodes - 1), nodes.into());
                assert!(cost <= twice, "d = {degree}, N = {nodes}: {cost}");
            }
        }
    }
}

#[test]
fn what_is_no_member_is_refused() {
    for (degree, nodes) in [(0, 5), (1, 5), (4, 0), (4, 4), (65, 100), (4, 65_537), (u32::MAX, u32::MAX)] {
        assert_eq!(imase_itoh(degree, nodes, &Never), None);
    }
}

#[test]
fn it_can_be_stopped() {
    assert_eq!(imase_itoh(4, 1024, &|| true), None);
}
