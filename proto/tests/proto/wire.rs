//! The wire format is a promise: a field is never renumbered, retyped or reused.

use std::path::Path;
use std::{env, fs};

use prost::Message as _;
use prost_types::{DescriptorProto, EnumDescriptorProto, FileDescriptorSet, ServiceDescriptorProto};

/// Compares with `tests/approved/<name>`. `CANOPY_APPROVE=1` writes it instead; review the diff as code.
#[track_caller]
fn check_approved(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/approved").join(name);
    if env::var_os("CANOPY_APPROVE").is_some() {
        fs::write(&path, actual).expect("the approved file can be written");
        return;
    }
    let approved = fs::read_to_string(&path).unwrap_or_default();
    assert!(approved == actual, "{name} changed; if intended, rerun with CANOPY_APPROVE=1\n{actual}");
}

#[test]
fn messages_enums_and_methods_are_the_approved_ones() {
    let files = FileDescriptorSet::decode(canopy_proto::FILE_DESCRIPTOR_SET).unwrap().file;
    let mut lines = Vec::new();
    for file in files.iter().filter(|file| file.package() == "canopy.v1") {
        file.message_type.iter().for_each(|message| describe_message(message, &mut lines));
        file.enum_type.iter().for_each(|kind| describe_enum(kind, &mut lines));
        file.service.iter().for_each(|service| describe_service(service, &mut lines));
    }
    lines.sort();
    check_approved("wire.txt", &(lines.join("\n") + "\n"));
}

fn describe_message(message: &DescriptorProto, lines: &mut Vec<String>) {
    assert!(message.nested_type.is_empty() && message.enum_type.is_empty(), "types stand at the top of their file");
    for field in &message.field {
        let (name, number, label) = (field.name(), field.number(), field.label().as_str_name());
        let (kind, target) = (field.r#type().as_str_name(), field.type_name());
        let presence = if field.proto3_optional() { " optional" } else { "" };
        lines.push(format!("message {} {name} = {number}: {label} {kind} {target}{presence}", message.name()));
    }
}

fn describe_enum(kind: &EnumDescriptorProto, lines: &mut Vec<String>) {
    for value in &kind.value {
        lines.push(format!("enum {} {} = {}", kind.name(), value.name(), value.number()));
    }
}

fn describe_service(service: &ServiceDescriptorProto, lines: &mut Vec<String>) {
    for method in &service.method {
        let stream = |streaming| if streaming { "stream " } else { "" };
        lines.push(format!(
            "service {} {}: {}{} -> {}{}",
            service.name(),
            method.name(),
            stream(method.client_streaming()),
            method.input_type(),
            stream(method.server_streaming()),
            method.output_type(),
        ));
    }
}

/// Unset must never mean something: a caller that knows fewer values than the server is refused, not misread.
#[test]
fn every_enum_starts_with_unspecified() {
    let files = FileDescriptorSet::decode(canopy_proto::FILE_DESCRIPTOR_SET).unwrap().file;
    for kind in files.iter().flat_map(|file| &file.enum_type) {
        let first = &kind.value[0];
        assert!(first.number() == 0 && first.name().ends_with("_UNSPECIFIED"), "{}", kind.name());
    }
}
