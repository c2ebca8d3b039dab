//! The form of the interface: names, comments, imports, and fields that say their units.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use prost::Message as _;
use prost_types::{FileDescriptorProto, FileDescriptorSet, MethodDescriptorProto};

/// First words of the names of calls.
const VERBS: &[&str] = &[
    "Acquire", "Back", "Cancel", "Check", "Clear", "Compute", "Delete", "Drain", "Evict", "Explain", "Export", "Fetch",
    "Find", "Follow", "Forget", "Get", "Import", "List", "Look", "Order", "Pin", "Plan", "Prefetch", "Put", "Release",
    "Reload", "Renew", "Report", "Set", "Simulate", "Stream", "Unpin", "Wait", "Watch", "Weigh",
];

/// Requests that several calls take.
const SHARED_REQUESTS: &[&str] = &["PlanRequest", "PlanGroupsRequest"];

/// What calls answer that is not named after them: resources, and answers that several calls have.
const SHARED_ANSWERS: &[&str] = &[
    "Lease",
    "Operation",
    "Plan",
    "PlanExplanation",
    "PlanResponse",
    "PlanSummary",
    "QuotaStatus",
    "QueueStatus",
    "ServerStatus",
];

/// Fields called `id`, and times that are no `Duration`, with why.
const STATED: &[(&str, &str)] = &[
    ("BundleModel.alpha_ns", "a parameter of the model, in whole nanoseconds"),
    ("GroupLinkLength.latency_ns", "a link of a network, in its own units"),
    ("Link.latency_ns", "a document of a network, in its own units"),
    ("MessagePath.latency_ns", "exact: a fraction of a nanosecond"),
    ("FindPathsResponse.even_time_ns", "exact: a fraction of a nanosecond"),
    ("FindPathsResponse.single_time_ns", "exact: a fraction of a nanosecond"),
    ("FindPathsResponse.time_ns", "exact: a fraction of a nanosecond"),
    ("FindPathsResponse.whole_time_ns", "exact: a fraction of a nanosecond"),
    ("Node.id", "the name of a node in its network, which is no resource"),
    ("PlanBundleRequest.alpha_ns", "a parameter of the model, in whole nanoseconds"),
    ("PlanSpec.alpha_ns", "a parameter of the model, in whole nanoseconds"),
    ("SimulatePlanRequest.alpha_ns", "a parameter of the model, in whole nanoseconds"),
    ("SimulationModel.alpha_ns", "a parameter of the model, in whole nanoseconds"),
];

fn files() -> Vec<FileDescriptorProto> {
    let all = FileDescriptorSet::decode(canopy_proto::FILE_DESCRIPTOR_SET).unwrap().file;
    all.into_iter().filter(|file| file.package() == "canopy.v1").collect()
}

fn methods() -> Vec<(String, MethodDescriptorProto)> {
    let files = files();
    let services = files.iter().flat_map(|file| &file.service);
    let all =
        services.flat_map(|service| service.method.iter().map(|method| (service.name().to_owned(), method.clone())));
    all.collect()
}

fn short(name: &str) -> &str {
    name.trim_start_matches(".canopy.v1.")
}

fn is_pascal(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_uppercase()) && name.chars().all(|c| c.is_ascii_alphanumeric())
}

fn is_snake(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// The name of an enum as its values begin.
fn upper_snake(name: &str) -> String {
    let parts = name.chars().flat_map(|c| c.is_ascii_uppercase().then_some('_').into_iter().chain([c]));
    parts.collect::<String>().trim_start_matches('_').to_ascii_uppercase()
}

#[test]
fn names_have_the_usual_form() {
    for file in files() {
        for message in &file.message_type {
            assert!(is_pascal(message.name()), "{}", message.name());
            for field in &message.field {
                assert!(is_snake(field.name()), "{}.{}", message.name(), field.name());
            }
        }
        for kind in &file.enum_type {
            assert!(is_pascal(kind.name()), "{}", kind.name());
            let begin = upper_snake(kind.name()) + "_";
            for value in &kind.value {
                assert!(value.name().starts_with(&begin), "{} begins with {begin}", value.name());
            }
        }
    }
}

#[test]
fn calls_are_verbs_and_their_messages_are_named_after_them() {
    for (service, method) in methods() {
        let name = method.name();
        assert!(VERBS.iter().any(|verb| name.starts_with(verb)), "{service}.{name} begins with no verb");
        let (request, answer) = (short(method.input_type()), short(method.output_type()));
        assert!(request == format!("{name}Request") || SHARED_REQUESTS.contains(&request), "{name} takes {request}");
        let own = [format!("{name}Response"), format!("{name}Event")];
        let is_resource = name.strip_prefix("Get").is_some_and(|what| answer.ends_with(what));
        let is_event = method.server_streaming() && (answer.ends_with("Event") || answer.ends_with("Entry"));
        assert!(
            own.contains(&answer.to_owned()) || is_resource || is_event || SHARED_ANSWERS.contains(&answer),
            "{name} answers {answer}"
        );
        assert_eq!(method.server_streaming(), is_event, "{name}: only streams send events");
    }
    let names: Vec<String> = methods().iter().map(|(_, method)| method.name().to_owned()).collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "calls of two services have one name");
}

