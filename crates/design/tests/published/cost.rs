//! Values of Pham 2026, sections 2.1.4 and 4.4, and what they follow from.

use canopy_design::cost::{Bill, Choice, Medium, Network, Parameters, PortsPaid, STANDARD_PARAMETERS, choices};
use num_bigint::BigInt;
use num_rational::BigRational;

/// Listing 4.1: metres or ports, and price in cents; copper cables of EDR, fibres of EDR, and switches.
const COPPER: [(i64, i64); 2] = [(1, 13_417), (3, 17_969)];
const FIBRE: [(i64, i64); 7] =
    [(1, 66_844), (10, 67_323), (15, 71_036), (20, 75_109), (3, 63_969), (30, 84_812), (5, 64_927)];
const SWITCHES: [(i64, i64); 3] = [(36, 1_913_900), (40, 3_072_000), (64, 3_455_500)];

fn network(expression: &str) -> Network {
    Network::read(expression).unwrap()
}

fn bill(expression: &str) -> Bill {
    network(expression).bill(&Parameters::standard().layout)
}

/// Price in ten-thousandths.
fn total(parameters: &Parameters, network: &Network) -> u128 {
    parameters.cost(&network.bill(&parameters.layout)).total.ten_thousandths()
}

/// Slope and height at 0 of the line with the least squared distances, each rounded to a cent.
fn line(points: &[(i64, i64)]) -> (i64, i64) {
    let whole = |number: i64| BigRational::from_integer(BigInt::from(number));
    let sum = |of: fn(&(i64, i64)) -> i64| whole(points.iter().map(of).sum());
    let (count, x, y) = (whole(i64::try_from(points.len()).unwrap()), sum(|point| point.0), sum(|point| point.1));
    let (squares, products) = (sum(|point| point.0 * point.0), sum(|point| point.0 * point.1));
    let slope = (&count * &products - &x * &y) / (&count * &squares - &x * &x);
    let height = (&y - &slope * &x) / count;
    let rounded = |value: BigRational| i64::try_from(value.round().to_integer()).unwrap();
    (rounded(slope), rounded(height))
}

/// The published functions are lines through prices: of all fibres but the one of 50 m, of all switches, and through the first and
/// the fourth of the copper cables.
#[test]
fn prices_are_lines_through_the_listed_ones() {
    let Parameters { electrical, optical, switch, .. } = Parameters::standard();
    let cents = |base: u64, more: u64| (i64::try_from(more).unwrap(), i64::try_from(base).unwrap());
    assert_eq!(line(&COPPER), cents(electrical.base_cents, electrical.metre_cents));
    assert_eq!(line(&FIBRE), cents(optical.base_cents, optical.metre_cents));
    assert_eq!(line(&SWITCHES), cents(switch.base_cents, switch.port_cents));
}

/// Value F1: 3×3 has 9 nodes of degree 4 and 18 cables.
#[test]
fn counts_of_a_small_grid() {
    let bill = bill("dfc2:3x3");
    assert_eq!((bill.switch_count(), bill.switches[0].ports - 1, bill.cables_between()), (9, 4, 18));
    assert_eq!(bill.cable_count(Medium::Electrical), 9);
}

/// Value F4 and equation (2.13): about 1000 switches, with a quarter, a half and all of the bisection bandwidth.
#[test]
fn endpoints_of_a_thousand_switches() {
    for (terminals, endpoints, part) in [(64, 65_536, (1, 4)), (32, 32_768, (1, 2)), (16, 16_384, (1, 1))] {
        let network = network(&format!("dfc2:32x32,terminals={terminals}"));
        let bill = network.bill(&Parameters::standard().layout);
        assert_eq!((bill.switch_count(), bill.endpoints, network.bisection()), (1024, endpoints, Some(part)));
    }
}

/// Equations (4.11) to (4.13), term by term, for unequal sides.
#[test]
fn cables_of_a_grid_cost_what_the_equations_say() {
    let (m1, m2, terminals) = (5_u128, 3_u128, 4_u128);
    let optical = |metres: u128| 676 * metres + 62_468;
    let electrical = |metres: u128| 2_276 * metres + 11_141;
    let group = |m: u128| (1..m).map(|x| (m - x) * optical(x + 1)).sum::<u128>();
    let expected = m2 * group(m1) + m1 * group(m2) + m1 * m2 * terminals * electrical(1);
    let parameters = Parameters::standard();
    let cost = parameters.cost(&bill("dfc2:3x5,terminals=4"));
    assert_eq!(cost.cables.ten_thousandths(), 100 * expected);
    let switches = m1 * m2 * (880_620 + 41_425 * (m1 + m2 - 2 + terminals));
    assert_eq!(cost.switches.ten_thousandths(), 100 * switches);
    assert_eq!(cost.total.ten_thousandths(), 100 * (expected + switches));
}

