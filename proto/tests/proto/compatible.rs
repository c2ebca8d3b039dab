//! What a released server promised to its callers holds for ever: against the descriptors of the last release, things
//! may be added, but nothing may be removed, renumbered, renamed or retyped.
//!
//! `tests/released/canopy_v1.binpb` is the descriptor set of that release (an encoded `FileDescriptorSet` without
//! source positions, as `buf breaking --against` takes it). `CANOPY_RELEASE=1` writes it anew, when a release is made
//! and at no other time; even then it refuses what breaks the one before.

#![expect(clippy::unwrap_used, reason = "what goes wrong in a test may end it")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet, MethodDescriptorProto,
    ServiceDescriptorProto,
};

const PACKAGE: &str = "canopy.v1";

fn released_path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/released/canopy_v1.binpb")
}

fn current() -> FileDescriptorSet {
    FileDescriptorSet::decode(canopy_proto::FILE_DESCRIPTOR_SET).unwrap()
}

#[test]
fn nothing_that_was_released_has_changed() {
    let path = released_path();
    let released = fs::read(&path).map(|bytes| FileDescriptorSet::decode(bytes.as_slice()).unwrap());
    let broken = released.as_ref().map_or_else(|_| Vec::new(), |released| breaks(released, &current()));
    assert!(broken.is_empty(), "callers of the last release would break:\n{}", broken.join("\n"));
    if env::var_os("CANOPY_RELEASE").is_some() {
        let mut bare = current();
        bare.file.retain(|file| file.package() == PACKAGE);
        bare.file.iter_mut().for_each(|file| file.source_code_info = None);
        fs::write(&path, bare.encode_to_vec()).unwrap();
        return;
    }
    assert!(released.is_ok_and(|set| !set.file.is_empty()), "the descriptors of the last release are missing");
}

/// Everything of one kind in the package, by name.
fn by_name<'a, T: 'a>(
    set: &'a FileDescriptorSet,
    things: impl Fn(&'a prost_types::FileDescriptorProto) -> &'a [T],
    name: impl Fn(&'a T) -> &'a str,
) -> BTreeMap<&'a str, &'a T> {
    let files = set.file.iter().filter(|file| file.package() == PACKAGE);
    files.flat_map(things).map(|thing| (name(thing), thing)).collect()
}

/// What a caller of `old` could not do with `new`, one line each.
fn breaks(old: &FileDescriptorSet, new: &FileDescriptorSet) -> Vec<String> {
    let mut broken = Vec::new();
    let messages = |set| by_name(set, |file| &file.message_type, DescriptorProto::name);
    let (before, after) = (messages(old), messages(new));
    for (name, message) in before {
        match after.get(name) {
            Some(now) => message_breaks(message, now, &mut broken),
            None => broken.push(format!("message {name} is gone")),
        }
    }
    let enums = |set| by_name(set, |file| &file.enum_type, EnumDescriptorProto::name);
    let (before, after) = (enums(old), enums(new));
    for (name, kind) in before {
        match after.get(name) {
            Some(now) => enum_breaks(kind, now, &mut broken),
            None => broken.push(format!("enum {name} is gone")),
        }
    }
    let services = |set| by_name(set, |file| &file.service, ServiceDescriptorProto::name);
    let (before, after) = (services(old), services(new));
    for (name, service) in before {
        match after.get(name) {
            Some(now) => service_breaks(service, now, &mut broken),
            None => broken.push(format!("service {name} is gone")),
        }
    }
    broken
}

fn message_breaks(old: &DescriptorProto, new: &DescriptorProto, broken: &mut Vec<String>) {
    let place = |field: &FieldDescriptorProto| format!("{}.{} = {}", old.name(), field.name(), field.number());
    for field in &old.field {
        match new.field.iter().find(|now| now.number() == field.number()) {
            None => broken.push(format!("{}: the field is gone", place(field))),
            Some(now) if shape(new, now) != shape(old, field) => {
                broken.push(format!("{}: {:?} became {:?}", place(field), shape(old, field), shape(new, now)));
            }
            Some(_) => {}
        }
    }
    // A number that was given up stays so: somebody may still send it.
    for range in &old.reserved_range {
        let taken = new.field.iter().find(|field| (range.start()..range.end()).contains(&field.number()));
        broken.extend(taken.map(|field| format!("{}: the number was reserved", place(field))));
    }
}

/// All of a field that callers rely on: name (JSON and generated code), label, type, presence and `oneof`.
fn shape<'a>(
    message: &'a DescriptorProto,
    field: &'a FieldDescriptorProto,
) -> (&'a str, &'static str, &'static str, &'a str, bool, Option<&'a str>) {
    let group = field.oneof_index.and_then(|index| message.oneof_decl.get(usize::try_from(index).ok()?));
    // The group of a field with presence alone is no group to anybody.
    let group = group.filter(|_| !field.proto3_optional()).map(|group| group.name());
    let (label, kind) = (field.label().as_str_name(), field.r#type().as_str_name());
    (field.name(), label, kind, field.type_name(), field.proto3_optional(), group)
}

fn enum_breaks(old: &EnumDescriptorProto, new: &EnumDescriptorProto, broken: &mut Vec<String>) {
    for value in &old.value {
        if !new.value.iter().any(|now| now.number() == value.number() && now.name() == value.name()) {
            broken.push(format!("{}.{} = {}: gone or renumbered", old.name(), value.name(), value.number()));
        }
    }
}

fn service_breaks(old: &ServiceDescriptorProto, new: &ServiceDescriptorProto, broken: &mut Vec<String>) {
    let shape = |method: &MethodDescriptorProto| {
        let streams = (method.client_streaming(), method.server_streaming());
        (method.input_type().to_owned(), method.output_type().to_owned(), streams)
    };
    for method in &old.method {
        let place = format!("{}.{}", old.name(), method.name());
        match new.method.iter().find(|now| now.name() == method.name()) {
            None => broken.push(format!("{place}: the method is gone")),
            Some(now) if shape(now) != shape(method) => broken.push(format!("{place}: its messages are others")),
            Some(_) => {}
        }
    }
}

/// Changes one thing in the package and says what would break.
#[track_caller]
fn after(change: impl FnOnce(&mut FileDescriptorSet)) -> Vec<String> {
    let (old, mut new) = (current(), current());
    change(&mut new);
    assert_ne!(old, new, "the change changed nothing");
    breaks(&old, &new)
}

fn message<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut DescriptorProto {
    set.file.iter_mut().flat_map(|file| &mut file.message_type).find(|message| message.name() == name).unwrap()
}

fn field<'a>(set: &'a mut FileDescriptorSet, of: &str, name: &str) -> &'a mut FieldDescriptorProto {
    message(set, of).field.iter_mut().find(|field| field.name() == name).unwrap()
}

