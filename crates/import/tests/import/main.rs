//! Files of other programs: samples and approved texts, and what holds for all of them.

mod capacities;
mod fabrics;
mod hostile;
mod nccl;
mod networks;
mod pasted;
mod small;
mod written;
