//! Keys of plans: everything that must agree for a plan to answer another request.
//!
//! Every key is BLAKE3 over a versioned, length-prefixed list of fields, so that no two lists of fields can run
//! together. Wall-clock limits and quality policies are never part of a key.

use std::fmt;
use std::num::NonZeroU64;

use canopy_canonical::boxes;
use canopy_direct::Construction;
use canopy_plan::{Instances, SwitchUse, Target};
use canopy_schedule::{Collective, CollectiveKind, Shares};
use canopy_synth::{Algorithm, RootPolicy, SumOptions, Tolerance, TreeLimits};
use canopy_topology::{Slot, Topology, TopologyHash, Transit, content_hash, identity_hash};

use crate::request::{Group, JointRequest, JointTask, Making, Request};
use crate::tenant::TenantName;

/// Changes whenever a request may yield a different plan; all older plans then become unreachable.
pub const PLANNER_CLASS: &str = "canopy-planner-14";

/// 256-bit key of a stored plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlanKey([u8; 32]);

/// 256-bit key of a request's text: requests with equal ones share a job before anything is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestKey([u8; 32]);

/// 256-bit key of a schedule in canonical labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ScheduleKey([u8; 32]);

/// 256-bit key of everything that a topology's canonical order depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RolesKey([u8; 32]);

macro_rules! key_type {
    ($name:ident) => {
        impl $name {
            /// Wraps the bytes of a key.
            pub const fn from_bytes(bytes: [u8; 32]) -> Self {
                Self(bytes)
            }

            /// The bytes.
            pub const fn as_bytes(&self) -> &[u8; 32] {
                &self.0
            }

            /// Reads what the key prints.
            pub fn from_digits(digits: &str) -> Option<Self> {
                let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
                let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
                let bytes: Option<Vec<u8>> =
                    pairs.iter().map(|&[high, low]| Some(value(high)? << 4 | value(low)?)).collect();
                if !rest.is_empty() {
                    return None;
                }
                bytes?.try_into().ok().map(Self)
            }
        }

        /// Prints 64 hexadecimal digits.
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
            }
        }
    };
}

key_type!(PlanKey);
key_type!(RequestKey);
key_type!(ScheduleKey);

/// What equal hashes of the shapes of two topologies mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HashKind {
    /// The topologies are of one shape.
    Canonical,
    /// They are equal node by node and link by link; the canonical form takes too much work.
    Content,
}

impl HashKind {
    /// Its stable text in keys.
    const fn in_keys(self) -> &'static str {
        match self {
            Self::Canonical => "HASH_KIND_CANONICAL",
            Self::Content => "HASH_KIND_CONTENT",
        }
    }
}

/// How a topology enters a key.
///
/// The shape decides what can be planned; the identity decides what the files say (names, rank numbers). Two topologies
/// of equal canonical shape may share a schedule, but never a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyKey {
    /// Hash of kinds, capabilities, capacities and latencies, in canonical order if that was found.
    pub shape: TopologyHash,
    /// What equal shape hashes mean.
    pub shape_kind: HashKind,
    /// Hash of everything, including names and attributes.
    pub identity: TopologyHash,
}

impl TopologyKey {
    /// The key of a topology whose canonical hash is known, or known to be out of reach. O(nodes + links).
    pub(crate) fn known(topology: &Topology, content: TopologyHash, canonical: Option<TopologyHash>) -> Self {
        let (shape, shape_kind) = match canonical {
            Some(canonical) => (canonical, HashKind::Canonical),
            None => (content, HashKind::Content),
        };
        Self { shape, shape_kind, identity: identity_hash(topology) }
    }

    /// The id of a topology of this identity, under which it is kept and named.
    pub fn id_of(identity: &TopologyHash) -> String {
        let digits: String = identity.as_bytes().iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("topologies/{digits}")
    }
}

impl PlanKey {
    /// The id of the plan under this key.
    pub fn plan_id(&self) -> String {
        format!("plans/{:.32}", self.to_string())
    }

