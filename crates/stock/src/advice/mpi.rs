//! Formats of MPI libraries, and how their algorithms are compared.
//!
//! MPI chooses by the size of a message and of the communicator. What is advised is the fastest of a library's own
//! algorithms on this network, by a formula: rounds of messages, each round as long as its slowest message.
//!
//! * A message takes α for each message that its sender sends or its receiver receives in this round (the larger
//!   number), the latencies of its path, and its bytes at the rate of the busiest link of the path, which all messages of the
//!   round on that link share.
//! * Paths have fewest links, and of those the greatest least rate; each pair has one.
//! * Sums of elements and copies inside a rank take no time.
//!
//! It is Hockney's model, with links shared inside a round. Rounds do not overlap.

mod choose;
mod mpich;
mod openmpi;
mod paths;
mod patterns;

pub use choose::{Candidate, MpiChoice};
pub use mpich::{MPICH_COLLECTIVES, MpichError, mpich_choices, mpich_tree};
pub use openmpi::{OPENMPI_COLLECTIVES, openmpi_choices, openmpi_rules};
pub use paths::{Paths, RANKS_MAX};
