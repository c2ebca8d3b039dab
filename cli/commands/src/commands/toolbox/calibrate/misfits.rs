//! Times that do not fit.

use canopy_calibrate::Fit;
use serde::Serialize;

use super::runs::Runs;
use crate::sizes::in_words;

/// A time that does not fit.
#[derive(Serialize)]
pub(super) struct Misfit {
    file: String,
    collective: String,
    size_bytes: u64,
    measured_us: f64,
    model_us: f64,
    times_as_long: f64,
}

impl Misfit {
    /// For people.
    pub(super) fn line(&self) -> String {
        format!(
            "{}: {} of {} took {:.2} µs, {:.2} times the {:.2} of the model",
            self.file,
            in_words(self.size_bytes),
            self.collective,
            self.measured_us,
            self.times_as_long,
            self.model_us
        )
    }
}

/// Times that do not fit, the worst first.
pub(super) fn misfits(fit: &Fit, runs: &Runs) -> Vec<Misfit> {
    let misfit = |&place: &usize| {
        let (timed, point) = runs.at(place)?;
        let times_as_long = fit.residuals.get(place)?.exp();
        Some(Misfit {
            file: timed.file.clone(),
            collective: timed.kind.to_string(),
            size_bytes: point.bytes,
            measured_us: point.micros,
            model_us: point.micros / times_as_long,
            times_as_long,
        })
    };
    fit.misfits.iter().filter_map(misfit).collect()
}
