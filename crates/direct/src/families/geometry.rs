//! Points and lines of finite geometries over the field of three elements.

/// A vector over the field of three elements, of `D` coordinates from 0 to 2.
type Vector<const D: usize> = [u32; D];

/// Points of the projective space: vectors whose first coordinate that is not zero is 1, in the order of their digits.
fn points<const D: usize>() -> Vec<Vector<D>> {
    let count = 3_u32.pow(u32::try_from(D).expect("a small dimension"));
    let digits = |mut number: u32| {
        let mut vector = [0; D];
        for place in vector.iter_mut().rev() {
            *place = number % 3;
            number /= 3;
        }
        vector
    };
    (1..count).map(digits).filter(|vector| vector.iter().find(|&&digit| digit > 0) == Some(&1)).collect()
}

/// The multiple of a vector, not zero, that is a point.
fn normalised<const D: usize>(vector: Vector<D>) -> Vector<D> {
    let lead = vector.iter().copied().find(|&digit| digit > 0).unwrap_or(1);
    // 1 and 2 are their own inverses.
    vector.map(|digit| digit * lead % 3)
}

/// `Σ a·b` with signs, modulo 3: `plus` and `minus` hold pairs of places.
fn form<const D: usize>(a: &Vector<D>, b: &Vector<D>, plus: &[(usize, usize)], minus: &[(usize, usize)]) -> u32 {
    let sum = |pairs: &[(usize, usize)]| pairs.iter().map(|&(i, j)| a[i] * b[j]).sum::<u32>();
    (sum(plus) + 2 * sum(minus)) % 3
}

/// All lines of which any two points, among `points`, satisfy a rule that holds for all pairs of a line or for none:
/// numbers of points in rising order, lines by their first two points. O(points²).
fn lines<const D: usize>(points: &[Vector<D>], rule: impl Fn(&Vector<D>, &Vector<D>) -> bool) -> Vec<[u32; 4]> {
    let number = |vector: Vector<D>| {
        let found = points.binary_search(&normalised(vector)).expect("the rule holds for whole lines");
        u32::try_from(found).expect("few points")
    };
    let mut lines = Vec::new();
    for (first, a) in points.iter().enumerate() {
        for b in &points[first + 1..] {
            if !rule(a, b) {
                continue;
            }
            let plus =
                |times: u32| std::array::from_fn(|place| a[place] + times * b[place]).map(|digit: u32| digit % 3);
            let mut line = [number(*a), number(*b), number(plus(1)), number(plus(2))];
            line.sort_unstable();
            // Each line is met once for every two of its points.
            if line[0] == number(*a) && line[1] == number(*b) {
                lines.push(line);
            }
        }
    }
    lines
}

/// The 40 lines of the generalized quadrangle W(3): the points are all 40 of the projective space of three dimensions, the
/// lines those on which the form `x₀y₁ − x₁y₀ + x₂y₃ − x₃y₂` is zero.
pub(super) fn symplectic_lines() -> Vec<[u32; 4]> {
    lines(&points::<4>(), |a, b| form(a, b, &[(0, 1), (2, 3)], &[(1, 0), (3, 2)]) == 0)
}

/// The 364 lines of the split Cayley hexagon of order 3: its points are the 364 of the quadric
/// `x₀x₄ + x₁x₅ + x₂x₆ = x₃²`, its lines those of the quadric whose Grassmann coordinates `pᵢⱼ = aᵢbⱼ − aⱼbᵢ` satisfy
/// `p₁₂ = p₃₄`, `p₅₄ = p₃₂`, `p₂₀ = p₃₅`, `p₆₅ = p₃₀`, `p₀₁ = p₃₆` and `p₄₆ = p₃₁`.
///
/// Source: J. Tits, "Sur la trialité et certains groupes qui s'en déduisent", Publ. Math. IHÉS 2, 1959; H. Van Maldeghem,
/// *Generalized Polygons*, 1998, §2.4.
pub(super) fn hexagon_lines() -> Vec<[u32; 4]> {
    const HALVES: [(usize, usize); 3] = [(0, 4), (1, 5), (2, 6)];
    const TURNED: [(usize, usize); 3] = [(4, 0), (5, 1), (6, 2)];
    const EQUAL: [[(usize, usize); 2]; 6] =
        [[(1, 2), (3, 4)], [(5, 4), (3, 2)], [(2, 0), (3, 5)], [(6, 5), (3, 0)], [(0, 1), (3, 6)], [(4, 6), (3, 1)]];
    let on_quadric = |a: &Vector<7>| form(a, a, &HALVES, &[(3, 3)]) == 0;
    let points: Vec<Vector<7>> = points().into_iter().filter(on_quadric).collect();
    lines(&points, |a, b| {
        // The form of the quadric for two points, in which −2·x₃·y₃ is x₃·y₃.
        let polar = (form(a, b, &HALVES, &[]) + form(a, b, &TURNED, &[]) + a[3] * b[3]) % 3;
        let grassmann = |(i, j): (usize, usize)| form(a, b, &[(i, j)], &[(j, i)]);
        polar == 0 && EQUAL.iter().all(|&[one, other]| grassmann(one) == grassmann(other))
    })
}
