//! `canopy simulate … --published`: what the baselines of TACOS take, with all of their messages.
//!
//! No plan may hold these messages, for many bring a rank what it has already. So the model is run, not a plan.

use std::num::NonZeroU64;

use canopy_baselines::{DIRECT_XY, RING_XY, queued_time_ps};
use canopy_planner::TopologyInput;
use canopy_synth::{Algorithm, Composition, Never, SynthesisRequest, TreeLimits};
use clap::ValueEnum;
use serde::Serialize;

use super::{SimulateArgs, no_time};
use crate::args::name_of;
use crate::exit::{Failure, words};
use crate::input::{self, Source};
use crate::material::Material;
use crate::progress::ProgressLine;
use crate::sizes::in_words;

/// A published baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Baseline {
    /// A message from each rank straight to every other
    Direct,
    /// Messages from each rank to the next one by number
    Ring,
}

impl Baseline {
    pub(crate) const fn algorithm(self) -> Algorithm {
        match self {
            Self::Direct => DIRECT_XY,
            Self::Ring => RING_XY,
        }
    }

    /// As users write it.
    pub(crate) fn name(self) -> String {
        name_of(&self)
    }
}

/// Time of a baseline for one size.
#[derive(Debug, Serialize)]
pub(crate) struct BaselineTime {
    pub(crate) baseline: Baseline,
    pub(crate) time_ps: u64,
    /// Its time divided by that of the plan, for display.
    pub(crate) times_as_long: f64,
}

impl BaselineTime {
    /// Divides the time of a baseline by that of the plan, both in picoseconds.
    pub(crate) fn beside(plan_ps: u64, baseline: Baseline, time_ps: u64) -> Self {
        Self { baseline, time_ps, times_as_long: ratio(time_ps, plan_ps) }
    }
}

/// Times of the baselines that are asked for. `planned`: sizes in bytes, each with the picoseconds that the plan takes.
///
/// # Errors
/// A collective that one of them does not run; the network does not connect what has to be.
pub(super) fn times(
    args: &SimulateArgs,
    plan: &Material,
    planned: &[(u64, u64)],
) -> Result<Vec<Vec<BaselineTime>>, Failure> {
    if args.published.is_empty() {
        return Ok(Vec::new());
    }
    let line = ProgressLine::start();
    let composition = composition(args.plan.to_str().unwrap_or_default())?;
    let (collective, shares) = (plan.schedule.collective, plan.schedule.shares.clone());
    let limits = TreeLimits { chunks: args.chunks, ..TreeLimits::NONE };
    let mut rows = Vec::with_capacity(planned.len());
    for &(size_bytes, plan_ps) in planned {
        let size = NonZeroU64::new(size_bytes).ok_or_else(no_time)?;
        let mut row = Vec::with_capacity(args.published.len());
        for &baseline in &args.published {
            line.working(format!("running all messages of {} for {}", baseline.name(), in_words(size_bytes)));
            let (shares, composition) = (shares.clone(), composition.clone());
            let plain = SynthesisRequest::new(collective, baseline.algorithm());
            let request = SynthesisRequest { shares, composition, limits, ..plain };
            let found = queued_time_ps(&plan.topology, &request, args.messages.alpha_ns(), size, &Never);
            let time_ps = found
                .map_err(|error| Failure::input(format!("`--published {}`: {}", baseline.name(), words(&error))))?;
            row.push(BaselineTime::beside(plan_ps, baseline, time_ps));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// The construction that the network's expression names: messages go along its grid.
pub(crate) fn composition(text: &str) -> Result<Option<Composition>, Failure> {
    let Source::Here(TopologyInput::Expression(expression)) = input::source(text)? else { return Ok(None) };
    Composition::stated(&expression, &input::limits()?).map_err(|error| Failure::input(words(&error)))
}

/// To a hundredth.
#[expect(clippy::cast_precision_loss, reason = "a ratio for display")]
fn ratio(time_ps: u64, plan_ps: u64) -> f64 {
    (time_ps as f64 / plan_ps.max(1) as f64 * 100.0).round() / 100.0
}
