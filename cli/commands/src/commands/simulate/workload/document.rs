//! The file that describes an iteration of training, or of an application.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;
use std::time::Duration;

use canopy_simulate::timeline::{
    Call, Layer, OPERATIONS_MAX, Operation, Order, Overlap, Parallelism, Program, ProgramError, Resharding, Training,
    Work,
};
use canopy_topology::{shorten_to, yaml_in_words};
use serde::Deserialize;

use super::{Epoch, Gathers, Stated, Variant};
use crate::args;
use crate::exit::Failure;
use crate::input;

/// Longest file.
const BYTES_MAX: usize = 4 << 20;
/// The version that is read.
const VERSION: u32 = 1;
/// Deepest nesting of repetitions.
const DEPTH_MAX: usize = 8;
/// Most characters of what the parser says; it may repeat the file.
const PROBLEM_MAX: usize = 400;
/// Most buckets that are compared.
const BUCKETS_MAX: usize = 16;
/// Bucket of PyTorch's DDP.
const BUCKET_BYTES_USUAL: u64 = 25 << 20;

/// A workload as its file states it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    version: u32,
    #[serde(default)]
    name: String,
    #[serde(default = "yes")]
    overlap: bool,
    epoch: Option<Epoch>,
    layers: Option<Vec<LayerEntry>>,
    parallel: Option<ParallelName>,
    bucket: Option<OneOrSeveral>,
    prefetch: Option<u32>,
    reshard: Option<bool>,
    update: Option<String>,
    steps: Option<Vec<StepEntry>>,
    order: Option<OrderName>,
}

const fn yes() -> bool {
    true
}

/// Where parameters are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ParallelName {
    Ddp,
    Fsdp,
    None,
}

/// Names of [`Order`].
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum OrderName {
    Listed,
    Ready,
}

/// A size with a unit, or in bytes.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Size {
    Bytes(u64),
    Text(String),
}

/// One size, or several.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    One(Size),
    Several(Vec<Size>),
}

/// A layer, or several that are repeated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct LayerEntry {
    name: Option<String>,
    forward: Option<String>,
    backward: Option<String>,
    parameters: Option<String>,
    all_to_all: Option<String>,
    repeat: Option<u32>,
    layers: Option<Vec<LayerEntry>>,
}

/// A step, or several that are repeated.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepEntry {
    name: Option<String>,
    compute: Option<String>,
    host: Option<String>,
    collective: Option<String>,
    size: Option<String>,
    root: Option<u32>,
    after: Option<Vec<String>>,
    repeat: Option<u32>,
    steps: Option<Vec<StepEntry>>,
}

/// What is wrong, and where in the file.
#[derive(Debug)]
struct Wrong {
    place: String,
    problem: String,
}

fn wrong(place: impl Into<String>, problem: impl Display) -> Wrong {
    Wrong { place: place.into(), problem: problem.to_string() }
}

/// Reads a file.
///
/// # Errors
/// What is no description, with the field and what would be accepted.
pub(super) fn read(path: &Path) -> Result<Stated, Failure> {
    let text = input::text(path, BYTES_MAX)?;
    let document: Document = serde_saphyr::from_str(&text).map_err(|error| {
        let error = error.without_snippet();
        let line = error.location().map_or(1, |location| location.line());
        let problem = shorten_to(&yaml_in_words(error), PROBLEM_MAX);
        let help = "docs/reference/workload-file.md has all fields, and examples/workloads such files";
        Failure::input(format!("{}: line {line}: {problem}", path.display())).help(help)
    })?;
    let told = |Wrong { place, problem }: Wrong| Failure::input(format!("{}: {place}: {problem}", path.display()));
    document.stated().map_err(told).map(|stated| stated.named(path))
}

impl Document {
    fn stated(&self) -> Result<Stated, Wrong> {
        if self.version != VERSION {
            return Err(wrong("version", format!("{} is not known; write {VERSION}", self.version)));
        }
        let variants = match (&self.layers, &self.steps) {
            (Some(layers), None) => self.training(layers)?,
            (None, Some(steps)) => vec![self.application(steps)?],
            _ => return Err(wrong("layers", "state either `layers` of a model or `steps` of an application")),
        };
        if self.epoch.is_some_and(|epoch| epoch.samples == 0 || epoch.batch == 0) {
            return Err(wrong("epoch", "samples and batch are whole numbers from 1 on"));
        }
        Ok(Stated { name: self.name.clone(), variants, epoch: self.epoch, gathers: Gathers::Whole })
    }

    fn overlap(&self) -> Overlap {
        if self.overlap { Overlap::Allowed } else { Overlap::None }
    }

