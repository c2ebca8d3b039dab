//! The wire interface of canopy: messages of package `canopy.v1`, generated from the
//! `.proto` files beside this crate into `generated`, where a test keeps them alike, with the stubs of its calls
//! behind the features `client` and `server`. It holds no logic.

mod fractions;
mod requests;

pub use fractions::Exact;

/// Package `canopy.v1`. The comments are those of the `.proto` files.
#[expect(
    missing_docs,
    clippy::doc_markdown,
    clippy::all,
    reason = "generated code; what it means is written in the .proto files"
)]
// Only the stubs have some.
#[allow(unused_qualifications)]
pub mod v1 {
    include!("generated/canopy.v1.rs");
}

/// Package `chakra`: execution traces as other simulators read them. The comments are those of the `.proto` file.
#[expect(missing_docs, clippy::all, reason = "generated code; what it means is written in the .proto file")]
pub mod chakra {
    include!("generated/chakra.rs");
}

/// Package `datamodels` of NVSentinel: health events. The comments are those of the `.proto` file.
#[expect(clippy::all, reason = "generated code; what it means is written in the .proto file")]
#[allow(unused_qualifications)]
pub mod nvsentinel {
    include!("generated/datamodels.rs");
}

/// All of `canopy.v1` as an encoded `google.protobuf.FileDescriptorSet`, for reflection.
pub const FILE_DESCRIPTOR_SET: &[u8] = include_bytes!("generated/canopy_v1_descriptors.bin");
