//! The command lines that ask for a plan again, to be run beside its topology.

use canopy_plan::{Format, Instances, SwitchUse, Target};
use canopy_planner::{Making, Request as Order};
use canopy_schedule::{AllreduceForm, CollectiveKind};
use canopy_synth::{RootPolicy, SumOptions, Tolerance, TreeLimits};
use canopy_topology::{Slot, Transit};

/// Longest time of the plan, which may have had as long.
const DEADLINE: &str = "1h";

/// A command line for each file that was asked for; none where the request has what no option states.
pub(super) fn lines(order: &Order, topology: &str) -> Vec<String> {
    let options = if order.faults.is_empty() { planned(order) } else { planned_around_faults(order) };
    let Some((command, options)) = options else { return Vec::new() };
    let line = |target: &Target| {
        let start = format!("canopy {command} --data-dir \"$(mktemp -d)\" {topology}");
        let options = options.iter().map(|option| word(option));
        [start].into_iter().chain(options).chain(of_file(target)).collect::<Vec<_>>().join(" ")
    };
    let is_statable = |target: &&Target| order.faults.is_empty() || is_usual(target);
    order.outputs.iter().filter(is_statable).map(line).collect()
}

/// What `canopy plan` is to be told besides the file.
fn planned(order: &Order) -> Option<(&'static str, Vec<String>)> {
    let is_alone = order.joint.is_none() && order.making == Making::Searched;
    let has_blocks = order.kind == CollectiveKind::AllToAll && !order.shares.is_empty();
    let is_usual = order.size_bytes_min == 0 && order.alpha_ns == Order::ALPHA_NS_DEFAULT && !order.sums.in_network;
    if !is_alone || has_blocks || !is_usual {
        return None;
    }
    let mut options = Options(Vec::new());
    options.collective(order);
    options.add("algorithm", order.algorithm.name());
    options.bare(if order.in_place { "in-place" } else { "out-of-place" });
    if !order.shares.is_empty() {
        options.add("shares", joined(&order.shares));
    }
    if let Some(group) = &order.group {
        // Ranks on the command line are numbered anew in rising order; none means those that are placed.
        if !group.ranks.is_sorted() || (group.ranks.is_empty() && group.transit == Transit::Forward) {
            return None;
        }
        if !group.ranks.is_empty() {
            options.add("ranks", joined(&group.ranks));
            options.add("transit", transit_name(group.transit));
        }
    }
    if let Some(slots) = &order.placement {
        options.add("placement", devices(slots).join(","));
    }
    options.limits(&order.limits);
    options.sums(order);
    options.add("deadline", DEADLINE);
    Some(("plan", options.0))
}

/// What `canopy faults resynth` is to be told, which takes faults and few other options.
fn planned_around_faults(order: &Order) -> Option<(&'static str, Vec<String>)> {
    let is_whole = order.group.is_none() && order.placement.is_none() && order.shares.is_empty();
    let is_plain = order.limits == TreeLimits::NONE && order.sums == SumOptions::AUTO && order.seed == 0;
    let is_usual = order.size_bytes_min == 0 && order.alpha_ns == Order::ALPHA_NS_DEFAULT && order.joint.is_none();
    // As requests that do not say have it.
    let is_in_usual_place = order.in_place == (order.kind == CollectiveKind::Allreduce);
    if !is_whole || !is_plain || !is_usual || !is_in_usual_place {
        return None;
    }
    let mut options = Options(Vec::new());
    for fault in &order.faults {
        options.add("fault", fault);
    }
    options.collective(order);
    options.add("algorithm", order.algorithm.name());
    options.add("deadline", DEADLINE);
    Some(("faults resynth", options.0))
}

/// Whether the format and profile say all of a file.
fn is_usual(target: &Target) -> bool {
    target.instances == Instances::ONE && target.switches == SwitchUse::Offered && target.layers_max.is_none()
}

/// The options of a file.
fn of_file(target: &Target) -> Vec<String> {
    let Target { format, profile, instances, switches, layers_max } = *target;
    let mut options = Options(Vec::new());
    options.add("format", format.name());
    if format != Format::Json && !profile.is_empty() {
        options.add("profile", profile);
    }
    if instances != Instances::ONE {
        options.add("instances", self::instances(instances));
    }
    if switches == SwitchUse::None {
        options.bare("no-switch-channels");
    }
    if let Some(layers_max) = layers_max {
        options.add("max-layers", layers_max);
    }
    options.0
}

/// The words of a command line, in order.
struct Options(Vec<String>);

impl Options {
    fn bare(&mut self, name: &str) {
        self.0.push(format!("--{name}"));
    }

    fn add(&mut self, name: &str, value: impl ToString) {
        self.bare(name);
        self.0.push(value.to_string());
    }