    /// A program for each bucket.
    fn training(&self, entries: &[LayerEntry]) -> Result<Vec<Variant>, Wrong> {
        if self.order.is_some() {
            return Err(wrong("order", "is for `steps`; collectives of layers run in the order of runtimes"));
        }
        let mut layers = Vec::new();
        add_layers(entries, "layers", 1, &mut layers)?;
        let update_ps = self.update.as_deref().map_or(Ok(0), |text| time_ps(text, || "update".to_owned()))?;
        let training = |parallelism| Training { layers: layers.clone(), parallelism, update_ps };
        let variant = |bucket_bytes, parallelism| {
            let program = training(parallelism).program(self.overlap()).map_err(|error| wrong("layers", error))?;
            Ok(Variant { bucket_bytes, program })
        };
        let parallel = self.parallel.unwrap_or(ParallelName::Ddp);
        if parallel != ParallelName::Ddp && self.bucket.is_some() {
            return Err(wrong("bucket", "is for `parallel: ddp`"));
        }
        if parallel != ParallelName::Fsdp && (self.prefetch.is_some() || self.reshard.is_some()) {
            return Err(wrong("prefetch", "`prefetch` and `reshard` are for `parallel: fsdp`"));
        }
        match parallel {
            ParallelName::Ddp => {
                let each = |bucket_bytes| variant(Some(bucket_bytes), Parallelism::Replicated { bucket_bytes });
                self.buckets()?.into_iter().map(each).collect()
            }
            ParallelName::Fsdp => {
                let resharding =
                    if self.reshard.unwrap_or(true) { Resharding::AfterForward } else { Resharding::Never };
                let parallelism = Parallelism::Sharded { ahead: self.prefetch.unwrap_or(1), resharding };
                Ok(vec![variant(None, parallelism)?])
            }
            ParallelName::None => Ok(vec![variant(None, Parallelism::Apart)?]),
        }
    }

    fn buckets(&self) -> Result<Vec<u64>, Wrong> {
        let sizes = match &self.bucket {
            None => return Ok(vec![BUCKET_BYTES_USUAL]),
            Some(OneOrSeveral::One(size)) => std::slice::from_ref(size),
            Some(OneOrSeveral::Several(sizes)) => sizes,
        };
        if sizes.is_empty() || sizes.len() > BUCKETS_MAX {
            return Err(wrong("bucket", format!("state 1 to {BUCKETS_MAX} sizes")));
        }
        let bytes = |size: &Size| match size {
            Size::Bytes(bytes) => size_bytes(&bytes.to_string(), || "bucket".to_owned()),
            Size::Text(text) => size_bytes(text, || "bucket".to_owned()),
        };
        sizes.iter().map(bytes).collect()
    }

    fn application(&self, entries: &[StepEntry]) -> Result<Variant, Wrong> {
        let others = [
            ("parallel", self.parallel.is_some()),
            ("bucket", self.bucket.is_some()),
            ("prefetch", self.prefetch.is_some()),
            ("reshard", self.reshard.is_some()),
            ("update", self.update.is_some()),
        ];
        if let Some((field, _)) = others.into_iter().find(|&(_, is_stated)| is_stated) {
            return Err(wrong(field, "is for `layers`"));
        }
        let mut steps = Steps::default();
        steps.add_all(entries, "steps", 1)?;
        let order = match self.order {
            None | Some(OrderName::Listed) => Order::Listed,
            Some(OrderName::Ready) => Order::Ready,
        };
        let program = Program::new(steps.operations, order, self.overlap()).map_err(|error| wrong("steps", error))?;
        Ok(Variant { bucket_bytes: None, program })
    }
}

/// Appends layers and repetitions of them.
fn add_layers(entries: &[LayerEntry], place: &str, depth: usize, layers: &mut Vec<Layer>) -> Result<(), Wrong> {
    require_some(entries.len(), place, depth)?;
    for (number, entry) in entries.iter().enumerate() {
        let at = |field: &str| format!("{place}[{number}].{field}");
        if let Some(inner) = &entry.layers {
            let LayerEntry { name, forward, backward, parameters, all_to_all, .. } = entry;
            if [name, forward, backward, parameters, all_to_all].into_iter().any(Option::is_some) {
                return Err(wrong(at("layers"), "a repetition has `repeat` and `layers` only"));
            }
            for _ in 0..times(entry.repeat, || at("repeat"))? {
                add_layers(inner, &at("layers"), depth + 1, layers)?;
            }
            continue;
        }
        let time = |text: &Option<String>, field: &str| match text {
            Some(text) => time_ps(text, || at(field)),
            None => Ok(0),
        };
        let size = |text: &Option<String>, field: &str| match text {
            Some(text) => size_bytes(text, || at(field)),
            None => Ok(0),
        };
        let layer = Layer {
            name: entry.name.clone().unwrap_or_else(|| format!("layer {}", layers.len())),
            forward_ps: time(&entry.forward, "forward")?,
            backward_ps: time(&entry.backward, "backward")?,
            parameters_bytes: size(&entry.parameters, "parameters")?,
            exchange_bytes: size(&entry.all_to_all, "all_to_all")?,
        };
        for _ in 0..times(entry.repeat, || at("repeat"))? {
            if layers.len() >= OPERATIONS_MAX {
                return Err(wrong(at("repeat"), too_many("layers")));
            }
            layers.push(layer.clone());
        }
    }
    Ok(())
}

