//! From the message on the wire to an [`Order`], refusing what no order can say.

use canopy_plan::Profile;
use canopy_proto::v1;
use canopy_schedule::CollectiveKind;
use canopy_synth::Algorithm;
use canopy_topology::{DocumentFormat, Ratio};

use crate::job::{Goal, Terms};
use crate::order::{Order, Output, Priority, RequestError, TopologyInput};

/// Most files one request may ask for.
const OUTPUTS_MAX: usize = 8;
/// Greatest message a request that names none is planned for: 1 GiB.
const SIZE_BYTES_MAX_DEFAULT: u64 = 1 << 30;
/// Greatest message anyone may ask for: runtimes hold sizes in 63 bits, and some bounds are exclusive.
const SIZE_BYTES_MAX_LIMIT: u64 = 1 << 62;

const COLLECTIVES: &str = "COLLECTIVE_ALLGATHER, COLLECTIVE_REDUCE_SCATTER, COLLECTIVE_ALLREDUCE, \
    COLLECTIVE_BROADCAST, COLLECTIVE_REDUCE, COLLECTIVE_GATHER, COLLECTIVE_SCATTER or COLLECTIVE_ALL_TO_ALL";
const DOCUMENT_FORMATS: &str = "DOCUMENT_FORMAT_YAML, DOCUMENT_FORMAT_JSON or DOCUMENT_FORMAT_NCCL_XML";
const PRIORITIES: &str = "PRIORITY_PREFETCH, PRIORITY_INTERACTIVE, PRIORITY_JOB_START or PRIORITY_REPAIR";
const OUTPUT_FORMATS: &str = "OUTPUT_FORMAT_JSON or OUTPUT_FORMAT_MSCCL_XML";

/// A request: what to plan, and what of it is good enough.
pub(crate) struct Decoded {
    /// What to plan.
    pub(crate) order: Order,
    /// Least achieved ÷ bound that is accepted. Not part of the order: requests that differ only here share a job.
    pub(crate) minimum_optimality: Option<Ratio>,
    /// What it asks of its job. Not part of the order either.
    pub(crate) terms: Terms,
}

/// The method that was called, as far as it changes what a request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Plan,
    PlanStream,
    LookupPlan,
    Prefetch,
}

impl Method {
    /// The name on the wire.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::PlanStream => "PlanStream",
            Self::LookupPlan => "LookupPlan",
            Self::Prefetch => "Prefetch",
        }
    }

    /// What its jobs are for.
    pub(crate) const fn goal(self) -> Goal {
        match self {
            Self::Plan | Self::PlanStream | Self::Prefetch => Goal::Plan,
            Self::LookupPlan => Goal::Lookup,
        }
    }
}

/// Reads a request.
pub(crate) fn decode(request: v1::PlanRequest, method: Method) -> Result<Decoded, RequestError> {
    let terms = terms(&request, method)?;
    if !request.request_id.is_empty() && method != Method::Prefetch {
        return Err(RequestError::NotApplicable { field: "request_id", method: method.name() });
    }
    let topology = topology_input(request.topology)?;
    let collective =
        request.collective.ok_or(RequestError::Missing { field: "collective", remedy: "say what to plan" })?;
    let kind = collective_kind(collective.kind)?;
    let size_bytes_max = request.size_bytes_max.unwrap_or(SIZE_BYTES_MAX_DEFAULT);
    if !(1..=SIZE_BYTES_MAX_LIMIT).contains(&size_bytes_max) {
        return Err(RequestError::Size { found: size_bytes_max, limit: SIZE_BYTES_MAX_LIMIT });
    }
    let algorithm = match request.algorithm.as_str() {
        "" => Algorithm::Auto,
        name => name.parse()?,
    };
    let order = Order {
        topology,
        kind,
        root: collective.root,
        size_bytes_max,
        in_place: request.in_place.unwrap_or(kind == CollectiveKind::Allreduce),
        algorithm,
        outputs: outputs(&request.outputs)?,
    };
    Ok(Decoded { order, minimum_optimality: minimum_optimality(request.quality)?, terms })
}

fn terms(request: &v1::PlanRequest, method: Method) -> Result<Terms, RequestError> {
    let stated = match v1::Priority::try_from(request.priority) {
        Ok(v1::Priority::Unspecified) => None,
        Ok(v1::Priority::Prefetch) => Some(Priority::Prefetch),
        Ok(v1::Priority::Interactive) => Some(Priority::Interactive),
        Ok(v1::Priority::JobStart) => Some(Priority::JobStart),
        Ok(v1::Priority::Repair) => Some(Priority::Repair),
        Err(_) => {
            let (field, number) = ("priority".to_owned(), request.priority);
            return Err(RequestError::UnknownValue { field, number, known: PRIORITIES });
        }
    };
    match method {
        Method::Plan | Method::PlanStream => {
            Ok(Terms { priority: stated.unwrap_or(Priority::Interactive), detached: request.detached })
        }
        Method::Prefetch => Ok(Terms { priority: stated.unwrap_or(Priority::Prefetch), detached: true }),
        Method::LookupPlan => {
            let refused = |field| Err(RequestError::NotApplicable { field, method: method.name() });
            match (stated, request.detached) {
                (Some(_), _) => refused("priority"),
                (None, true) => refused("detached"),
                // Quick, and somebody waits.
                (None, false) => Ok(Terms { priority: Priority::Repair, detached: false }),
            }
        }
    }
}

