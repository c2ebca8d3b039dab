//! canopy's own plan file.

use canopy_schedule::{certified_bound, judge_until};
use canopy_topology::TopologyLimits;

use super::options::shown;
use super::{Asked, Facts, Needs, OptionError, Row, Stated, Target, TargetError, TargetFile, TargetOptions};
use crate::plan_file::{read_plan, read_plan_on, write_plan_on};

/// The row of this format.
pub(super) struct Json;

impl Row for Json {
    fn facts(&self) -> Facts {
        Facts { name: "json", noun: "a plan in canopy's JSON", ending: "json", profiles: Vec::new(), usual_profile: "" }
    }

    fn profile(&self, options: &TargetOptions<'_>) -> Result<&'static str, OptionError> {
        match options.instances {
            _ if !options.profile.is_empty() => {
                Err(OptionError::ProfileWithoutRuntime { profile: shown(options.profile) })
            }
            None => Ok(""),
            Some(asked) => Err(OptionError::InstancesWithoutRuntime { asked }),
        }
    }

    fn needs(&self, _target: Target) -> Needs {
        Needs::Plan
    }

    fn is_one(&self, _bytes: &[u8]) -> bool {
        true
    }

    fn draft(&self, _target: Target, asked: Asked<'_>) -> Result<Vec<u8>, TargetError> {
        let plan = asked.plan.ok_or_else(|| TargetError::rejected("a plan file needs the whole plan"))?;
        let mut content = Vec::new();
        write_plan_on(plan, asked.base, &mut content).map_err(|error| TargetError::rejected(error.to_string()))?;
        Ok(content)
    }

    /// The file read back must equal the plan, so that the checks hold for it too.
    fn write(&self, target: Target, asked: Asked<'_>) -> Result<TargetFile, TargetError> {
        let content = self.draft(target, asked.clone())?;
        // A plan may well be larger than the request it answers.
        let limits = TopologyLimits { bytes_max: usize::MAX, ..*asked.limits };
        let read =
            read_plan_on(&content, &limits, asked.base).map_err(|error| TargetError::rejected(error.to_string()))?;
        if Some(&read) != asked.plan {
            return Err(TargetError::rejected("the plan file differs from its plan when read back"));
        }
        Ok(TargetFile::new(content))
    }

    fn judge(&self, content: &[u8], stated: &Stated<'_>) -> Result<(), String> {
        if stated.instances > 0 {
            return Err("a json file has instances, which only files for runtimes have".to_owned());
        }
        let limits = TopologyLimits { bytes_max: usize::MAX, ..*stated.limits };
        let file = read_plan(content, &limits).map_err(|error| error.to_string())?;
        let quality = stated.quality.ok_or("it states no quality")?;
        let collective = file.schedule.collective;
        if !stated.is_of(collective, file.topology.rank_count())?
            || stated.algorithm != file.schedule.algorithm
            || stated.shares != file.schedule.shares.weights()
        {
            return Err("its json file is for another collective, rank count, algorithm or shares".to_owned());
        }
        let verdict = judge_until(&file.topology, &file.schedule, &|| false).map_err(|error| error.to_string())?;
        let proven = certified_bound(&file.topology, collective, &file.schedule.shares, &file.bound.certificate);
        let proven = proven.map_err(|error| error.to_string())?;
        let optimality = verdict.algbw.ratio_to(&proven).ok_or("its bound is zero")?;
        if verdict.algbw > proven || proven != file.bound.upper || verdict.algbw != file.achieved {
            return Err(
                "its json file states a rate or bound that its transfers and certificate do not have".to_owned()
            );
        }
        if [proven.to_string(), verdict.algbw.to_string(), optimality.to_string()] != quality {
            return Err("it states another quality than its json file has".to_owned());
        }
        Ok(())
    }
}
