//! Questions of more than one run, answered with runs that are made up.

mod counter_tests;
mod diagnoses;
mod grading;
mod remedies;
mod rfc6349;