    /// Where records are kept that have numbers instead of contents for keys: in their request.
    pub fn numbered(number: u64) -> Self {
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&number.to_be_bytes());
        Self(bytes)
    }

    /// The number of a key that [`PlanKey::numbered`] made.
    pub const fn number(&self) -> u64 {
        let [a, b, c, d, e, f, g, h, ..] = self.0;
        u64::from_be_bytes([a, b, c, d, e, f, g, h])
    }

    /// The key of the plan that answers this request on this topology.
    pub fn new(topology: &TopologyKey, collective: Collective, shares: &Shares, request: &Request) -> Self {
        let mut fields = Fields::new("canopy plan key 1");
        fields.text(PLANNER_CLASS).text(topology.shape_kind.in_keys());
        fields.bytes(topology.shape.as_bytes()).bytes(topology.identity.as_bytes());
        fields.text(collective.kind().name()).optional(collective.root().map(|root| u64::from(root.number())));
        request_fields(&mut fields, request);
        if *shares != Shares::Equal {
            fields.text("shares").numbers(shares.weights().iter().copied());
        }
        Self(fields.finish())
    }

    /// The key of the plan if only this tenant may use it.
    pub fn of_tenant(self, tenant: &TenantName) -> Self {
        let mut fields = Fields::new("canopy tenant plan key 1");
        fields.bytes(&self.0).text(tenant.as_str());
        Self(fields.finish())
    }

    /// The key of the plan if it is composed along this construction; another construction may give the same network.
    pub fn composed(self, construction: &Construction) -> Self {
        let mut fields = Fields::new("canopy composed plan key 1");
        fields.bytes(&self.0).text(&construction.to_string());
        Self(fields.finish())
    }

    /// The key of the plan if its trees may go through switches that replicate and add up.
    pub(crate) fn through_switches(self) -> Self {
        let mut fields = Fields::new("canopy in-network plan key 1");
        fields.bytes(&self.0);
        Self(fields.finish())
    }

    /// The key of the plan made by repairing the schedule of this plan of the healthy network.
    pub fn repaired_from(self, sound: &Self) -> Self {
        let mut fields = Fields::new("canopy repaired plan key 2");
        fields.bytes(&self.0).bytes(&sound.0);
        Self(fields.finish())
    }

    /// The key of the plan at this index among the joint plans of that key.
    pub(crate) fn in_common(self, joint: &ScheduleKey, position: usize) -> Self {
        let mut fields = Fields::new("canopy joint plan key 1");
        fields.bytes(&self.0).bytes(&joint.0).number(position as u64);
        Self(fields.finish())
    }

    /// The key of the plan with its ranks on these devices, and valid only there. O(slots).
    pub fn placed(self, slots: &[Slot]) -> Self {
        let mut fields = Fields::new("canopy placed plan key 1");
        fields.bytes(&self.0);
        slot_fields(&mut fields, slots);
        Self(fields.finish())
    }

    /// The key of the plan if its files state the devices. Without a placement they do not, on the same devices.
    pub(crate) fn stating_devices(self) -> Self {
        let mut fields = Fields::new("canopy stated devices plan key 1");
        fields.bytes(&self.0);
        Self(fields.finish())
    }
}

impl ScheduleKey {
    /// The key of the schedule for a network in canonical request.
    ///
    /// `sizes` are the different sizes of shares, rising; who has which is part of the form, and so is who is the root.
    pub(crate) fn of(
        form: &TopologyHash,
        kind: CollectiveKind,
        sizes: &[u64],
        (algorithm, limits, sums): (Algorithm, TreeLimits, SumOptions),
    ) -> Self {
        let mut fields = Fields::new("canopy schedule key 1");
        fields.text(PLANNER_CLASS).bytes(form.as_bytes()).text(kind.name()).numbers(sizes.iter().copied());
        fields.text(algorithm.name());
        search_fields(&mut fields, limits, sums);
        Self(fields.finish())
    }

