//! The interface as it is written down: its bytes, the code made of it, and what earlier releases say.

mod compatible;
mod generated;
mod style;
mod wire;