    fn add_if(&mut self, name: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.add(name, value);
        }
    }

    fn collective(&mut self, order: &Order) {
        self.add("collective", order.kind.name());
        self.add_if("root", order.root);
        self.add_if("size", order.is_size_stated().then_some(order.size_bytes_max));
    }

    fn limits(&mut self, limits: &TreeLimits) {
        let TreeLimits { trees_per_root, chunks, max_chunks, max_depth, tolerance } = *limits;
        self.add_if("trees", trees_per_root);
        self.add_if("chunks", chunks);
        self.add_if("max-chunks", max_chunks);
        self.add_if("max-depth", max_depth);
        self.add_if("tolerance", tolerance.map(part));
    }

    fn sums(&mut self, order: &Order) {
        self.add_if("form", order.sums.form.map(AllreduceForm::name));
        self.add_if("root-policy", (order.sums.roots == RootPolicy::Spread).then_some(order.sums.roots));
        self.add_if("seed", Some(order.seed).filter(|&seed| seed > 0));
    }
}

/// A tolerance as options take it.
pub(super) fn part(tolerance: Tolerance) -> String {
    let (numerator, denominator) = tolerance.parts();
    format!("{numerator}/{denominator}")
}

/// A number of instances as options take it.
pub(super) fn instances(instances: Instances) -> String {
    match instances {
        Instances::Exactly(count) => count.to_string(),
        Instances::Auto => "auto".to_owned(),
    }
}

/// The devices of ranks as options take them.
pub(super) fn devices(slots: &[Slot]) -> Vec<String> {
    slots.iter().map(|Slot { node, device }| format!("{node}:{device}")).collect()
}

/// The name that options have for transit.
pub(super) const fn transit_name(transit: Transit) -> &'static str {
    match transit {
        Transit::Forward => "forward",
        Transit::Unused => "unused",
    }
}

fn joined(numbers: &[impl ToString]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}

/// A word of a command line, quoted for a shell where it must be.
fn word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=+@%".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use canopy_faults::{Loss, Remaining};
    use canopy_planner::Group;
    use canopy_synth::Algorithm;

    use super::*;

    fn order() -> Order {
        Order::on("ring:4", CollectiveKind::Allreduce)
    }

    #[track_caller]
    fn check(order: &Order, expected: &[&str]) {
        assert_eq!(lines(order, "t.json"), expected);
    }

    #[test]
    fn a_plain_request_says_what_has_no_fixed_default() {
        check(
            &order(),
            &["canopy plan --data-dir \"$(mktemp -d)\" t.json --collective allreduce --algorithm auto --out-of-place \
               --deadline 1h --format json"],
        );
    }

    #[test]
    fn every_option_is_stated_and_each_file_has_a_line() {
        let limits = TreeLimits { max_chunks: 6_u64.try_into().ok(), max_depth: 3.try_into().ok(), ..TreeLimits::NONE };
        let full = Order {
            root: Some(2),
            shares: vec![1, 0, 2],
            group: Some(Group { ranks: vec![0, 1, 3], transit: Transit::Forward }),
            placement: Some(vec![Slot { node: "a b".to_owned(), device: 1 }]),
            size_bytes_max: 4096,
            in_place: true,
            algorithm: Algorithm::Tacos,
            limits,
            sums: SumOptions { form: Some(AllreduceForm::Trees), roots: RootPolicy::Spread, in_network: false },
            seed: 7,
            outputs: vec![Format::Json.usual(), Target { instances: Instances::Auto, ..Format::MscclXml.usual() }],
            ..order()
        };
        let start = "canopy plan --data-dir \"$(mktemp -d)\" t.json --collective allreduce --root 2 --size 4096 \
            --algorithm tacos --in-place --shares 1,0,2 --ranks 0,1,3 --transit forward --placement 'a b:1' \
            --max-chunks 6 --max-depth 3 --form trees --root-policy spread --seed 7 --deadline 1h";
        let msccl = format!("{start} --format msccl-xml --profile msccl --instances auto");
        check(&full, &[&format!("{start} --format json"), &msccl]);
    }

    #[test]
    fn faults_are_for_resynth() {
        let faults = vec![Loss { target: "link:a>c".parse().unwrap(), remaining: Remaining::GONE }];
        let line = "canopy faults resynth --data-dir \"$(mktemp -d)\" t.json --fault 'link:a>c' --collective allreduce \
            --algorithm auto --deadline 1h --format json";
        let order = Order { faults, in_place: true, ..order() };
        check(&order, &[line]);
        check(&Order { in_place: false, ..order.clone() }, &[]);
        check(&Order { seed: 1, ..order }, &[]);
    }

    #[test]
    fn what_no_option_states_has_no_line() {
        let unsorted = Some(Group { ranks: vec![1, 0], transit: Transit::Unused });
        for order in [
            Order { making: Making::Repaired, ..order() },
            Order { size_bytes_min: 8, ..order() },
            Order { alpha_ns: 5, ..order() },
            Order { group: unsorted, ..order() },
            Order { kind: CollectiveKind::AllToAll, shares: vec![1; 16], ..order() },
        ] {
            check(&order, &[]);
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_read_more() {
        for (text, expected) in
            [("a:0,b", "a:0,b"), ("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$x", "'$x'")]
        {
            assert_eq!(word(text), expected);
        }
    }
}