#[test]
fn every_kind_of_break_is_noticed() {
    fn service<'a>(set: &'a mut FileDescriptorSet, name: &str) -> &'a mut ServiceDescriptorProto {
        set.file.iter_mut().flat_map(|file| &mut file.service).find(|service| service.name() == name).unwrap()
    }
    fn kind(set: &mut FileDescriptorSet) -> &mut EnumDescriptorProto {
        set.file.iter_mut().flat_map(|file| &mut file.enum_type).find(|kind| kind.name() == "Priority").unwrap()
    }
    let check = |what: &str, change: fn(&mut FileDescriptorSet)| {
        assert_eq!(after(change).len(), 1, "{what}");
    };
    check("removed field", |set| message(set, "Warning").field.truncate(1));
    check("renumbered field", |set| field(set, "Warning", "text").number = Some(9));
    check("renamed field", |set| field(set, "Warning", "text").name = Some("words".to_owned()));
    check("retyped field", |set| {
        field(set, "Warning", "text").set_type(prost_types::field_descriptor_proto::Type::Bytes)
    });
    check("other message", |set| field(set, "PlanResponse", "plan").type_name = Some(".canopy.v1.Quality".to_owned()));
    check("now repeated", |set| {
        field(set, "Warning", "text").set_label(prost_types::field_descriptor_proto::Label::Repeated);
    });
    check("lost presence", |set| field(set, "PlanSpec", "in_place").proto3_optional = None);
    check("left its group", |set| field(set, "TopologySource", "expression").oneof_index = None);
    check("removed value", |set| kind(set).value.truncate(4));
    check("renumbered value", |set| kind(set).value[4].number = Some(7));
    check("removed message", |set| {
        set.file.iter_mut().for_each(|file| file.message_type.retain(|message| message.name() != "Warning"));
    });
    check("removed enum", |set| {
        set.file.iter_mut().for_each(|file| file.enum_type.retain(|kind| kind.name() != "Priority"));
    });
    check("removed service", |set| {
        set.file.iter_mut().for_each(|file| file.service.retain(|service| service.name() != "Planner"));
    });
    check("removed method", |set| drop(service(set, "Planner").method.pop()));
    check("other answer", |set| {
        service(set, "Planner").method[0].output_type = Some(".canopy.v1.Plan".to_owned());
    });
    check("stream ended", |set| service(set, "Planner").method[1].server_streaming = Some(false));
}

#[test]
fn additions_break_nobody() {
    let added = after(|set| {
        let mut field = field(set, "Warning", "text").clone();
        (field.name, field.number, field.json_name) = (Some("help".to_owned()), Some(3), None);
        message(set, "Warning").field.push(field);
        let mut extra = message(set, "Warning").clone();
        extra.name = Some("Advice".to_owned());
        set.file[0].message_type.push(extra);
    });
    assert_eq!(added, Vec::<String>::new());
}