/// Operations so far, and the last one of each name.
#[derive(Default)]
struct Steps {
    operations: Vec<Operation>,
    names: BTreeMap<String, u32>,
}

impl Steps {
    fn add_all(&mut self, entries: &[StepEntry], place: &str, depth: usize) -> Result<(), Wrong> {
        require_some(entries.len(), place, depth)?;
        for (number, entry) in entries.iter().enumerate() {
            let at = |field: &str| format!("{place}[{number}].{field}");
            for _ in 0..times(entry.repeat, || at("repeat"))? {
                match &entry.steps {
                    Some(inner) => {
                        let StepEntry { name, compute, host, collective, size, .. } = entry;
                        let texts = [name, compute, host, collective, size];
                        if texts.into_iter().any(Option::is_some) || entry.after.is_some() || entry.root.is_some() {
                            return Err(wrong(at("steps"), "a repetition has `repeat` and `steps` only"));
                        }
                        self.add_all(inner, &at("steps"), depth + 1)?;
                    }
                    None => self.add(entry, &at)?,
                }
            }
        }
        Ok(())
    }

    fn add(&mut self, entry: &StepEntry, at: &dyn Fn(&str) -> String) -> Result<(), Wrong> {
        let number = u32::try_from(self.operations.len()).ok().filter(|&number| (number as usize) < OPERATIONS_MAX);
        let number = number.ok_or_else(|| wrong(at("repeat"), too_many("steps")))?;
        let work = work(entry, at)?;
        let after = match &entry.after {
            None => number.checked_sub(1).into_iter().collect(),
            Some(names) => {
                let find = |name: &String| {
                    let known = self.names.get(name).copied();
                    known.ok_or_else(|| wrong(at("after"), format!("no step before this one is named `{name}`")))
                };
                names.iter().map(find).collect::<Result<Vec<u32>, _>>()?
            }
        };
        let name = match (&entry.name, work) {
            (Some(name), _) => {
                self.names.insert(name.clone(), number);
                name.clone()
            }
            (None, Work::Collective(call)) => call.kind.name().to_owned(),
            (None, _) => format!("step {number}"),
        };
        self.operations.push(Operation { name, work, after });
        Ok(())
    }
}

/// What a step does.
fn work(entry: &StepEntry, at: &dyn Fn(&str) -> String) -> Result<Work, Wrong> {
    let StepEntry { compute, host, collective, size, root, .. } = entry;
    if collective.is_none() && (size.is_some() || root.is_some()) {
        return Err(wrong(at("collective"), "`size` and `root` are those of a collective; add `collective`"));
    }
    match (compute, host, collective) {
        (Some(time), None, None) => Ok(Work::Compute { time_ps: time_ps(time, || at("compute"))? }),
        (None, Some(time), None) => Ok(Work::Host { time_ps: time_ps(time, || at("host"))? }),
        (None, None, Some(name)) => {
            let kind = args::collective_kind(name).map_err(|problem| wrong(at("collective"), problem))?;
            let size = size.as_deref().ok_or_else(|| wrong(at("size"), "a collective needs a size, such as 64MiB"))?;
            if root.is_some() && !kind.has_root() {
                return Err(wrong(at("root"), format!("{kind} has no root; leave it out")));
            }
            let root = kind.has_root().then_some(root.unwrap_or(0));
            Ok(Work::Collective(Call { kind, root, size_bytes: size_bytes(size, || at("size"))? }))
        }
        _ => Err(wrong(at("compute"), "a step has one of `compute`, `host` and `collective`")),
    }
}

fn require_some(length: usize, place: &str, depth: usize) -> Result<(), Wrong> {
    if length == 0 {
        return Err(wrong(place, "is empty; state at least one"));
    }
    if depth > DEPTH_MAX {
        return Err(wrong(place, format!("repetitions are nested more than {DEPTH_MAX} deep")));
    }
    Ok(())
}

fn times(repeat: Option<u32>, place: impl Fn() -> String) -> Result<u32, Wrong> {
    match repeat {
        Some(0) => Err(wrong(place(), "0 repetitions; write a whole number from 1 on")),
        other => Ok(other.unwrap_or(1)),
    }
}

fn too_many(what: &'static str) -> ProgramError {
    ProgramError::TooMany { what, limit: OPERATIONS_MAX }
}

fn time_ps(text: &str, place: impl Fn() -> String) -> Result<u64, Wrong> {
    let time = args::duration_or_zero(text).map_err(|problem| wrong(place(), problem))?;
    picos(time).ok_or_else(|| wrong(place(), format!("`{text}` is too long; write less than 100 days")))
}

/// Picoseconds of a duration; `None` where they do not fit.
fn picos(time: Duration) -> Option<u64> {
    u64::try_from(time.as_nanos().checked_mul(1_000)?).ok().filter(|&picos| picos < 1 << 63)
}

fn size_bytes(text: &str, place: impl Fn() -> String) -> Result<u64, Wrong> {
    args::size_bytes(text).map_err(|problem| wrong(place(), problem))
}

#[cfg(test)]
mod tests;
