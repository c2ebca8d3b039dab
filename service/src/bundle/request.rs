//! Reads requests for bundles; refuses a request as a whole if no part of it can be served.

use std::collections::BTreeSet;
use std::num::NonZeroU64;

use canopy_bundle::{ByteRange, Margin, Runtime};
use canopy_plan::{Format, Target};
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_wire::{
    ALPHA_NS_MAX, Priority, RequestError, SIZE_BYTES_MAX_DEFAULT, SIZE_BYTES_MAX_LIMIT, above_zero, small_fraction_read,
};

use super::compare::Model;
use super::read_probe;

/// Most communicators.
const COMMUNICATORS_MAX: usize = 64;
/// Longest name of one.
const NAME_BYTES_MAX: usize = 63;

/// A request whose form is right.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    pub(super) topology: Option<v1::TopologySource>,
    /// At least one, of different names.
    pub(super) communicators: Vec<v1::BundleCommunicator>,
    /// At least one, each kind once.
    collectives: Vec<(CollectiveKind, v1::CollectiveSpec)>,
    pub(super) sizes: ByteRange,
    /// The file of each plan, as it is asked for.
    pub(super) output: v1::OutputSpec,
    read_output: Target,
    pub(super) runtime: Runtime,
    in_place: Option<bool>,
    pub(super) strict: bool,
    pub(super) fault_policy: i32,
    model: Model,
    /// Where the ranks are.
    pub(super) placement: Option<v1::Placement>,
}

/// What every collective of a bundle is asked for with.
struct Specs<'a> {
    output: &'a v1::OutputSpec,
    /// Whether tables are wanted, and no files.
    is_advice: bool,
    fault_policy: i32,
    placement: Option<&'a v1::Placement>,
}

impl Specs<'_> {
    /// The collectives, and the file of each plan. All that a plan would be refused for, whatever the network is, is refused here.
    fn read(
        &self,
        collectives: &[v1::CollectiveSpec],
    ) -> Result<(Vec<(CollectiveKind, v1::CollectiveSpec)>, Target), RequestError> {
        let mut kinds: Vec<(CollectiveKind, v1::CollectiveSpec)> = Vec::new();
        let mut read_output = Format::Json.usual();
        for (position, spec) in collectives.iter().enumerate() {
            let source = v1::topology_source::Source::Expression(String::new());
            let probe = v1::PlanSpec {
                topology: Some(v1::TopologySource { source: Some(source) }),
                collective: Some(*spec),
                outputs: if self.is_advice { Vec::new() } else { vec![self.output.clone()] },
                fault_policy: self.fault_policy,
                placement: self.placement.cloned(),
                ..v1::PlanSpec::default()
            };
            let field = format!("collectives[{position}]");
            let within = |error: RequestError| RequestError::InBundle {
                field: error.field().replacen("collective", &field, 1).replacen("outputs[0]", "output", 1),
                error: Box::new(error),
            };
            let order = read_probe(probe).map_err(within)?;
            if kinds.iter().any(|&(kind, _)| kind == order.kind) {
                return Err(RequestError::Repeated { field, what: order.kind.name().to_owned() });
            }
            read_output = order.outputs.first().copied().unwrap_or(Format::Json.usual());
            kinds.push((order.kind, *spec));
        }
        Ok((kinds, read_output))
    }
}

fn margin(stated: v1::Fraction) -> Result<Margin, RequestError> {
    let (numerator, denominator) = small_fraction_read("margin", &stated)?;
    let parts = u32::try_from(numerator).ok().zip(u32::try_from(denominator).ok());
    let margin = parts.and_then(|(numerator, denominator)| Margin::new(numerator, denominator));
    margin.ok_or(RequestError::Margin { found: stated.exact })
}

