//! Recognises families: a network in, the generator expression of an isomorphic network out.
//!
//! [`recognise`] counts what is cheap to count (`summary`), lets every family say which of its members would have such
//! counts (`table`, with `grids`, `boxes` and `fabrics`), has the generator build these, and compares each link by link,
//! by canonical forms. So nothing here need be right for an answer to be: a wrong guess is not confirmed.
//!
//! [`made_of`] does the same for networks of ranks alone with the whole catalogue (`catalogue`) and with operators, which it
//! undoes (`roots`): what schedules are composed along.
//!
//! [`with_boxes`] gives a network without boxes those of its family, or those that its links suggest (`linkage`), for synthesizers to
//! plan by.

mod boxes;
mod catalogue;
mod extents;
mod fabrics;
mod grids;
mod hint;
mod linkage;
mod made;
mod recognise;
mod roots;
mod summary;
mod table;

pub use hint::{Boxed, with_boxes};
pub use made::{Made, made_of};
pub use recognise::{LINKS_MAX, Recognised, Recognition, recognise};
pub use table::recognised_names;
