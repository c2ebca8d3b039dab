//! The price of each class of arcs, and the projection that keeps their sum.

use super::layout::Class;

/// `Σ size·capacity·length` over the classes.
pub(super) fn volume(classes: &[Class], lengths: &[f64]) -> f64 {
    classes.iter().zip(lengths).map(|(class, length)| class.size * class.capacity * length).sum()
}

/// Moves lengths to the nearest that are nowhere negative and have the volume asked for, in the metric in which class c
/// has weight `size/steps[c]`: `max(0, ℓ_c − θ·steps[c]·capacity)` for the one θ that gives the volume, which is returned.
///
/// * **Source.** C. Michelot, *A finite algorithm for finding the projection of a point onto the canonical simplex*, 1986.
/// * **Cost.** O(classes) per round, in each of which a class drops out; some ten rounds in practice.
pub(super) fn project(classes: &[Class], steps: &[f64], lengths: &mut [f64], target: f64) -> f64 {
    let mut active: Vec<usize> = (0..classes.len()).collect();
    loop {
        let (mut sum, mut slope) = (0.0, 0.0);
        for &class in &active {
            let weight = classes[class].size * classes[class].capacity;
            sum += weight * lengths[class];
            slope += weight * steps[class] * classes[class].capacity;
        }
        let theta = (sum - target) / slope;
        let before = active.len();
        active.retain(|&class| lengths[class] > theta * steps[class] * classes[class].capacity);
        if active.len() == before || active.is_empty() {
            for (class, length) in lengths.iter_mut().enumerate() {
                *length = (*length - theta * steps[class] * classes[class].capacity).max(0.0);
            }
            return theta;
        }
    }
}
