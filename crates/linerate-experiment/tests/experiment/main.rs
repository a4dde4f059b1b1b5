//! Questions of more than one run, answered with runs that are made up.

mod grading;
mod remedies;
