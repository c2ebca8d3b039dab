//! Fifty members of each family, small and of some hundred nodes, none of which is a member of one that is preferred.

/// Rates: in plain bytes, with decimals, in vendors' units, and the default.
const RATES: [&str; 5] = ["25GB/s", "12.5GB/s", "1000000007B/s", "400Gbps", "3B/s"];

/// The member of a family with this number, below [`COUNT`].
pub(crate) fn expression(family: &str, number: usize) -> String {
    let rate = RATES[number % RATES.len()];
    let latency = if number.is_multiple_of(4) { ",lat=700ns" } else { "" };
    // Two parameters that take many values together.
    let (small, other) = (number % 7, number / 7);
    let parameters = match family {
        "ring" if number.is_multiple_of(3) => format!("{},dir=uni,bw={rate}", 3 + 5 * number),
        "ring" => format!("{},bw={rate}", 2 + 3 * number),
        "complete" => format!("{},bw={rate}", 4 + number),
        "hypercube" => format!("{},bw={rate}", 3 + small),
        "torus" => {
            let extents = ["3x3", "2x3", "4x5", "3x4x5", "2x6x3", "5x5x2x3", "16x16", "9x3x3", "2x7", "6x10", "12x4"];
            // Besides a list, all of two dimensions from 5 on.
            match extents.get(number) {
                Some(extents) => format!("{extents},bw={rate}"),
                None => format!("{}x{},bw={rate}", 5 + small, 5 + other),
            }
        }
        "mesh" => {
            let extents = ["3", "2x3", "3x3", "4x4x4", "2x2x3", "1x9", "16x16", "3x2x5x2", "40", "2x30"];
            match extents.get(number) {
                Some(extents) => format!("{extents},bw={rate}"),
                None => format!("{}x{},bw={rate}", 3 + small, 2 + other),
            }
        }
        "bipartite" => format!("{}x{},bw={rate}", 2 + small, 3 + other),
        "dgx-a100" | "dgx-h100" | "dgx-b200" => format!("boxes={},gpus={}", 1 + small, 2 + other),
        "dgx-b300" | "mi300x" | "mi355x" => format!("boxes={},gpus={}", 2 + small, 2 + other),
        "mi250" => format!("boxes={},gpus={}", 1 + number / 2, if number.is_multiple_of(2) { 8 } else { 16 }),
        "rail" => {
            let spine = if number.is_multiple_of(3) { ",spine=77GB/s" } else { "" };
            let nic = if number.is_multiple_of(5) { "450GB/s" } else { rate };
            format!("boxes={},gpus={},nv=450GB/s,nic={nic}{spine}", 2 + small, 2 + other)
        }
        "fat-tree" => {
            let k = [2, 4, 6, 8][number % 4];
            format!("k={k},oversub={},host-bw={}GB/s", 1 + number / 4, 360_360 * (1 + number))
        }
        "leaf-spine" => {
            let oversub = 1 + number % 3;
            format!(
                "leaves={},hosts={},spines={},oversub={oversub},host-bw=10080GB/s",
                1 + small,
                2 + other,
                1 + number % 4
            )
        }
        "dragonfly-router" => {
            let (p, a, h) =
                [(1, 1, 1), (2, 4, 2), (1, 2, 1), (3, 1, 4), (2, 3, 2), (1, 4, 4), (4, 2, 3), (1, 2, 3)][number % 8];
            let rates = [(rate, rate), (rate, "9GB/s"), ("9GB/s", rate), ("50GB/s", "25GB/s")][number / 8 % 4];
            format!("p={p},a={a},h={h},host-bw={rate},local={},global={}", rates.0, rates.1)
        }
        other => panic!("the family {other} has no parameters here; add some, so that its members are tested"),
    };
    format!("{family}:{parameters}{latency}")
}

/// How many members of each family there are.
pub(crate) const COUNT: usize = 50;
