//! Reports of made-up runs against checked-in files, and what the formats promise.

mod compare;
mod document;
mod kept;
mod live;
mod mesh;
mod meshes;
mod observed;
mod pictures;
mod questions;
mod reference;
mod roll_out;
mod runs;
mod texts;
mod tree;
