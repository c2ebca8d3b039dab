//! A link as a band of some width, and the strips into which it is divided along its way.

use crate::svg::{Curve, Point};

/// What no class takes.
pub(super) const FREE: &str = "#c3c9d0";

/// The middle of a band, and the directions across it.
pub(super) struct Band {
    points: Vec<(Point, Point)>,
    width: f64,
}

impl Band {
    pub(super) fn along(curve: &Curve, width: f64) -> Self {
        let points = match curve {
            Curve::Straight(ends) => ends.to_vec(),
            bent => bent.points(),
        };
        let across = |number: usize| {
            let at = |number: usize| points.get(number).or(points.last()).copied().unwrap_or((0.0, 0.0));
            let (before, after) = (at(number.saturating_sub(1)), at(number + 1));
            let length = (after.0 - before.0).hypot(after.1 - before.1).max(0.001);
            ((before.1 - after.1) / length, (after.0 - before.0) / length)
        };
        Self { points: points.iter().enumerate().map(|(number, &point)| (point, across(number))).collect(), width }
    }

    /// Corners of the strip from one part of the width to another, in billionths.
    pub(super) fn strip(&self, low: u32, high: u32) -> Vec<Point> {
        let place = |part: u32| self.width * (f64::from(part) / 1e9 - 0.5);
        let side = |by: f64| self.points.iter().map(move |((x, y), across)| (x + across.0 * by, y + across.1 * by));
        side(place(low)).chain(side(place(high)).rev()).collect()
    }
}
