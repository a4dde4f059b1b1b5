//! Our text and JSON of made-up runs, held against what iperf3 printed of real ones.

mod consumers;
mod honesty;
mod keys;
mod layout;
mod stage;