    /// The key of the schedule for exactly this network, for messages of up to this many bytes and a seed.
    pub(crate) fn in_own_labels(
        identity: &TopologyHash,
        collective: Collective,
        shares: &Shares,
        (algorithm, limits, sums): (Algorithm, TreeLimits, SumOptions),
        (size_bytes_max, alpha_ns, seed): (u64, u64, u64),
    ) -> Self {
        let mut fields = Fields::new("canopy own schedule key 1");
        fields.text(PLANNER_CLASS).bytes(identity.as_bytes()).text(collective.kind().name());
        fields.optional(collective.root().map(|root| u64::from(root.number())));
        fields.numbers(shares.weights().iter().copied());
        fields.text(algorithm.name()).number(size_bytes_max).number(seed);
        alpha_field(&mut fields, alpha_ns);
        search_fields(&mut fields, limits, sums);
        Self(fields.finish())
    }

    /// The key of the joint schedule of these tasks on a network under the names and numbers that it has.
    pub(crate) fn of_joint(whole: &Topology, tasks: &[JointTask]) -> Self {
        let mut fields = Fields::new("canopy joint schedule key 1");
        fields.text(PLANNER_CLASS).bytes(identity_hash(whole).as_bytes());
        joint_fields(&mut fields, tasks);
        Self(fields.finish())
    }

    /// The key of the schedule if only this tenant may use it: its existence reveals a request.
    pub fn of_tenant(self, tenant: &TenantName) -> Self {
        let mut fields = Fields::new("canopy tenant schedule key 1");
        fields.bytes(&self.0).text(tenant.as_str());
        Self(fields.finish())
    }
}

impl RolesKey {
    /// O(nodes + links).
    pub(crate) fn of(topology: &Topology, roles: &[u32]) -> Self {
        let mut fields = Fields::new("canopy roles key 1");
        fields.bytes(content_hash(topology).as_bytes());
        fields.numbers(roles.iter().copied().map(u64::from));
        fields.numbers(boxes(topology).into_iter().map(|number| number.map_or(0, |number| u64::from(number) + 1)));
        Self(fields.finish())
    }
}

impl RequestKey {
    /// The key of a request's text, computed without reading the topology. O(bytes of the request).
    pub fn of(request: &Request) -> Self {
        let mut fields = Fields::new("canopy request key 1");
        fields.text(PLANNER_CLASS);
        request.topology.feed(&mut |bytes| {
            fields.bytes(bytes);
        });
        if !request.faults.is_empty() {
            fields.text("faults").number(request.faults.len() as u64);
            request.faults.iter().for_each(|fault| {
                fields.text(&fault.to_string());
            });
        }
        fields.text(request.kind.name()).optional(request.root.map(u64::from));
        request_fields(&mut fields, request);
        // What is not given adds nothing, so that keys stay what they were before there was such a field.
        if request.making == Making::Repaired {
            fields.text("repaired");
        }
        if !request.shares.is_empty() {
            fields.text("shares").numbers(request.shares.iter().copied());
        }
        if let Some(Group { ranks, transit }) = &request.group {
            let transit = match transit {
                Transit::Unused => "unused",
                Transit::Forward => "forward",
            };
            fields.text("group").text(transit).numbers(ranks.iter().copied().map(u64::from));
        }
        if let Some(slots) = &request.placement {
            fields.text("placement");
            slot_fields(&mut fields, slots);
        }
        if let Some(tenant) = &request.tenant {
            fields.text("tenant").text(tenant.as_str());
        }
        if let Some(JointRequest { tasks, position }) = &request.joint {
            fields.text("joint").number(*position as u64);
            joint_fields(&mut fields, tasks);
        }
        Self(fields.finish())
    }
}

fn joint_fields(fields: &mut Fields, tasks: &[JointTask]) {
    fields.number(tasks.len() as u64);
    for JointTask { ranks, kind, root, size_bytes, chunks } in tasks {
        fields.numbers(ranks.iter().copied().map(u64::from));
        fields.text(kind.name()).optional(root.map(u64::from)).number(size_bytes.get()).number(chunks.get());
    }
}

fn slot_fields(fields: &mut Fields, slots: &[Slot]) {
    fields.number(slots.len() as u64);
    for Slot { node, device } in slots {
        fields.text(node).number(u64::from(*device));
    }
}

