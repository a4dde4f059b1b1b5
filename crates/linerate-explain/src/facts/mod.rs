//! What is known of a direction, each fact defined once: the rules read them and add the words.

pub(crate) mod bucket;
pub(crate) mod case;
pub(crate) mod chance;
pub(crate) mod full;
pub(crate) mod limit;
pub(crate) mod loss;
pub(crate) mod marks;
pub(crate) mod overtaking;
pub(crate) mod queue;
pub(crate) mod reader;
pub(crate) mod repeats;
pub(crate) mod response;
pub(crate) mod slices;
pub(crate) mod slow_start;
pub(crate) mod stall;
pub(crate) mod stretches;
pub(crate) mod transfer;
pub(crate) mod working_latency;
