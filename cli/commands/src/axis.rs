//! Axes of drawings, with marks at round values.

/// Most marks of a linear axis.
const MARKS_MAX: f64 = 6.0;

/// A stretch of values along an axis, and where it lies on the sheet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) values: (f64, f64),
    pub(crate) places: (f64, f64),
}

impl Axis {
    /// An axis that holds all values with a little room.
    pub(crate) fn around(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        let (low, high) = values.fold((f64::MAX, f64::MIN), |(low, high), value| (low.min(value), high.max(value)));
        let room = ((high - low) * 0.08).max(high.abs() * 0.01).max(0.01);
        Self { values: (low - room, high + room), places }
    }

    /// Position of a value on the sheet.
    pub(crate) fn place(self, value: f64) -> f64 {
        let part = (value - self.values.0) / (self.values.1 - self.values.0);
        self.places.0 + part.clamp(0.0, 1.0) * (self.places.1 - self.places.0)
    }

    /// Multiples of 1, 2 or 5 times a power of ten that is at least `least`, with their words.
    pub(crate) fn marks(self, least: f64) -> Vec<(f64, String)> {
        let (low, high) = self.values;
        let steps = (-12..=12).flat_map(|power| [1.0, 2.0, 5.0].map(|digit| (power, digit * 10_f64.powi(power))));
        let fits = |&(_, step): &(i32, f64)| step >= least && (high - low) / step <= MARKS_MAX;
        let Some((power, step)) = steps.into_iter().find(fits) else { return Vec::new() };
        let decimals = usize::try_from(-power).unwrap_or(0);
        let multiples = (0..).map(|number| ((low / step).ceil() + f64::from(number)) * step);
        let inside = multiples.take_while(|value| *value <= high);
        inside.map(|value| (value, format!("{value:.decimals$}"))).collect()
    }
}

/// A logarithmic axis from one power of ten to another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Decades {
    first: i32,
    last: i32,
    places: (f64, f64),
}

impl Decades {
    /// The least whole decades, at least one, that hold all values; values that are not above zero are passed over.
    pub(crate) fn around(values: impl Iterator<Item = f64>, places: (f64, f64)) -> Self {
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm of a double is between -324 and 309")]
        let floors = values
            .filter(|value| *value > 0.0)
            .map(|value| (value.log10().floor() as i32, value.log10().ceil() as i32));
        let (first, last) =
            floors.fold((i32::MAX, i32::MIN), |(low, high), (floor, ceil)| (low.min(floor), high.max(ceil)));
        let (first, last) = if first > last { (0, 1) } else { (first, last.max(first + 1)) };
        Self { first, last, places }
    }

    /// Position of a value on the sheet.
    pub(crate) fn place(self, value: f64) -> f64 {
        let part = (value.log10() - f64::from(self.first)) / f64::from(self.last - self.first);
        self.places.0 + part.clamp(0.0, 1.0) * (self.places.1 - self.places.0)
    }

    /// Each power of ten on it, with its words.
    pub(crate) fn marks(self) -> impl Iterator<Item = (f64, String)> {
        (self.first..=self.last).map(|power| {
            let value = 10_f64.powi(power);
            let decimals = usize::try_from(-power).unwrap_or(0);
            (value, format!("{value:.decimals$}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_round_and_few() {
        let words = |values, least| -> Vec<String> {
            Axis { values, places: (0.0, 1.0) }.marks(least).into_iter().map(|(_, words)| words).collect()
        };
        assert_eq!(words((2.8, 6.2), 1.0), ["3", "4", "5", "6"]);
        assert_eq!(words((1.244, 1.339), 0.0), ["1.26", "1.28", "1.30", "1.32"]);
        assert_eq!(words((0.0, 1000.0), 1.0), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!(words((3.9, 4.1), 1.0), ["4"], "steps are whole");
        for (low, high) in [(0.001, 0.002), (7.0, 7000.0), (-3.0, 3.0)] {
            assert!((3..=7).contains(&words((low, high), 0.0).len()), "{low} to {high}");
        }
    }

    #[test]
    fn decades_hold_all_values() {
        let axis = Decades::around([3.0, 450.0, 0.0].into_iter(), (0.0, 300.0));
        assert_eq!(axis.marks().map(|(_, words)| words).collect::<Vec<_>>(), ["1", "10", "100", "1000"]);
        for (value, place) in [(1.0, 0.0), (10.0, 100.0), (1000.0, 300.0)] {
            assert!((axis.place(value) - place).abs() < 1e-9, "{value}");
        }
    }
}