/// What both keys take from a request: everything but topology, group, collective, shares and quality policy.
fn request_fields(fields: &mut Fields, request: &Request) {
    fields.text(request.algorithm.name()).number(request.size_bytes_max).number(u64::from(request.in_place));
    // A default that is not stated hashes as before it could be.
    if request.states_default_size {
        fields.text("stated size");
    }
    fields.number(request.outputs.len() as u64);
    for output in &request.outputs {
        let &Target { format, profile, instances, switches, layers_max } = output;
        let name = format.name();
        // A format with one profile goes by its name alone.
        let profile = if format.profiles().len() > 1 { profile } else { "" };
        match (instances, switches, layers_max) {
            (_, _, Some(most)) => fields.text(&format!("{name} max_layers")).number(most.get().into()),
            (_, SwitchUse::None, None) => fields.text(&format!("{name} plain channels")).text(profile),
            // As it was before there were instances: the plans of then have one.
            (Instances::ONE, SwitchUse::Offered, None) => fields.text(name).text(profile),
            (Instances::Exactly(instances), SwitchUse::Offered, None) => {
                fields.text(&format!("{name} instances")).text(profile).number(instances.get().into())
            }
            (Instances::Auto, SwitchUse::Offered, None) => {
                fields.text(&format!("{name} automatic instances")).text(profile)
            }
        };
    }
    // Left out where nothing is stated, as limits are.
    if request.size_bytes_min > 0 {
        fields.text("size_bytes_min").number(request.size_bytes_min);
    }
    if request.seed > 0 {
        fields.text("seed").number(request.seed);
    }
    alpha_field(fields, request.alpha_ns);
    search_fields(fields, request.limits, request.sums);
}

/// The start-up time of messages, left out where it is the usual one.
fn alpha_field(fields: &mut Fields, alpha_ns: u64) {
    if alpha_ns != Request::ALPHA_NS_DEFAULT {
        fields.text("alpha_ns").number(alpha_ns);
    }
}

/// What every key takes from the limits of a search.
fn search_fields(fields: &mut Fields, limits: TreeLimits, sums: SumOptions) {
    let TreeLimits { trees_per_root, chunks, max_chunks, max_depth, tolerance } = limits;
    let max_depth = max_depth.map(NonZeroU64::from);
    let limits =
        [("trees_per_root", trees_per_root), ("chunks", chunks), ("max_chunks", max_chunks), ("max_depth", max_depth)];
    for (name, limit) in limits {
        // Named, and left out where nothing is stated: limits can be added without a change to any other key.
        if let Some(limit) = limit {
            fields.text(name).number(limit.get());
        }
    }
    if let Some((numerator, denominator)) = tolerance.map(Tolerance::parts) {
        fields.text("tolerance").number(numerator.into()).number(denominator.into());
    }
    // So can these.
    let SumOptions { form, roots, in_network } = sums;
    if let Some(form) = form {
        fields.text("form").text(form.name());
    }
    if roots != RootPolicy::Centre {
        fields.text("root_policy").text(roots.name());
    }
    if in_network {
        fields.text("in_network");
    }
}

/// Feeds length-prefixed fields to a hash.
struct Fields(blake3::Hasher);

impl Fields {
    fn new(context: &str) -> Self {
        Self(blake3::Hasher::new_derive_key(context))
    }

    fn bytes(&mut self, bytes: &[u8]) -> &mut Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        self
    }

    fn text(&mut self, text: &str) -> &mut Self {
        self.bytes(text.as_bytes())
    }

    fn number(&mut self, number: u64) -> &mut Self {
        self.bytes(&number.to_le_bytes())
    }

    fn numbers(&mut self, numbers: impl ExactSizeIterator<Item = u64>) -> &mut Self {
        self.number(numbers.len() as u64);
        numbers.for_each(|number| {
            self.number(number);
        });
        self
    }

    fn optional(&mut self, number: Option<u64>) -> &mut Self {
        match number {
            Some(number) => self.number(number),
            None => self.bytes(&[]),
        }
    }

    fn finish(&self) -> [u8; 32] {
        *self.0.finalize().as_bytes()
    }
}

#[cfg(test)]
mod tests;
