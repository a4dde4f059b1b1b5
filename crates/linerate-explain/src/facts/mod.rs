//! What is known of a direction, each fact defined once: the rules read them and add the words.

pub(crate) mod case;
pub(crate) mod limit;
pub(crate) mod loss;
pub(crate) mod response;
pub(crate) mod slices;
pub(crate) mod stretches;
