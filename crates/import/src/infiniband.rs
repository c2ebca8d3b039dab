//! InfiniBand subnets as their diagnostic programs list them: switches, adapters, and the cables between ports.
//!
//! Each cable is listed from both of its ends and counts once. An adapter belongs to the machine that the first word of
//! its description names; the second word is its device. Source: linux-rdma/rdma-core `infiniband-diags`.

mod discover;
mod linkinfo;
mod rates;
mod subnet;

pub(crate) use discover::{begins as begins_discover, read as read_discover};
pub(crate) use linkinfo::{begins as begins_linkinfo, read as read_linkinfo};

#[cfg(test)]
mod tests;
