//! What stock NCCL and RCCL do with a collective: the channels that they set up, the algorithm and protocol that they take
//! for each size, and the time that their own formulas give.
//!
//! NCCL looks for *channels*: rings through the GPUs of a machine, one for each NIC or for each lane of NVLink, in classes
//! of speed. From their number and class follow a bandwidth and a latency for every algorithm and protocol; the least
//! time wins. All of that is public, and differs by version in its constants.
//!
//! | module | what it knows |
//! |---|---|
//! | `version` | which constants a release has |
//! | `machine` | what is seen of a machine |
//! | `seen` | the same of a topology |
//! | `nvls` | which of its switches multicast and add up |
//! | `channels` | the search for rings, trees and NVLS heads |
//! | `tables` | the constants |
//! | `tuning` | bandwidth and latency of an algorithm and protocol |
//! | `collnet` | the same for switches of the network that add up |
//! | `rccl` | the same for AMD's library, which knows machines by name |
//! | `choice` | the least time, by size |
//! | `reach` | hops of a call and its passes over links, where rates and latencies are to be found |
//!
//! From 1 GB on these times are within a few per cent of what is measured; below 128 MiB they are mostly too short, since
//! latencies there are made to choose, not to predict.
//!
//! Rates are in MB/s (10⁶ bytes per second), latencies in nanoseconds.
//!
//! Source: the public sources of NCCL 2.18 to 2.31 and RCCL 2.21, from which constants and formulas were read.

mod channels;
mod choice;
mod collnet;
mod machine;
mod nvls;
mod rccl;
mod reach;
mod seen;
mod tables;
mod tuning;
mod version;

pub use channels::{Channels, Heads};
pub use choice::{Choice, Stock, Timed};
pub use machine::{Generation, Machine, Processor};
pub use nvls::{nvls_switches, with_collnet, with_nvls};
pub use rccl::Known;
pub use reach::Reach;
pub use seen::{Maker, NoModel, Seen, Unseen};
pub use tuning::{Algorithm, Protocol};
pub use version::{UnknownVersion, Version};