/// What Slim Flies are made of: 2q² switches of degree (3q − δ)/2, and of the cables 2q between every two racks.
#[test]
fn cables_of_slim_flies_and_dragonflies() {
    let slim_fly = bill("slim-fly:q=19");
    assert_eq!((slim_fly.endpoints, slim_fly.switch_count(), slim_fly.switches[0].ports), (10_830, 722, 44));
    let inside = slim_fly.cable_count(Medium::Electrical) - 10_830;
    assert_eq!(inside + slim_fly.cables_between(), 722 * 29 / 2);
    assert_eq!(slim_fly.cables_between(), 2 * 19 * (19 * 18 / 2));
    let dragonfly = bill("dragonfly-router:h=4");
    assert_eq!((dragonfly.endpoints, dragonfly.switch_count(), dragonfly.switches[0].ports), (1056, 264, 15));
    assert_eq!(dragonfly.cables_between(), 33 * 32 / 2);
    let fat_tree = bill("fat-tree:k=8");
    assert_eq!((fat_tree.endpoints, fat_tree.switch_count()), (128, 80));
    assert_eq!((fat_tree.cables_between(), fat_tree.cable_count(Medium::Electrical)), (128, 256));
    let torus = bill("torus:4x5x6");
    assert_eq!((torus.switch_count(), torus.cables_between(), torus.cable_count(Medium::Optical)), (120, 360, 0));
}

/// Cost of each kind for 100 000 endpoints, for each endpoint and over that of 2dfc25, in hundredths, in the order of `choices`.
fn relative(parameters: &Parameters) -> Vec<u128> {
    let cost =
        |Choice { network, .. }: &Choice| (total(parameters, network), network.bill(&parameters.layout).endpoints);
    let all: Vec<(u128, u64)> = choices(100_000).unwrap().iter().map(cost).collect();
    let (base, endpoints) = all[0];
    let rounded = |(own, count): &(u128, u64)| {
        let (top, bottom) = (own * u128::from(endpoints) * 100, base * u128::from(*count));
        (top + bottom / 2) / bottom
    };
    all.iter().map(rounded).collect()
}

/// Whether a published cost comes out.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    /// Under one reading of which ports are paid for, to a hundredth of it.
    Reproduced,
    /// Under neither reading, though the prices, counts and equations are the published ones: the two numbers stand beside each
    /// other, and only ours is pinned.
    NotReproduced,
}

/// A kind of network, what is printed of it, what we have under either reading, and whether the one comes of the other.
type Row = (&'static str, Option<u128>, [u128; 2], Option<Verdict>);

/// Figure 4.19 at 100 000 endpoints, cost over that of 2dfc25, in hundredths: what is printed, and what follows from listing 4.1 and
/// the equations where all ports of switches are paid for, and where those to terminals are. One of six printed values is reached.
#[test]
fn a_hundred_thousand_endpoints() {
    use Verdict::{NotReproduced, Reproduced};
    let mut parameters = Parameters::standard();
    let all = relative(&parameters);
    parameters.switch.ports = PortsPaid::Terminals;
    let terminals = relative(&parameters);
    let rows: [Row; 8] = [
        ("2dfc25", None, [100, 100], None),
        ("2dfc50", Some(143), [160, 144], Some(Reproduced)),
        ("2dfc100", Some(223), [285, 235], Some(NotReproduced)),
        ("Slim Fly", Some(181), [149, 128], Some(NotReproduced)),
        ("Dragonfly", Some(231), [206, 168], Some(NotReproduced)),
        ("3-D torus", Some(1215), [867, 967], Some(NotReproduced)),
        ("5-D torus", Some(1421), [1006, 998], Some(NotReproduced)),
        ("fat tree", None, [255, 192], None),
    ];
    assert_eq!((all.len(), terminals.len()), (rows.len(), rows.len()));
    for ((kind, printed, ours, verdict), (all, terminals)) in rows.into_iter().zip(all.into_iter().zip(terminals)) {
        assert_eq!([all, terminals], ours, "{kind}: ours");
        let comes_out = |printed: u128| ours.iter().any(|&own| own.abs_diff(printed) * 100 <= printed);
        let found = printed.map(|printed| if comes_out(printed) { Reproduced } else { NotReproduced });
        assert_eq!(found, verdict, "{kind}: printed {printed:?}, ours {ours:?}");
    }
}

/// The tori come near what is printed, 12.15 and 14.21, where all of their ports are paid for and of the 2dfc25 those to terminals alone:
/// within a third of a hundredth and 1.2 hundredths. A reading that mixes two, it shows what may have been done, and reproduces nothing.
#[test]
fn tori_against_a_grid_whose_other_ports_are_free() {
    let all = Parameters::standard();
    let terminals = Parameters::read(&STANDARD_PARAMETERS.replace("ports = \"all\"", "ports = \"terminals\"")).unwrap();
    let found = choices(100_000).unwrap();
    let each = |parameters: &Parameters, choice: &Choice| {
        let endpoints = choice.network.bill(&parameters.layout).endpoints;
        total(parameters, &choice.network) / u128::from(endpoints)
    };
    let base = each(&terminals, &found[0]);
    let of = |kind: &str| each(&all, found.iter().find(|choice| choice.kind == kind).unwrap()) * 100 / base;
    // Ours, then what is printed.
    assert_eq!((of("3-D torus"), of("5-D torus")), (1211, 1405));
    assert_ne!((of("3-D torus"), of("5-D torus")), (1215, 1421), "not reproduced to the digits that are printed");
}
