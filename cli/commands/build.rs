//! Tells the command what it was built from: the revision of the source and the compiler.

#[path = "../../server/build/revision.rs"]
mod revision;

fn main() {
    revision::tell_cargo("../..");
}