pub(super) fn topology_input(source: Option<v1::TopologySource>) -> Result<TopologyInput, RequestError> {
    use v1::topology_source::Source;
    let remedy = "give an expression, a document, an inline topology or the id of a stored one";
    let source = source.and_then(|source| source.source);
    match source.ok_or(RequestError::Missing { field: "topology", remedy })? {
        Source::Expression(text) => Ok(TopologyInput::Expression(text)),
        Source::Document(document) => {
            Ok(TopologyInput::Document { format: document_format(document.format)?, content: document.content })
        }
        Source::Inline(topology) => Ok(TopologyInput::Inline(topology)),
        // The text has taken its place before a request comes here.
        Source::Id(_) => Err(RequestError::Missing { field: "topology", remedy }),
    }
}

fn document_format(number: i32) -> Result<DocumentFormat, RequestError> {
    let field = "topology.document.format";
    match v1::DocumentFormat::try_from(number) {
        Ok(v1::DocumentFormat::Yaml) => Ok(DocumentFormat::Yaml),
        Ok(v1::DocumentFormat::Json) => Ok(DocumentFormat::Json),
        Ok(v1::DocumentFormat::NcclXml) => Ok(DocumentFormat::NcclXml),
        Ok(v1::DocumentFormat::Unspecified) => {
            Err(RequestError::Missing { field, remedy: "use DOCUMENT_FORMAT_YAML, _JSON or _NCCL_XML" })
        }
        Err(_) => Err(RequestError::UnknownValue { field: field.to_owned(), number, known: DOCUMENT_FORMATS }),
    }
}

fn collective_kind(number: i32) -> Result<CollectiveKind, RequestError> {
    let field = "collective.kind";
    match v1::Collective::try_from(number) {
        Ok(v1::Collective::Allgather) => Ok(CollectiveKind::Allgather),
        Ok(v1::Collective::ReduceScatter) => Ok(CollectiveKind::ReduceScatter),
        Ok(v1::Collective::Allreduce) => Ok(CollectiveKind::Allreduce),
        Ok(v1::Collective::Broadcast) => Ok(CollectiveKind::Broadcast),
        Ok(v1::Collective::Reduce) => Ok(CollectiveKind::Reduce),
        Ok(v1::Collective::Gather) => Ok(CollectiveKind::Gather),
        Ok(v1::Collective::Scatter) => Ok(CollectiveKind::Scatter),
        Ok(v1::Collective::AllToAll) => Ok(CollectiveKind::AllToAll),
        Ok(v1::Collective::Unspecified) => Err(RequestError::Missing { field, remedy: "say which collective" }),
        Err(_) => Err(RequestError::UnknownValue { field: field.to_owned(), number, known: COLLECTIVES }),
    }
}

fn outputs(specs: &[v1::OutputSpec]) -> Result<Vec<Output>, RequestError> {
    if specs.is_empty() {
        return Ok(vec![Output::Json]);
    }
    if specs.len() > OUTPUTS_MAX {
        return Err(RequestError::TooManyOutputs { found: specs.len(), limit: OUTPUTS_MAX });
    }
    let mut outputs = Vec::with_capacity(specs.len());
    for (position, spec) in specs.iter().enumerate() {
        let output = output(position, spec)?;
        if let Some(first) = outputs.iter().position(|&earlier| earlier == output) {
            return Err(RequestError::DuplicateOutput { first, second: position });
        }
        outputs.push(output);
    }
    Ok(outputs)
}

fn output(position: usize, spec: &v1::OutputSpec) -> Result<Output, RequestError> {
    let unknown = || RequestError::UnknownValue {
        field: format!("outputs[{position}].format"),
        number: spec.format,
        known: OUTPUT_FORMATS,
    };
    match v1::OutputFormat::try_from(spec.format) {
        Ok(v1::OutputFormat::Json) if spec.profile.is_empty() => Ok(Output::Json),
        Ok(v1::OutputFormat::Json) => Err(RequestError::ProfileWithoutRuntime {
            output: position,
            profile: spec.profile.chars().take(80).collect(),
        }),
        Ok(v1::OutputFormat::MscclXml) if spec.profile.is_empty() => Ok(Output::MscclXml(Profile::Msccl)),
        Ok(v1::OutputFormat::MscclXml) => {
            let profile = spec.profile.parse();
            profile.map(Output::MscclXml).map_err(|error| RequestError::Profile { output: position, error })
        }
        // What is not said is refused like what is not known: guessing would pin a default for ever.
        Ok(v1::OutputFormat::Unspecified) | Err(_) => Err(unknown()),
    }
}

fn minimum_optimality(policy: Option<v1::QualityPolicy>) -> Result<Option<Ratio>, RequestError> {
    let Some(policy) = policy else {
        return Ok(None);
    };
    let remedy = "give a fraction, or leave out the quality policy";
    let field = "quality.minimum_optimality";
    let v1::Ratio { numerator, denominator } =
        policy.minimum_optimality.ok_or(RequestError::Missing { field, remedy })?;
    let error = RequestError::Optimality { numerator, denominator };
    if numerator > denominator {
        return Err(error);
    }
    format!("{numerator}/{denominator}").parse().map(Some).map_err(|_| error)
}

#[cfg(test)]
mod tests;
