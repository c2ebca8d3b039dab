//! Baselines from outside: the figures that their papers state.

mod auto;
mod odd_rates;
mod one_root;
mod published;
mod queues;
mod requests;
#[expect(dead_code, reason = "tests of the engines use more of these networks")]
#[path = "../../../tacos/tests/tacos/support.rs"]
mod support;
