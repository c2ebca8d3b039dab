//! What people have of their cluster, in the words of the programs that wrote it: dumps of machines, lists of switches,
//! tables, networks of other planners.
//!
//! Pure: bytes in, a network out, with a report of what was understood, assumed and left out. A file describes one of
//! three things ([`Content`]): a whole network, a machine with open ports ([`Machine`]), or what joins machines
//! ([`Fabric`]). Machines and a fabric make a cluster ([`compose`]). It knows nothing of collectives or schedules.

mod cluster;
mod content;
mod dead_ends;
mod error;
mod fabric;
mod foreign;
mod graph;
mod host;
mod infiniband;
mod kind;
mod kubernetes;
mod lldp;
mod machine;
mod names;
mod nccl;
mod nearest;
mod paste;
mod read;
mod readers;
mod report;
mod slurm;
mod source;
mod xml;
mod yaml;

pub use cluster::{
    Cluster, ClusterCounts, ClusterModel, ComposeError, Layout, MachineOf, Rates, RatesError, compose, machines_of,
    numbered, part_of,
};
pub use content::Content;
pub use error::{FileError, ImportError, NcclError, XmlError};
pub use fabric::{Attachment, Fabric, FabricHost, FabricLink, FabricSwitch, PortName};
pub use foreign::ForeignFile;
pub use kind::FileKind;
pub use machine::{Machine, Port};
pub use paste::unwrapped;
pub use read::{Imported, read, read_content, read_until};
pub use report::Report;