impl Wanted {
    /// Reads a request.
    ///
    /// # Errors
    /// The first field that is wrong whatever the network is.
    pub(super) fn read(request: v1::PlanBundleRequest) -> Result<Self, RequestError> {
        Priority::stated(request.priority)?;
        let v1::PlanBundleRequest { topology, collectives, in_place, strict, fault_policy, placement, .. } = request;
        let missing = |field, remedy| RequestError::Missing { field, remedy };
        let output =
            request.output.ok_or_else(|| missing("output", "set the format and the runtime profile of the files"))?;
        let is_advice = output.profile.as_deref() == Some(Runtime::Nccl.name());
        if is_advice && (output.format != 0 || output.instancing.is_some()) {
            return Err(RequestError::NotApplicable { field: "output.format", method: "the profile nccl" });
        }
        let communicators = communicators(request.communicators)?;
        let size_bytes_max = request.size_bytes_max.unwrap_or(SIZE_BYTES_MAX_DEFAULT);
        if !(1..=SIZE_BYTES_MAX_LIMIT).contains(&size_bytes_max) {
            return Err(RequestError::Size { found: size_bytes_max, limit: SIZE_BYTES_MAX_LIMIT });
        }
        let min = above_zero("size_bytes_min", request.size_bytes_min)?.map_or(1, NonZeroU64::get);
        let empty = RequestError::EmptySizes { min, max: size_bytes_max };
        let sizes = ByteRange::new(min, size_bytes_max.saturating_add(1)).ok_or(empty)?;
        let margin = request.margin.map_or(Ok(Margin::STANDARD), margin)?;
        let alpha_ns = request.alpha_ns.unwrap_or(canopy_simulate::ALPHA_NS_USUAL);
        if alpha_ns > ALPHA_NS_MAX {
            return Err(RequestError::TooMany { field: "alpha_ns", found: alpha_ns, limit: ALPHA_NS_MAX });
        }
        if collectives.is_empty() {
            return Err(missing("collectives", "list the collectives to plan"));
        }
        let specs = Specs { output: &output, is_advice, fault_policy, placement: placement.as_ref() };
        let (kinds, read_output) = specs.read(&collectives)?;
        let remedy = "choose the format and profile of a runtime: its rules decide which file serves which call";
        let runtime = match is_advice {
            true => Runtime::Nccl,
            false => read_output.profile.parse().map_err(|_| missing("output.profile", remedy))?,
        };
        let model = Model { alpha_ns, margin };
        Ok(Self {
            topology,
            communicators,
            collectives: kinds,
            sizes,
            output,
            read_output,
            runtime,
            in_place,
            strict,
            fault_policy,
            model,
            placement,
        })
    }

    /// The file of each plan.
    pub(super) const fn read_output(&self) -> Target {
        self.read_output
    }

    pub(super) const fn model(&self) -> Model {
        self.model
    }

    /// For each collective of a communicator, what all requests for its plans have in common, but for the placement.
    pub(super) fn requests(
        &self,
        ranks: &[u32],
        source: &Option<v1::TopologySource>,
    ) -> impl Iterator<Item = (CollectiveKind, v1::PlanSpec)> {
        self.collectives.iter().map(move |&(kind, spec)| {
            let request = v1::PlanSpec {
                topology: source.clone(),
                collective: Some(spec),
                in_place: Some(self.in_place.unwrap_or(kind == CollectiveKind::Allreduce)),
                ranks: ranks.to_vec(),
                ..v1::PlanSpec::default()
            };
            (kind, request)
        })
    }
}

fn communicators(stated: Vec<v1::BundleCommunicator>) -> Result<Vec<v1::BundleCommunicator>, RequestError> {
    if stated.is_empty() {
        return Ok(vec![v1::BundleCommunicator { name: "all".to_owned(), ranks: Vec::new() }]);
    }
    if stated.len() > COMMUNICATORS_MAX {
        let (found, limit) = (stated.len() as u64, COMMUNICATORS_MAX as u64);
        return Err(RequestError::TooMany { field: "communicators", found, limit });
    }
    require_names("communicators", stated.iter().map(|communicator| communicator.name.as_str()))?;
    Ok(stated)
}

/// Requires names of items of a list to be plain, and no two the same.
pub(super) fn require_names<'a>(list: &str, names: impl Iterator<Item = &'a str>) -> Result<(), RequestError> {
    let mut earlier: BTreeSet<&str> = BTreeSet::new();
    for (position, name) in names.enumerate() {
        let field = || format!("{list}[{position}].name");
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
        if !(1..=NAME_BYTES_MAX).contains(&name.len()) || !name.bytes().all(is_plain) {
            return Err(RequestError::Name { field: field(), found: name.chars().take(80).collect() });
        }
        if !earlier.insert(name) {
            return Err(RequestError::Repeated { field: field(), what: name.to_owned() });
        }
    }
    Ok(())
}