#[test]
fn lists_have_pages_filters_and_totals() {
    let files = files();
    let fields: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .flat_map(|file| &file.message_type)
        .map(|message| (message.name(), message.field.iter().map(|field| field.name()).collect()))
        .collect();
    for (_, method) in methods().iter().filter(|(_, method)| method.name().starts_with("List")) {
        let (request, answer) = (short(method.input_type()), short(method.output_type()));
        for field in ["page_size", "page_token", "filter", "order_by"] {
            assert!(fields[request].contains(field), "{request} has no {field}");
        }
        for field in ["next_page_token", "total_size"] {
            assert!(fields[answer].contains(field), "{answer} has no {field}");
        }
    }
}

#[test]
fn fields_say_their_units_and_resources_have_names() {
    let mut found = BTreeSet::new();
    for file in files() {
        for message in &file.message_type {
            for field in &message.field {
                let name = field.name();
                if name == "id" || ["_ms", "_ns", "_us", "_secs"].iter().any(|unit| name.ends_with(unit)) {
                    found.insert(format!("{}.{name}", message.name()));
                }
            }
        }
    }
    let stated: BTreeSet<String> = STATED.iter().map(|(field, _)| (*field).to_owned()).collect();
    assert_eq!(found, stated, "use `name` for resources and `google.protobuf.Duration` for times, or say why not");
}

#[test]
fn everything_has_a_comment_and_every_import_is_used() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("canopy/v1");
    let files = files();
    let homes: BTreeMap<String, String> = files
        .iter()
        .flat_map(|file| {
            let names = file.message_type.iter().map(|it| it.name()).chain(file.enum_type.iter().map(|it| it.name()));
            names.map(|name| (format!(".canopy.v1.{name}"), file.name().to_owned()))
        })
        .collect();
    for file in &files {
        let mut used: BTreeSet<String> = BTreeSet::new();
        let mut uses = |kind: &str| {
            let known = homes.get(kind).cloned();
            used.extend(known.or_else(|| {
                let google = kind.strip_prefix(".google.protobuf.")?;
                Some(format!("google/protobuf/{}.proto", google.to_ascii_lowercase()))
            }));
        };
        file.message_type.iter().flat_map(|message| &message.field).for_each(|field| uses(field.type_name()));
        for method in file.service.iter().flat_map(|service| &service.method) {
            uses(method.input_type());
            uses(method.output_type());
        }
        used.remove(file.name());
        assert_eq!(used, file.dependency.iter().cloned().collect(), "imports of {}", file.name());
        let text = fs::read_to_string(folder.join(file.name().trim_start_matches("canopy/v1/"))).unwrap();
        let mut before = "";
        for (number, line) in text.lines().enumerate() {
            let code = line.trim();
            let declares = ["message ", "enum ", "service ", "rpc "].iter().any(|word| code.starts_with(word))
                || (code.ends_with(';') && code.contains(" = ") && !code.starts_with("//") && !code.contains("syntax"));
            // Fields that follow each other without a comment share that of the first.
            let shares = before.ends_with(';') && before.contains(" = ") && code.contains(" = ");
            let place = format!("{}:{}", file.name(), number + 1);
            assert!(!declares || before.starts_with("//") || shares, "{place}: {code} has no comment");
            before = code;
        }
    }
}
